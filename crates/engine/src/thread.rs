//! The engine thread: the only one that touches a session. It obeys commands in the order in
//! which they came, between the steps of the replies that are being written.
//!
//! A load waits until the replies before it have ended. While it runs, its watcher reads the
//! inbox, so that what is stopped meanwhile ends at once, and a shutdown is heard.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use candor_backend::{Backend, CancelToken, Step};
use tokio::sync::{mpsc, watch};

use crate::config::EngineConfig;
use crate::load::{self, Live, LoadFailure, LoadedModel, ModelId, Prepared};
use crate::message::{
    Command, EngineState, FinishReason, LoadJob, LoadStage, Loading, Refused, TurnCode, WhyNoModel,
};
use crate::request::GenerateRequest;
use crate::schedule::{self, Progress};
use crate::sequence::Sequence;

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
    state: watch::Sender<EngineState>,
    live: Option<Live>,
    /// How the last load failed, while the model before it stays.
    refused: Option<Refused>,
    sequences: Vec<Sequence>,
    loads: u64,
}

/// Commands that were not obeyed yet.
struct Inbox {
    receiver: mpsc::Receiver<Command>,
    /// Taken out of the channel, so that what is stopped while it waits can be ended.
    backlog: VecDeque<Command>,
    closing: CancelToken,
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
            state,
            live,
            refused,
            sequences,
            loads: 0,
        }
    }

    /// Works until it is told to end, or until nobody can tell it anything any more.
    pub(crate) fn run(mut self) {
        loop {
            if self.sequences.is_empty() && !self.inbox.wait() {
                break;
            }
            self.inbox.take_in();
            if self.inbox.closing.is_cancelled() {
                break;
            }
            self.obey();
            if !self.sequences.is_empty() {
                self.step();
            }
        }
        self.close();
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
                    return self.inbox.backlog.push_front(command);
                }
                Command::Load(job) => self.load(*job),
                Command::Generate(request) => self.accept(*request),
                Command::Unload => {
                    self.end_all(TurnCode::Unloaded, &TurnCode::Unloaded.to_string());
                    self.drop_model();
                    self.state
                        .send_replace(EngineState::NoModel(WhyNoModel::Unloaded));
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
        let asked = request.asked;
        let mut sequence = Sequence::new(request, Arc::clone(&live.info.tokenizer));
        sequence.times.asked = asked;
        sequence.also_stopped_by(&self.inbox.closing);
        self.sequences.push(sequence);
    }

    fn step(&mut self) {
        let before = self.now();
        let Some(live) = &mut self.live else {
            return self.end_all(TurnCode::NoModel, &TurnCode::NoModel.to_string());
        };
        let (servable, sequences) = (&mut live.servable, &mut self.sequences);
        let stepped = catch_unwind(AssertUnwindSafe(|| schedule::step(servable, sequences)));
        let after = self.now();
        match stepped {
            Ok(Progress { ended, lost, .. }) => {
                for sequence in &mut self.sequences {
                    sequence.observe(before, after);
                }
                for mut sequence in ended {
                    sequence.observe(before, after);
                    sequence.close(after, || (TurnCode::Internal, String::new()));
                }
                if let Some(reason) = lost {
                    self.break_down(TurnCode::DeviceLost, reason);
                }
            }
            Err(panic) => self.break_down(TurnCode::Broken, panic_message(&*panic)),
        }
    }

    /// Goes on without the model, whose state nobody knows any more.
    fn break_down(&mut self, code: TurnCode, reason: String) {
        self.end_all(code, &reason);
        self.drop_model();
        self.state
            .send_replace(EngineState::NoModel(WhyNoModel::Broken { reason }));
    }

    fn end_all(&mut self, code: TurnCode, message: &str) {
        let now = self.now();
        for sequence in self.sequences.drain(..) {
            sequence.close(now, || (code, message.to_owned()));
        }
    }

    /// Gives the memory back. A backend that broke down may break down again at that.
    fn drop_model(&mut self) {
        self.refused = None;
        let live = self.live.take();
        // If it does, what it held is lost; the thread is not.
        catch_unwind(AssertUnwindSafe(move || drop(live))).ok();
    }

    fn load(&mut self, job: LoadJob) {
        let LoadJob { spec, answer } = job;
        let path = spec.path.clone();
        let loaded = catch_unwind(AssertUnwindSafe(|| self.try_load(&spec)));
        let loaded = loaded.unwrap_or_else(|panic| {
            Err(LoadFailure::Broken {
                reason: panic_message(&*panic),
            })
        });
        self.refused = loaded.as_ref().err().map(|failure| Refused {
            path,
            code: failure.code(),
            message: failure.to_string(),
        });
        let refused = self.refused.clone();
        self.state.send_replace(match (&self.live, refused) {
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

    fn try_load(&mut self, spec: &load::LoadSpec) -> Result<Arc<LoadedModel>, LoadFailure> {
        let started = self.now();
        let clock = Arc::clone(&self.config.clock);
        let elapsed = || clock().saturating_duration_since(started);
        let prepared = load::prepare(spec, &mut |stage, done, total| {
            self.watch_load(spec, started, (stage, done, total))
        })?;
        self.make_room(&prepared)?;
        self.loads += 1;
        let id = ModelId(self.loads);
        // The backends cannot be borrowed while the watcher has the rest.
        let mut backends = mem::take(&mut self.backends);
        let placing_from = self.now();
        let placed = catch_unwind(AssertUnwindSafe(|| {
            let mut watch =
                |stage, done, total| self.watch_load(spec, placing_from, (stage, done, total));
            load::place(prepared, id, &mut backends, &mut watch, &elapsed)
        }));
        self.backends = backends;
        let live = placed.unwrap_or_else(|panic| {
            Err(LoadFailure::Broken {
                reason: panic_message(&*panic),
            })
        })?;
        let info = Arc::clone(&live.info);
        self.drop_model();
        self.live = Some(live);
        Ok(info)
    }

    /// The model before stays until the new one is ready, if there is memory for both. If not, it
    /// gives way, now that the new file is known to be good. If even that does not help, it stays.
    fn make_room(&mut self, prepared: &Prepared) -> Result<(), LoadFailure> {
        let needed_bytes = prepared.footprint.total_bytes();
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

    /// Tells how a load goes on and whether it should.
    fn watch_load(
        &mut self,
        spec: &load::LoadSpec,
        started: Instant,
        (stage, done_bytes, total_bytes): (LoadStage, u64, u64),
    ) -> Step {
        self.inbox.take_in();
        if spec.cancel.is_cancelled() || self.inbox.closing.is_cancelled() {
            return Step::Stop;
        }
        let elapsed = self.now().saturating_duration_since(started);
        let left = (done_bytes > 0 && total_bytes > 0).then(|| {
            elapsed.mul_f64(total_bytes.saturating_sub(done_bytes) as f64 / done_bytes as f64)
        });
        let kept = self.live.as_ref().map(|live| Arc::clone(&live.info));
        let path = spec.path.clone();
        let loading = Loading {
            path,
            stage,
            done_bytes,
            total_bytes,
            left,
            kept,
        };
        self.state.send_replace(EngineState::Loading(loading));
        Step::Go
    }

    fn close(mut self) {
        // What is being written was stopped; what was not begun was not.
        let (code, message) = (TurnCode::Closed, TurnCode::Closed.to_string());
        for sequence in &mut self.sequences {
            if sequence.cancel.is_cancelled() {
                sequence.finish(FinishReason::Cancelled);
            }
        }
        self.end_all(code, &message);
        self.inbox.close();
        self.drop_model();
        self.state.send_replace(EngineState::Closed);
    }
}

impl Inbox {
    /// Waits for a command if none is there; false if none can come any more.
    fn wait(&mut self) -> bool {
        if self.backlog.is_empty() {
            match self.receiver.blocking_recv() {
                Some(command) => self.backlog.push_back(command),
                None => return false,
            }
        }
        true
    }

    /// Takes in what has come, and ends what was stopped while it waited.
    fn take_in(&mut self) {
        while self.backlog.len() < INBOX_MAX
            && let Ok(command) = self.receiver.try_recv()
        {
            self.backlog.push_back(command);
        }
        let is_stopped = |command: &Command| match command {
            Command::Generate(request) => request.cancel.is_cancelled(),
            Command::Load(job) => job.spec.cancel.is_cancelled(),
            Command::Unload | Command::Wake => false,
        };
        if !self.backlog.iter().any(is_stopped) {
            return;
        }
        for command in mem::take(&mut self.backlog) {
            match command {
                Command::Generate(request) if request.cancel.is_cancelled() => request.stopped(),
                Command::Load(job) if job.spec.cancel.is_cancelled() => {
                    job.answer.send(Err(LoadFailure::Stopped)).ok();
                }
                other => self.backlog.push_back(other),
            }
        }
    }

    /// Answers everything that was not obeyed.
    fn close(&mut self) {
        self.receiver.close();
        while let Ok(command) = self.receiver.try_recv() {
            self.backlog.push_back(command);
        }
        for command in self.backlog.drain(..) {
            match command {
                Command::Generate(request) if request.cancel.is_cancelled() => request.stopped(),
                Command::Generate(request) => request.fail(TurnCode::Closed),
                Command::Load(job) => {
                    job.answer.send(Err(LoadFailure::Closed)).ok();
                }
                Command::Unload | Command::Wake => {}
            }
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
