//! The engine thread: the only one that touches a session. It obeys commands in the order in
//! which they came, between the steps of the replies that are being written.
//!
//! A load waits until the replies before it have ended. While it runs, its watcher reads the
//! inbox, so that what is stopped meanwhile ends at once, and a shutdown is heard.
//!
//! Nothing that breaks down here ends the thread: every round of the loop is guarded, the replies
//! that were under way end with a code, and the thread goes on without the model. However the
//! thread does end, the state says so.

mod device;
mod inbox;
mod recheck;
mod sleep;

use std::collections::VecDeque;
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candor_backend::{Backend, CancelToken, Step};
use tokio::sync::{mpsc, watch};

use crate::config::{Clock, EngineConfig};
use crate::guard::VerdictId;
use crate::guarded::guarded;
use crate::load::{
    self, At, Host, License, Live, LoadFailure, LoadSpec, LoadedModel, MakeBackends, ModelId,
    Proof, WhyNot,
};
use crate::message::{
    Command, EngineState, FinishReason, LoadJob, Loading, Recheck, Refused, TurnCode, WhyNoModel,
};
use crate::request::GenerateRequest;
use crate::schedule::{self, Lost, Progress};
use crate::sequence::Sequence;

use inbox::Inbox;
use sleep::Sleep;

/// Commands that wait for the engine thread. A person does not fill it; a program that does is
/// told to come back.
pub const INBOX_MAX: usize = 64;

/// Replies that the engine has at once, written or waiting for a slot. More wait in the inbox.
pub const SEQUENCES_MAX: usize = 64;

/// What the engine thread owns.
pub(crate) struct Worker {
    config: EngineConfig,
    backends: Vec<Box<dyn Backend>>,
    inbox: Inbox,
    live: Option<Live>,
    /// How the last load failed, while the model before it stays.
    refused: Option<Refused>,
    sequences: Vec<Sequence>,
    sleep: Sleep,
    loads: u64,
    verdicts: u64,
    /// The last field, and so the last to go: what it says at the end is true of all others.
    state: Told,
}

/// The state as everybody is told it; [`EngineState::Closed`] once there is no thread any more.
struct Told(watch::Sender<EngineState>);

impl Told {
    fn tell(&self, state: EngineState) {
        self.0.send_replace(state);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.tell(EngineState::Closed);
    }
}

impl Worker {
    /// Made on the engine thread: a session never leaves it.
    pub(crate) fn new(
        config: EngineConfig,
        backends: Vec<Box<dyn Backend>>,
        receiver: mpsc::Receiver<Command>,
        state: watch::Sender<EngineState>,
        closing: CancelToken,
    ) -> Self {
        let inbox = Inbox {
            receiver,
            backlog: VecDeque::new(),
            closing,
        };
        let (live, refused, sequences) = (None, None, Vec::new());
        Self {
            config,
            backends,
            inbox,
            live,
            refused,
            sequences,
            sleep: Sleep::default(),
            loads: 0,
            verdicts: 0,
            state: Told(state),
        }
    }

