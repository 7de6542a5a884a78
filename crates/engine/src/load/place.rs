//! Taking the memory: the backends in their order, the last of which is the reference.
//!
//! What cannot serve is passed over with its reason, and the next one is asked. A device serves
//! only once the guard has accepted it.

use std::sync::Arc;
use std::time::Instant;

use candor_backend::{
    Backend, CancelToken, DeviceInfo, LoadError, Loaded, Numerics, OpenError, OpenOptions, Part,
    Precision, Session, Step,
};

use super::check::{ExactSide, Kept};
use super::reference::{Forward, Source, lay_out, reference_live};
use super::{
    DeviceWish, Live, LoadFailure, LoadedModel, ModelId, PassedOver, Prepared, Proof, Serving,
    WhyNot,
};
use crate::config::Clock;
use crate::guard::{
    self, Basis, Candidate, Mode, NotJudged, Policy, Probe, Reference, Remembered, Unproven,
    Verdict, VerdictId, Watching,
};
use crate::guarded::guarded;
use crate::message::LoadStage;

/// How far a load is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) stage: LoadStage,
    /// What is being readied, once that is known.
    pub(crate) device: Option<&'a DeviceInfo>,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// Whoever loads.
pub(crate) trait Host {
    /// Hears how the load goes on, and may stop it.
    fn watch(&mut self, at: At<'_>) -> Step;

    /// Sees to it that so much memory is free beside the devices, or refuses.
    fn make_room(&mut self, needed_bytes: u64) -> Result<(), LoadFailure>;

    /// Gives up a model from before that is on a device; whether there was one.
    fn give_way(&mut self) -> bool;

    /// The time.
    fn clock(&self) -> Clock;

    /// The date, in milliseconds since 1970.
    fn today(&self) -> i64;

    /// A number for a verdict, each only once.
    fn verdict_id(&mut self) -> VerdictId;
}

/// By what right a device is to serve.
#[derive(Clone, Copy, Debug)]
pub(crate) enum License {
    /// The guard's.
    Guarded,
    /// None, for a measurement.
    Unproven(Unproven),
}

/// Takes the memory and opens the session.
pub(crate) fn place(
    prepared: &Prepared,
    (id, started): (ModelId, Instant),
    backends: &mut [Box<dyn Backend>],
    license: License,
    host: &mut dyn Host,
) -> Result<Live, LoadFailure> {
    let threads = prepared.threads(backends);
    let needed_bytes = prepared.needed_bytes(backends);
    let Some((reference, devices)) = backends.split_last_mut() else {
        return Err(LoadFailure::NoBackend);
    };
    let mut placing = Placing {
        prepared,
        id,
        started,
        threads,
        options: prepared.options,
        license,
        host,
        passed_over: Vec::new(),
    };
    for device in devices {
        let mut asked = Asked::default();
        // What breaks down there is no reason for the reference not to serve.
        let live = guarded(|| placing.ask(&mut **device, &mut **reference, &mut asked));
        let why = match live {
            Ok(Ok(live)) => return Ok(live),
            Ok(Err(Passed::Over(why))) => why,
            Ok(Err(Passed::Failed(failure))) => return Err(*failure),
            Err(reason) => WhyNot::Failed { reason },
        };
        let device = asked.device;
        placing.passed_over.push(PassedOver { device, why });
    }
    if prepared.spec.options.device == DeviceWish::Device {
        let passed_over = placing.passed_over;
        return Err(LoadFailure::NotOnDevice { passed_over });
    }
    placing.host.make_room(needed_bytes)?;
    placing.on_reference(&mut **reference)
}

/// A load under way.
struct Placing<'a> {
    prepared: &'a Prepared,
    id: ModelId,
    started: Instant,
    /// Of the reference.
    threads: usize,
    /// How the session of what is being asked is opened.
    options: OpenOptions,
    license: License,
    host: &'a mut dyn Host,
    passed_over: Vec<PassedOver>,
}

/// What is known of a device, however asking it ends.
#[derive(Default)]
struct Asked {
    device: Option<DeviceInfo>,
    /// Whether the host wants the end of the whole load.
    stopped: bool,
}

/// A device that does not serve.
enum Passed {
    /// The next one is asked.
    Over(WhyNot),
    /// The load is over.
    Failed(Box<LoadFailure>),
}

impl From<WhyNot> for Passed {
    fn from(why: WhyNot) -> Self {
        Self::Over(why)
    }
}

impl From<OpenError> for Passed {
    fn from(error: OpenError) -> Self {
        Self::Over(error.into())
    }
}

/// Weights on a device, and a session of them.
type Ready = (Box<dyn Loaded>, Box<dyn Session>);

/// Weights on a device, and a session that was not judged yet.
struct Readied {
    weights: Box<dyn Loaded>,
    numerics: Numerics,
    candidate: Candidate,
}

/// What a load came to, beside what was known before.
struct Placed {
    serving: Serving,
    weights: Box<dyn Loaded>,
    exact: Option<Box<dyn Loaded>>,
    remembered: Option<Arc<Remembered>>,
    numerics: Numerics,
    device: DeviceInfo,
    proof: Proof,
}

