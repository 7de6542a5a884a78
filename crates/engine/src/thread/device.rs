//! The engine thread with a device that is not the reference: proofs on prompts, checks while it
//! serves, and the way back to the reference.

use std::mem;
use std::sync::Arc;

use candor_backend::{Backend, CancelToken, OpenOptions, Step};

use super::Worker;
use crate::guard::{
    self, Mode, NotJudged, Policy, Probe, Reference, Remembered, Report, Verdict, Watching,
};
use crate::guarded::guarded;
use crate::load::{
    At, DeviceWish, ExactSide, Live, LoadFailure, LoadedModel, PassedOver, Proof, Serving, Source,
    WhyNot, reference_live,
};
use crate::message::{EngineState, FinishReason, TurnCode};

/// What a check is asked for with.
pub(super) struct Ask<'a> {
    pub(super) mode: Mode,
    pub(super) probe: &'a Probe,
    pub(super) remembered: Option<Arc<Remembered>>,
    pub(super) cancel: CancelToken,
    /// Threads of the reference at most.
    pub(super) threads: usize,
}

/// Hears how far a check is.
pub(super) type Heard<'a> = dyn FnMut(&mut Worker, usize, usize) -> Step + 'a;

impl Worker {
    pub(super) fn judges_every_prompt(&self) -> bool {
        let every = |live: &Live| live.mode == Mode::EveryPrompt && is_on_device(live);
        self.live.as_ref().is_some_and(every)
    }

    /// The reply on whose prompt the device has to be proven before anything else is computed.
    pub(super) fn next_to_prove(&self) -> Option<usize> {
        let live = self.live.as_ref()?;
        let mut open = self.sequences.iter().filter(|s| s.is_live());
        let waits = match &live.serving {
            Serving::Awaiting(_) => true,
            // The check takes a slot, and what was proven is written first.
            Serving::Ready(_) => self.judges_every_prompt() && open.all(|s| s.awaits_proof),
            Serving::Nobody => false,
        };
        let asked = (0..self.sequences.len()).filter(|i| waits && self.sequences[*i].is_live());
        asked.min_by_key(|i| self.sequences[*i].priority)
    }

    /// Proves the device on the prompt of a reply, which then begins.
    pub(super) fn prove(&mut self, mut i: usize) {
        self.end_stopped();
        let Some(live) = &self.live else {
            return;
        };
        // Whoever is first may have been stopped just now.
        let Some(sequence) = self.sequences.get(i) else {
            return;
        };
        let cancel = sequence.cancel.clone();
        let probes = match probes(live, sequence.prompt()) {
            Ok(probes) => probes,
            Err(reason) => return self.fall_back(WhyNot::NotJudged(reason)),
        };
        let mut heard = |worker: &mut Self, done: usize, total: usize| {
            worker.inbox.take_in();
            // The one that is proven on ends the proof itself.
            i = worker.end_stopped_but(i);
            worker.sequences[i].say_proving(done, total);
            Step::Go
        };
        let mode = live.mode;
        let mut verdict = None;
        for probe in &probes {
            let ask = Ask {
                mode,
                probe,
                remembered: None,
                cancel: cancel.clone(),
                threads: usize::MAX,
            };
            verdict = self.judge(ask, &mut heard);
            if !matches!(verdict, Some(Ok(_))) {
                break;
            }
        }
        let Some(verdict) = verdict else {
            return;
        };
        match verdict {
            Ok(report) => {
                self.sequences[i].say_proven(Arc::clone(&report));
                self.now_proven(report);
            }
            // The reply was stopped; the next one asks again.
            Err(WhyNot::NotJudged(NotJudged::Stopped)) => self.end_stopped(),
            Err(why) => self.fall_back(why),
        }
    }

    /// Ends the replies that were stopped.
    pub(super) fn end_stopped(&mut self) {
        self.end_stopped_but(usize::MAX);
    }

    /// Ends the replies that were stopped, but for one, and says where that one is then.
    fn end_stopped_but(&mut self, kept: usize) -> usize {
        let now = self.now();
        let (mut at, mut kept_at) = (0, kept);
        let stopped = |sequence: &mut crate::Sequence| {
            let ends = at != kept && sequence.cancel.is_cancelled();
            if ends && at < kept {
                kept_at -= 1;
            }
            at += 1;
            ends
        };
        let stopped: Vec<_> = self.sequences.extract_if(.., stopped).collect();
        for mut sequence in stopped {
            sequence.finish(FinishReason::Cancelled);
            sequence.close(now, || (TurnCode::Internal, String::new()));
        }
        kept_at
    }