    /// Works until it is told to end, or until nobody can tell it anything any more.
    pub(crate) fn run(mut self) {
        loop {
            match guarded(|| self.round()) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(reason) => self.break_down(TurnCode::Broken, reason),
            }
        }
        // What is not ended here is ended when it is dropped.
        guarded(|| self.close()).ok();
        self.drop_model();
    }

    /// Waits for something to do, and does it.
    fn round(&mut self) -> ControlFlow<()> {
        if self.sequences.is_empty() && !self.inbox.wait() {
            return ControlFlow::Break(());
        }
        self.inbox.take_in();
        if self.inbox.closing.is_cancelled() {
            return ControlFlow::Break(());
        }
        self.obey();
        if !self.sequences.is_empty() {
            self.step();
        }
        ControlFlow::Continue(())
    }

    fn now(&self) -> Instant {
        (self.config.clock)()
    }

    fn obey(&mut self) {
        while let Some(command) = self.inbox.backlog.pop_front() {
            match command {
                Command::Load(_) if !self.sequences.is_empty() => {
                    return self.inbox.backlog.push_front(command);
                }
                Command::Generate(_) if self.sequences.len() >= SEQUENCES_MAX => {
                    self.inbox.backlog.push_front(command);
                    // A person does not wait until programs are through.
                    let persons = self.inbox.take_persons();
                    return persons.into_iter().for_each(|request| self.accept(request));
                }
                Command::Load(job) => self.load(*job),
                Command::Generate(request) => self.accept(*request),
                // A device that may have come back wrong is proven before its next token.
                Command::Recheck(job)
                    if job.what == Recheck::Audit && !self.sequences.is_empty() =>
                {
                    let command = Command::Recheck(job);
                    return self.inbox.backlog.push_front(command);
                }
                Command::Recheck(job) => self.recheck(*job),
                Command::Unload => {
                    self.end_all(TurnCode::Unloaded, &TurnCode::Unloaded.to_string());
                    self.drop_model();
                    self.state.tell(EngineState::NoModel(WhyNoModel::Unloaded));
                }
                Command::Wake => {}
            }
            if self.inbox.closing.is_cancelled() {
                return;
            }
        }
    }

    fn accept(&mut self, request: GenerateRequest) {
        let Some(live) = &self.live else {
            return request.fail(TurnCode::NoModel);
        };
        if request.model != live.info.id {
            return request.fail(TurnCode::ModelChanged);
        }
        let (asked, verdict) = (request.asked, request.verdict);
        let mut sequence = Sequence::new(request, Arc::clone(&live.info.tokenizer));
        sequence.times.asked = asked;
        sequence.also_stopped_by(&self.inbox.closing);
        sequence.awaits_proof = self.judges_every_prompt();
        // It was proven anew while the request was on its way, and the record has to name that.
        if let Proof::Proven(report) = &live.info.proof
            && verdict != Some(report.id)
            && !sequence.awaits_proof
        {
            sequence.say_proven(Arc::clone(report));
        }
        self.sequences.push(sequence);
    }

    fn step(&mut self) {
        if self.owes_proof() {
            self.prove_after_sleep();
        }
        if let Some(i) = self.next_to_prove() {
            return self.prove(i);
        }
        let before = self.now();
        let Some(servable) = self.live.as_mut().and_then(Live::servable) else {
            return self.end_all(TurnCode::NoModel, &TurnCode::NoModel.to_string());
        };
        let (sleep, config, on_device) = (&mut self.sleep, &self.config, !servable.is_reference());
        // A device may have lost its memory while it computed.
        let mut is_void = || on_device && sleep.owes_proof(config);
        let Progress { ended, lost, .. } =
            schedule::step_unless(servable, &mut self.sequences, &mut is_void);
        let after = self.now();
        for sequence in &mut self.sequences {
            sequence.observe(before, after);
        }
        for mut sequence in ended {
            sequence.observe(before, after);
            sequence.close(after, || (TurnCode::Internal, String::new()));
        }
        match lost {
            Some(Lost::Reference(reason)) => self.break_down(TurnCode::DeviceLost, reason),
            Some(Lost::Device(reason)) => self.fall_back(WhyNot::FailedLater { reason }),
            None => {}
        }
    }

    /// Goes on without the model, whose state nobody knows any more.
    fn break_down(&mut self, code: TurnCode, reason: String) {
        self.drop_model();
        let why = WhyNoModel::Broken {
            reason: reason.clone(),
        };
        self.state.tell(EngineState::NoModel(why));
        // Last: who hears that a reply has ended and asks again has to find that there is no model.
        // Where even that breaks down, the logs end themselves.
        guarded(|| self.end_all(code, &reason)).ok();
    }

    fn end_all(&mut self, code: TurnCode, message: &str) {
        // Taken first: whatever breaks down from here on drops them all.
        let sequences = mem::take(&mut self.sequences);
        let now = self.now();
        for sequence in sequences {
            sequence.close(now, || (code, message.to_owned()));
        }
    }

    /// Gives the memory back. A backend that broke down may break down again at that.
    fn drop_model(&mut self) {
        self.refused = None;
        let live = self.live.take();
        // If it does, what it held is lost; the thread is not.
        guarded(move || drop(live)).ok();
    }

    fn load(&mut self, job: LoadJob) {
        let LoadJob {
            spec,
            others,
            answer,
        } = job;
        let path = spec.path.clone();
        let broken = |reason| Err(LoadFailure::Broken { reason });
        let loaded = guarded(|| self.try_load(&spec, others)).unwrap_or_else(broken);
        self.refused = loaded.as_ref().err().map(|failure| Refused {
            path,
            code: failure.code(),
            message: failure.to_string(),
        });
        let refused = self.refused.clone();
        self.state.tell(match (&self.live, refused) {
            (Some(live), refused) => EngineState::Ready {
                model: Arc::clone(&live.info),
                refused,
            },
            (None, Some(refused)) => EngineState::NoModel(WhyNoModel::Refused(refused)),
            (None, None) => EngineState::NoModel(WhyNoModel::NotLoaded),
        });
        // Nobody may be waiting for the answer; the state says the same.
        answer.send(loaded).ok();
    }

    fn try_load(
        &mut self,
        spec: &LoadSpec,
        others: Option<MakeBackends>,
    ) -> Result<Arc<LoadedModel>, LoadFailure> {
        let started = self.now();
        let mut host = Loader {
            worker: self,
            spec,
            started,
        };
        let prepared = load::prepare(spec, &mut |stage, done, total| {
            host.watch(At {
                stage,
                device: None,
                done,
                total,
            })
        })?;
        let replaces = others.is_some();
        self.loads += 1;
        let sleep = Sleep::begin(&self.config);
        let id = ModelId(self.loads);
        // The backends cannot be borrowed while the host has the rest.
        let mut backends = match others {
            Some(make) => make(),
            None => mem::take(&mut self.backends),
        };
        let placed = guarded(|| {
            let mut host = Loader {
                started: self.now(),
                worker: self,
                spec,
            };
            let how = (id, started);
            load::place(&prepared, how, &mut backends, License::Guarded, &mut host)
        });
        let broken = |reason| Err(LoadFailure::Broken { reason });
        let placed = placed.unwrap_or_else(broken);
        // Backends that came with a load that failed go with it.
        if placed.is_ok() || !replaces {
            self.backends = backends;
        }
        let live = placed?;
        let info = Arc::clone(&live.info);
        self.drop_model();
        self.live = Some(live);
        self.sleep = sleep;
        Ok(info)
    }

    /// The model before stays until the new one is ready, if there is memory for both. If not, it
    /// gives way, now that the new file is known to be good. If even that does not help, it stays.
    fn make_room(&mut self, needed_bytes: u64) -> Result<(), LoadFailure> {
        let Some(free) = (self.config.available_memory)() else {
            return Ok(());
        };
        if needed_bytes <= free {
            return Ok(());
        }
        let held = self.live.as_ref().map_or(0, |live| {
            live.info.footprint.total_bytes().min(
                live.info
                    .weights_bytes
                    .saturating_add(live.info.footprint.state_bytes),
            )
        });
        let available_bytes = free.saturating_add(held);
        if needed_bytes > available_bytes {
            return Err(LoadFailure::OutOfMemory {
                needed_bytes,
                available_bytes,
            });
        }
        self.drop_model();
        Ok(())
    }

    pub(crate) fn verdict_id(&mut self) -> VerdictId {
        self.verdicts += 1;
        VerdictId(self.verdicts)
    }

    /// Tells everybody how far a load is, with the model that stays if it fails.
    fn tell_loading(
        &self,
        (path, kept): (&Path, Option<Arc<LoadedModel>>),
        started: Instant,
        at: At<'_>,
    ) {
        let elapsed = self.now().saturating_duration_since(started);
        let At {
            stage,
            device,
            done: done_bytes,
            total: total_bytes,
        } = at;
        let left = (done_bytes > 0 && total_bytes > 0).then(|| {
            elapsed.mul_f64(total_bytes.saturating_sub(done_bytes) as f64 / done_bytes as f64)
        });
        self.state.tell(EngineState::Loading(Loading {
            path: path.to_owned(),
            stage,
            device: device.cloned(),
            done_bytes,
            total_bytes,
            left,
            kept,
        }));
    }

    /// Ends and answers everything.
    fn close(&mut self) {
        // What is being written was stopped; what was not begun was not.
        let (code, message) = (TurnCode::Closed, TurnCode::Closed.to_string());
        for sequence in &mut self.sequences {
            if sequence.cancel.is_cancelled() {
                sequence.finish(FinishReason::Cancelled);
            }
        }
        self.end_all(code, &message);
        self.inbox.close();
    }
}