impl Placing<'_> {
    fn on_reference(mut self, backend: &mut dyn Backend) -> Result<Live, LoadFailure> {
        self.options = self.prepared.options;
        let device = backend.probe().map_err(LoadFailure::NoDevice)?;
        let Self { prepared, host, .. } = &mut self;
        let mut watch = |stage, done, total| {
            let device = Some(&device);
            host.watch(At {
                stage,
                device,
                done,
                total,
            })
        };
        let (servable, weights) = reference_live(prepared.source(), backend, &mut watch)?;
        let numerics = servable.session().numerics();
        Ok(self.live(Placed {
            serving: Serving::Ready(servable),
            weights,
            exact: None,
            remembered: None,
            numerics,
            device,
            proof: Proof::Reference,
        }))
    }

    /// Asks a device whether it can serve, and lets the guard judge it.
    fn ask(
        &mut self,
        backend: &mut dyn Backend,
        reference: &mut dyn Backend,
        asked: &mut Asked,
    ) -> Result<Live, Passed> {
        let spec = &self.prepared.spec;
        let wants_reference = spec.options.device == DeviceWish::Reference
            || spec.options.precision == Precision::Exact;
        if wants_reference || spec.use_reference.is_cancelled() {
            return Err(WhyNot::ChosenByUser.into());
        }
        let device = backend.probe().map_err(WhyNot::Unavailable)?;
        asked.device = Some(device.clone());
        let Source { model, options, .. } = self.prepared.source();
        let missing = backend.supports(&model.graph, model.file.index(), &options);
        if !missing.is_empty() {
            return Err(WhyNot::Unsupported(missing).into());
        }
        let wishes = self.prepared.wishes();
        // A model from before gives way before a shorter context is taken: that would outlive it.
        let mut ready = self.ready(backend, asked, &wishes[..1]);
        if matches!(ready, Err(Passed::Over(WhyNot::OutOfMemory { .. })))
            && (self.host.give_way() || wishes.len() > 1)
        {
            ready = self.ready(backend, asked, &wishes);
        }
        let (weights, session) = ready?;
        let readied = Readied {
            weights,
            numerics: session.numerics(),
            candidate: Candidate::new(session, device),
        };
        match self.license {
            License::Unproven(why) => Ok(self.unproven(readied, why)),
            License::Guarded if spec.options.f2 != Mode::Probe => Ok(self.awaiting(readied)),
            License::Guarded => {
                let fingerprint = backend.fingerprint();
                self.judged(readied, reference, fingerprint, asked)
            }
        }
    }

    /// Puts the weights on a device and opens its session.
    fn ready(
        &mut self,
        backend: &mut dyn Backend,
        asked: &mut Asked,
        wishes: &[OpenOptions],
    ) -> Result<Ready, Passed> {
        let model = &self.prepared.model;
        let use_reference = self.prepared.spec.use_reference.clone();
        let Asked { device, stopped } = asked;
        let host = &mut *self.host;
        let mut watch = |stage, done, total| {
            let device = device.as_ref();
            let at = At {
                stage,
                device,
                done,
                total,
            };
            *stopped = host.watch(at) == Step::Stop;
            match *stopped || use_reference.is_cancelled() {
                true => Step::Stop,
                false => Step::Go,
            }
        };
        let loaded = match lay_out(&model.file, &mut watch) {
            Err(LoadFailure::Stopped) => Err(LoadError::Stopped),
            Err(other) => return Err(Passed::Failed(Box::new(other))),
            Ok(()) => {
                let mut progress = Forward(&mut watch);
                let fitted = backend.fit(model, wishes, &mut progress);
                fitted.and_then(|options| {
                    let loaded = backend.load(Arc::clone(model), Part::All, &mut progress);
                    Ok((loaded?, options))
                })
            }
        };
        let stopped = asked.stopped;
        let (weights, options) = loaded.map_err(|error| self.passed(error, stopped))?;
        self.options = options;
        let session = weights.open(options)?;
        Ok((weights, session))
    }

    fn passed(&self, error: LoadError, stopped: bool) -> Passed {
        match error {
            LoadError::Stopped if stopped => Passed::Failed(Box::new(LoadFailure::Stopped)),
            LoadError::Stopped => Passed::Over(WhyNot::ChosenByUser),
            LoadError::Problems(problems) => {
                let path = self.prepared.spec.path.clone();
                Passed::Failed(Box::new(LoadFailure::Problems { path, problems }))
            }
            other => Passed::Over(other.into()),
        }
    }

    fn unproven(&mut self, readied: Readied, why: Unproven) -> Live {
        let Readied {
            weights,
            numerics,
            candidate,
        } = readied;
        let device = candidate.device().clone();
        self.live(Placed {
            serving: Serving::Ready(guard::unproven(candidate, why)),
            weights,
            exact: None,
            remembered: None,
            numerics,
            device,
            proof: Proof::Skipped { reason: why.reason },
        })
    }

    fn awaiting(&mut self, readied: Readied) -> Live {
        let Readied {
            weights,
            numerics,
            candidate,
        } = readied;
        let device = candidate.device().clone();
        self.live(Placed {
            serving: Serving::Awaiting(candidate),
            weights,
            exact: None,
            remembered: None,
            numerics,
            device,
            proof: Proof::Awaited(self.prepared.spec.options.f2),
        })
    }

    /// Holds a device against the reference before it serves.
    fn judged(
        &mut self,
        readied: Readied,
        reference: &mut dyn Backend,
        fingerprint: String,
        asked: &mut Asked,
    ) -> Result<Live, Passed> {
        let Readied {
            weights,
            numerics,
            candidate,
        } = readied;
        let spec = &self.prepared.spec;
        let device = candidate.device().clone();
        let subject = self.prepared.subject(self.options);
        let probe = match &spec.probe {
            Some(ids) => Probe::of_text(ids, subject),
            None => Probe::built_in(subject),
        };
        let probe = probe.map_err(WhyNot::NotJudged)?;
        let kept = spec.memory.clone().map(|memory| {
            let device = format!("{} ({})", device.name, device.isa);
            let fingerprint = format!("{fingerprint} {}", probe.fingerprint());
            Kept::new(memory, device, fingerprint)
        });
        let mut exact = None;
        let verdict = self.verdict(
            candidate,
            &probe,
            kept.as_ref(),
            (reference, &mut exact),
            asked,
        );
        match verdict {
            Verdict::Accepted {
                servable,
                report,
                remembered,
            } => {
                if let (Basis::Computed, Some(kept)) = (&report.basis, &kept) {
                    kept.keep(&remembered);
                }
                Ok(self.live(Placed {
                    serving: Serving::Ready(servable),
                    weights,
                    exact,
                    remembered: Some(remembered),
                    numerics,
                    device,
                    proof: Proof::Proven(report),
                }))
            }
            Verdict::Rejected(report) => Err(WhyNot::Rejected(report).into()),
            Verdict::NotJudged { reason, .. } => Err(match reason {
                NotJudged::Stopped if asked.stopped || spec.cancel.is_cancelled() => {
                    Passed::Failed(Box::new(LoadFailure::Stopped))
                }
                NotJudged::Stopped => WhyNot::ChosenByUser.into(),
                reason => WhyNot::NotJudged(reason).into(),
            }),
        }
    }

    fn verdict(
        &mut self,
        candidate: Candidate,
        probe: &Probe,
        kept: Option<&Kept>,
        (backend, exact): (&mut dyn Backend, &mut Option<Box<dyn Loaded>>),
        asked: &mut Asked,
    ) -> Verdict {
        let spec = &self.prepared.spec;
        let model = &self.prepared.model;
        let mut side = ExactSide {
            backend,
            model,
            weights: exact,
            options: self.options,
        };
        let tokens = probe.ids().len() + 1;
        let policy = Policy {
            id: self.host.verdict_id(),
            mode: spec.options.f2,
            judged_ms: self.host.today(),
        };
        let mut reference = Reference {
            model,
            open: &mut || side.open(tokens),
            remembered: kept.and_then(Kept::recall),
        };
        let clock = self.host.clock();
        let Asked { device, stopped } = asked;
        let host = &mut *self.host;
        let mut progress = |done: usize, total: usize| {
            let at = At {
                stage: LoadStage::Checking,
                device: device.as_ref(),
                done: done as u64,
                total: total as u64,
            };
            let step = host.watch(at);
            *stopped |= step == Step::Stop;
            step
        };
        let mut watching = Watching {
            cancel: CancelToken::any([spec.cancel.clone(), spec.use_reference.clone()]),
            progress: &mut progress,
            now: &*clock,
        };
        guard::verify(&mut reference, candidate, probe, policy, &mut watching)
    }

    fn live(&mut self, placed: Placed) -> Live {
        let Prepared {
            spec,
            model,
            tokenizer,
            options: wished,
        } = self.prepared;
        let options = self.options;
        let is_shorter = options.ctx_len < wished.ctx_len;
        let info = LoadedModel {
            id: self.id,
            path: spec.path.clone(),
            tokenizer: Arc::clone(tokenizer),
            grammars: Arc::default(),
            vocabulary: model.graph.hparams.vocabulary,
            ctx_len: options.ctx_len,
            ctx_wished: is_shorter.then_some(wished.ctx_len),
            slots: spec.options.slots,
            device: placed.device,
            passed_over: std::mem::take(&mut self.passed_over),
            proof: placed.proof,
            numerics: placed.numerics,
            kv: options.kv,
            footprint: self.prepared.footprint(options, self.threads),
            weights_bytes: placed.weights.weights_bytes(),
            load_time: (self.host.clock())().saturating_duration_since(self.started),
            model: Arc::clone(model),
        };
        Live {
            serving: placed.serving,
            weights: placed.weights,
            exact: placed.exact,
            remembered: placed.remembered,
            info: Arc::new(info),
            options,
            wish: spec.options.device,
            mode: spec.options.f2,
            probe: spec.probe.clone(),
        }
    }
}
