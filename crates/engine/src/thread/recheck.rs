//! Checks of a device that serves: after the machine has slept, and while nobody waits.

use std::mem;
use std::sync::Arc;

use candor_backend::{CancelToken, OpenOptions, Step};

use super::Worker;
use super::device::{Ask, is_on_device};
use super::sleep::Sleep;
use crate::guard::{
    self, AUDIT_THREADS_MAX, AUDIT_TOKENS_MAX, Audited, Candidate, NotJudged, Probe,
};
use crate::load::{Live, Proof, Serving, WhyNot};
use crate::message::{Recheck, RecheckJob, Rechecked};

impl Worker {
    /// Holds a device that serves against the reference once more.
    pub(super) fn recheck(&mut self, job: RecheckJob) {
        let RecheckJob {
            what,
            cancel,
            answer,
        } = job;
        let mut proven = Rechecked::NotNeeded;
        if self.owes_proof() {
            // An audit ends for whoever comes; what he needs as well does not.
            let cancel = match what {
                Recheck::AfterSleep => cancel.clone(),
                Recheck::Audit => CancelToken::new(),
            };
            proven = self.probe_again(cancel);
        }
        let rechecked = match what {
            Recheck::Audit if self.device_serves() => self.audit(cancel),
            Recheck::Audit | Recheck::AfterSleep => proven,
        };
        // Nobody may be waiting for the answer; the state says the same.
        answer.send(rechecked).ok();
    }

    fn device_serves(&self) -> bool {
        let serves = |live: &Live| is_on_device(live) && matches!(live.serving, Serving::Ready(_));
        self.live.as_ref().is_some_and(serves)
    }

    /// Whether a device serves that was not proven since the machine has slept.
    pub(super) fn owes_proof(&mut self) -> bool {
        self.device_serves() && self.sleep.owes_proof(&self.config)
    }

    /// Proves the device before what is being written goes on. All who wait may stop it; then the
    /// next prompt decides.
    pub(super) fn prove_after_sleep(&mut self) {
        let cancels = self
            .sequences
            .iter()
            .map(|sequence| sequence.cancel.clone());
        // What it came to is in the state, and in the replies that move.
        let _ = self.probe_again(CancelToken::all(cancels));
        self.end_stopped();
    }

    fn probe_again(&mut self, cancel: CancelToken) -> Rechecked {
        let Some(live) = &self.live else {
            return Rechecked::NotNeeded;
        };
        // From here on it serves proven, or it does not serve.
        self.sleep = Sleep::begin(&self.config);
        let subject = live.info.subject();
        let probe = match &live.probe {
            Some(ids) => Probe::of_text(ids, subject),
            None => Probe::built_in(subject),
        };
        let probe = match probe {
            Ok(probe) => probe,
            Err(reason) => {
                self.fall_back(WhyNot::NotJudged(reason.clone()));
                return Rechecked::NotJudged(reason);
            }
        };
        let ask = Ask {
            mode: live.mode,
            probe: &probe,
            remembered: live.remembered.clone(),
            cancel,
            threads: usize::MAX,
        };
        let mut heard = |worker: &mut Self, done: usize, total: usize| {
            worker.inbox.take_in();
            // Whoever asked for the proof: who waits for a reply may stop that.
            worker.end_stopped();
            let live = worker.sequences.iter_mut().filter(|s| s.is_live());
            live.for_each(|sequence| sequence.say_proving(done, total));
            Step::Go
        };
        let judged = self.judge(ask, &mut heard);
        // The check took all slots. What was being written goes on once its context was read again.
        for sequence in self.sequences.iter_mut().filter(|_| judged.is_some()) {
            sequence.slot = None;
        }
        match judged {
            None => Rechecked::NotNeeded,
            Some(Ok(report)) => {
                // What is written from here on is by this proof, and its record has to name it. Who
                // waits for one on a prompt of his own still does.
                let told = self.sequences.iter_mut();
                for sequence in told.filter(|s| s.is_live() && !s.awaits_proof) {
                    sequence.say_proven(Arc::clone(&report));
                }
                self.now_proven(Arc::clone(&report));
                Rechecked::Kept(report)
            }
            Some(Err(WhyNot::Rejected(report))) => {
                self.fall_back(WhyNot::Rejected(Arc::clone(&report)));
                Rechecked::Withdrawn(report)
            }
            // What was not proven again does not serve; the next prompt decides.
            Some(Err(WhyNot::NotJudged(reason @ NotJudged::Stopped))) => {
                self.now_by(Proof::Awaited);
                Rechecked::NotJudged(reason)
            }
            Some(Err(why)) => {
                let reason = why.to_string();
                self.fall_back(why);
                Rechecked::NotJudged(NotJudged::Candidate { reason })
            }
        }
    }

    /// Audits the device on the conversation that was written last.
    fn audit(&mut self, cancel: CancelToken) -> Rechecked {
        let Some(mut live) = self.live.take() else {
            return Rechecked::NotNeeded;
        };
        let Serving::Ready(servable) = mem::replace(&mut live.serving, Serving::Nobody) else {
            self.live = Some(live);
            return Rechecked::NotNeeded;
        };
        let written = servable.slots().iter().max_by_key(|slot| slot.used);
        let mut ids = written.map_or(Vec::new(), |slot| slot.tokens.clone());
        ids.truncate(AUDIT_TOKENS_MAX);
        let options = OpenOptions {
            slots_max: 1,
            state_tokens: (ids.len() + candor_arch::PAGE_TOKENS).min(live.options.ctx_len),
            ..live.options
        };
        let probe = Probe::of_prompt(&ids, live.info.subject());
        let session = live.weights.open(options);
        let ready = match (probe, session) {
            (Err(reason), _) => Err(reason),
            (_, Err(error)) => Err(NotJudged::Candidate {
                reason: error.to_string(),
            }),
            (Ok(probe), Ok(session)) => Ok((probe, session)),
        };
        let audited = match ready {
            Err(reason) => Audited::NotJudged(servable, reason),
            Ok((probe, session)) => {
                let audited = Candidate::new(session, live.info.device.clone());
                let ask = Ask {
                    mode: live.mode,
                    probe: &probe,
                    remembered: None,
                    cancel,
                    threads: AUDIT_THREADS_MAX,
                };
                // Whoever asks for anything comes first.
                let mut heard = |worker: &mut Self, _: usize, _: usize| {
                    worker.inbox.take_in();
                    match worker.inbox.backlog.is_empty() {
                        true => Step::Go,
                        false => Step::Stop,
                    }
                };
                self.with_reference(
                    &mut live,
                    &ask,
                    &mut heard,
                    |reference, policy, watching| {
                        guard::audit(reference, (servable, audited), &probe, policy, watching)
                    },
                )
            }
        };
        let (serving, rechecked) = match audited {
            Audited::Kept(servable, report) => (Serving::Ready(servable), Rechecked::Kept(report)),
            Audited::NotJudged(servable, reason) => {
                (Serving::Ready(servable), Rechecked::NotJudged(reason))
            }
            Audited::Withdrawn(report) => (Serving::Nobody, Rechecked::Withdrawn(report)),
        };
        live.serving = serving;
        self.live = Some(live);
        if let Rechecked::Withdrawn(report) = &rechecked {
            self.fall_back(WhyNot::Rejected(Arc::clone(report)));
        }
        rechecked
    }
}