    /// Takes the right to serve from what has it, and gives it back if the guard accepts it. None
    /// if nothing serves.
    pub(super) fn judge(
        &mut self,
        ask: Ask<'_>,
        heard: &mut Heard<'_>,
    ) -> Option<Result<Arc<Report>, WhyNot>> {
        let mut live = self.live.take()?;
        let candidate = match mem::replace(&mut live.serving, Serving::Nobody) {
            Serving::Ready(servable) => servable.into_candidate(live.info.device.clone()),
            Serving::Awaiting(candidate) => candidate,
            Serving::Nobody => return None,
        };
        let verdict = self.with_reference(&mut live, &ask, heard, |reference, policy, watching| {
            guard::verify(reference, candidate, ask.probe, policy, watching)
        });
        let judged = match verdict {
            Verdict::Accepted {
                servable, report, ..
            } => {
                live.serving = Serving::Ready(servable);
                Ok(report)
            }
            Verdict::Rejected(report) => Err(WhyNot::Rejected(report)),
            Verdict::NotJudged { reason, candidate } => {
                live.serving = Serving::Awaiting(candidate);
                Err(WhyNot::NotJudged(reason))
            }
        };
        self.live = Some(live);
        Some(judged)
    }

    /// Runs a check with the reference's side of it.
    pub(super) fn with_reference<T>(
        &mut self,
        live: &mut Live,
        ask: &Ask<'_>,
        heard: &mut Heard<'_>,
        check: impl FnOnce(&mut Reference<'_>, Policy, &mut Watching<'_>) -> T,
    ) -> T {
        let policy = Policy {
            id: self.verdict_id(),
            mode: ask.mode,
            judged_ms: (self.config.today)(),
        };
        let clock = Arc::clone(&self.config.clock);
        // The backends cannot be borrowed while the watcher has the rest.
        let mut backends = mem::take(&mut self.backends);
        let cancel = CancelToken::any([ask.cancel.clone(), self.inbox.closing.clone()]);
        let info = Arc::clone(&live.info);
        let (weights, options) = (&mut live.exact, live.options);
        let tokens = ask.probe.ids().len() + 1;
        let threads = ask.threads;
        let mut open = || match backends.last_mut() {
            Some(backend) => {
                let mut side = ExactSide {
                    backend: &mut **backend,
                    model: &info.model,
                    weights,
                    options,
                };
                let mut session = side.open(tokens)?;
                session.at_ease(threads);
                Ok(session)
            }
            None => Err(LoadFailure::NoBackend.to_string()),
        };
        let mut reference = Reference {
            model: &info.model,
            open: &mut open,
            remembered: ask.remembered.clone(),
        };
        let mut progress = |done: usize, total: usize| heard(self, done, total);
        let mut watching = Watching {
            cancel,
            progress: &mut progress,
            now: &*clock,
        };
        let checked = check(&mut reference, policy, &mut watching);
        self.backends = backends;
        checked
    }

    pub(super) fn now_proven(&mut self, report: Arc<Report>) {
        self.now_by(|_| Proof::Proven(report));
    }

    /// Tells everybody by what right the device serves.
    pub(super) fn now_by(&mut self, right: impl FnOnce(Mode) -> Proof) {
        if let Some(live) = &mut self.live {
            live.info = Arc::new(LoadedModel {
                proof: right(live.mode),
                ..LoadedModel::clone(&live.info)
            });
        }
        self.tell_ready();
    }

    fn tell_ready(&self) {
        if let Some(live) = &self.live {
            self.state.tell(EngineState::Ready {
                model: Arc::clone(&live.info),
                refused: self.refused.clone(),
            });
        }
    }