/// The engine thread while it loads.
struct Loader<'a> {
    worker: &'a mut Worker,
    spec: &'a LoadSpec,
    /// When the stage before this one was over.
    started: Instant,
}

impl Host for Loader<'_> {
    /// Tells how a load goes on and whether it should.
    fn watch(&mut self, at: At<'_>) -> Step {
        let Self {
            worker,
            spec,
            started,
        } = self;
        worker.inbox.take_in();
        if spec.cancel.is_cancelled() || worker.inbox.closing.is_cancelled() {
            return Step::Stop;
        }
        let kept = worker.live.as_ref().map(|live| Arc::clone(&live.info));
        worker.tell_loading((&spec.path, kept), *started, at);
        Step::Go
    }

    fn make_room(&mut self, needed_bytes: u64) -> Result<(), LoadFailure> {
        self.worker.make_room(needed_bytes)
    }

    fn give_way(&mut self) -> bool {
        let on_device = |live: &Live| live.info.proof != Proof::Reference;
        let gives = self.worker.live.as_ref().is_some_and(on_device);
        if gives {
            self.worker.drop_model();
        }
        gives
    }

    fn clock(&self) -> Clock {
        Arc::clone(&self.worker.config.clock)
    }

    fn today(&self) -> i64 {
        (self.worker.config.today)()
    }

    fn verdict_id(&mut self) -> VerdictId {
        self.worker.verdict_id()
    }
}
