//! What the engine thread was told and has not done yet.

use std::collections::VecDeque;
use std::mem;

use candor_backend::CancelToken;
use tokio::sync::mpsc;

use super::INBOX_MAX;
use crate::guard::NotJudged;
use crate::load::LoadFailure;
use crate::message::{Command, Rechecked, TurnCode};
use crate::request::{GenerateRequest, Priority};

/// Commands that were not obeyed yet.
pub(super) struct Inbox {
    pub(super) receiver: mpsc::Receiver<Command>,
    /// Taken out of the channel, so that what is stopped while it waits can be ended.
    pub(super) backlog: VecDeque<Command>,
    pub(super) closing: CancelToken,
}

impl Inbox {
    /// Waits for a command if none is there; false if none can come any more.
    pub(super) fn wait(&mut self) -> bool {
        if self.backlog.is_empty() {
            match self.receiver.blocking_recv() {
                Some(command) => self.backlog.push_back(command),
                None => return false,
            }
        }
        true
    }

    /// Takes in what has come, and ends what was stopped while it waited.
    pub(super) fn take_in(&mut self) {
        while self.backlog.len() < INBOX_MAX
            && let Ok(command) = self.receiver.try_recv()
        {
            self.backlog.push_back(command);
        }
        let is_stopped = |command: &Command| match command {
            Command::Generate(request) => request.cancel.is_cancelled(),
            Command::Load(job) => job.spec.cancel.is_cancelled(),
            Command::Recheck(job) => job.cancel.is_cancelled(),
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
                Command::Recheck(job) if job.cancel.is_cancelled() => {
                    job.answer
                        .send(Rechecked::NotJudged(NotJudged::Stopped))
                        .ok();
                }
                other => self.backlog.push_back(other),
            }
        }
    }

    /// Takes out what persons asked for, as far as it is for the model that is loaded now.
    pub(super) fn take_persons(&mut self) -> Vec<GenerateRequest> {
        let mut persons = Vec::new();
        let mut is_for_this_model = true;
        for command in mem::take(&mut self.backlog) {
            is_for_this_model &= !matches!(command, Command::Load(_) | Command::Unload);
            match command {
                Command::Generate(request)
                    if is_for_this_model && request.priority == Priority::Interactive =>
                {
                    persons.push(*request);
                }
                other => self.backlog.push_back(other),
            }
        }
        persons
    }

    /// Answers everything that was not obeyed.
    pub(super) fn close(&mut self) {
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
                Command::Recheck(job) => {
                    job.answer
                        .send(Rechecked::NotJudged(NotJudged::Stopped))
                        .ok();
                }
                Command::Unload | Command::Wake => {}
            }
        }
    }
}