    /// Goes on with the reference, at the same tokens. What computed before is given up and not
    /// asked again until the model is loaded again.
    pub(super) fn fall_back(&mut self, why: WhyNot) {
        let reason = why.to_string();
        let Some(live) = self.live.take() else {
            return;
        };
        let Live {
            serving,
            weights,
            exact,
            info,
            options,
            wish,
            ..
        } = live;
        // What broke down may break down again when it is given up.
        guarded(move || drop((serving, exact, weights))).ok();
        if wish == DeviceWish::Device {
            let code = match why {
                WhyNot::Rejected(_) => TurnCode::DeviceRejected,
                WhyNot::NotJudged(_) => TurnCode::DeviceNotJudged,
                _ => TurnCode::DeviceLost,
            };
            return self.break_down(code, format!("{}: {reason}", info.device.name));
        }
        let mut backends = mem::take(&mut self.backends);
        let placed = guarded(|| {
            self.refuse_too_large(&info)?;
            self.open_reference(&info, options, &mut backends)
        });
        self.backends = backends;
        let failure = match placed {
            Ok(Ok(live)) => return self.go_on(live, (&info, why)),
            Ok(Err(failure)) => failure.to_string(),
            Err(panic) => panic,
        };
        let reason = format!("{reason}; the processor cannot go on: {failure}");
        self.break_down(TurnCode::DeviceLost, reason);
    }

    /// The processor takes the memory that a load of the model would take.
    fn refuse_too_large(&self, info: &LoadedModel) -> Result<(), LoadFailure> {
        let needed_bytes = info.footprint.total_bytes();
        match (self.config.available_memory)() {
            Some(available_bytes) if needed_bytes > available_bytes => {
                Err(LoadFailure::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                })
            }
            _ => Ok(()),
        }
    }

    fn open_reference(
        &mut self,
        info: &Arc<LoadedModel>,
        options: OpenOptions,
        backends: &mut [Box<dyn Backend>],
    ) -> Result<Live, LoadFailure> {
        let backend = backends.last_mut().ok_or(LoadFailure::NoBackend)?;
        let device = backend.probe().map_err(LoadFailure::NoDevice)?;
        let started = self.now();
        let mut watch = |stage, done, total| {
            self.inbox.take_in();
            self.end_stopped();
            let at = At {
                stage,
                device: Some(&device),
                done,
                total,
            };
            self.tell_loading((&info.path, Some(Arc::clone(info))), started, at);
            match self.inbox.closing.is_cancelled() {
                true => Step::Stop,
                false => Step::Go,
            }
        };
        let source = Source {
            path: &info.path,
            model: &info.model,
            options,
        };
        let (servable, weights) = reference_live(source, &mut **backend, &mut watch)?;
        let live = Live {
            info: Arc::new(LoadedModel {
                numerics: servable.session().numerics(),
                weights_bytes: weights.weights_bytes(),
                proof: Proof::Reference,
                device,
                ..LoadedModel::clone(info)
            }),
            serving: Serving::Ready(servable),
            weights,
            exact: None,
            remembered: None,
            options,
            wish: DeviceWish::Auto,
            mode: Mode::Probe,
            probe: None,
        };
        Ok(live)
    }

    fn go_on(&mut self, mut live: Live, (before, why): (&LoadedModel, WhyNot)) {
        let reason = why.to_string();
        let mut info = LoadedModel::clone(&live.info);
        info.passed_over.push(PassedOver {
            device: Some(before.device.clone()),
            why,
        });
        live.info = Arc::new(info);
        if let Some(servable) = live.servable() {
            let served = servable.served();
            for sequence in &mut self.sequences {
                sequence.move_to(served, &reason);
            }
        }
        self.live = Some(live);
        self.tell_ready();
    }
}

/// What a device is to be judged by before it writes a reply: the prompt, last. A prompt that is
/// long says nothing of the ways in which shorter contexts are computed. Where it is the only one,
/// the built-in text is judged as well; so too where it takes the place of a proof that was stopped.
fn probes(live: &Live, prompt: &[u32]) -> Result<Vec<Probe>, NotJudged> {
    let subject = live.info.subject();
    let prompt = Probe::of_prompt(prompt, subject)?;
    let is_long = match &live.serving {
        Serving::Awaiting(candidate) => candidate.shortest_way() < prompt.ids().len(),
        Serving::Ready(_) | Serving::Nobody => false,
    };
    let short = (is_long && live.mode != Mode::EveryPrompt).then(|| Probe::built_in(subject));
    short.into_iter().chain([Ok(prompt)]).collect()
}

pub(super) fn is_on_device(live: &Live) -> bool {
    live.info.proof != Proof::Reference
}
