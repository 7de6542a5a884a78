//! A session on a card, as the engine holds it.

use std::sync::Arc;

use candor_backend::{
    Batch, CancelToken, Numerics, Outcome, Rows, Session, SessionError, SlotId, Step, Tap, Ticket,
    Want,
};

use super::desk::{Desk, Key};
use super::line::{Line, Word};
use super::{Asker, Card, Hasty, Patient, Silence};
use crate::session::{About, CudaSession};

/// A session on a card.
pub(crate) struct RemoteSession {
    card: Arc<Card>,
    key: Key,
    about: About,
    /// Where each slot stands, as of the last answer.
    positions: Vec<usize>,
    /// The forwards under way.
    open: Vec<Forward>,
    way: usize,
}

/// A forward under way.
struct Forward {
    ticket: u64,
    /// Who may stop it.
    cancel: CancelToken,
    /// Its slots, and where they stood before it.
    before: Vec<(SlotId, usize)>,
}

/// Who waits for a forward that may be stopped.
struct Stoppable<'a>(&'a CancelToken);

impl Asker for Stoppable<'_> {
    fn wants_to_leave(&mut self) -> bool {
        self.0.is_cancelled()
    }
}

/// Who is shown the nodes of a forward.
struct Shown<'a> {
    tap: &'a mut dyn Tap,
    cancel: &'a CancelToken,
}

impl Asker for Shown<'_> {
    fn wants_to_leave(&mut self) -> bool {
        self.cancel.is_cancelled()
    }

    fn hear(&mut self, word: Word) -> Step {
        if let Word::Node {
            name,
            rows,
            width,
            values,
        } = word
        {
            self.tap.output(&name, rows, width, &values);
        }
        Step::Go
    }
}

/// The tap of the card's thread.
struct Telling<'a>(&'a Line);

impl Tap for Telling<'_> {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        // Whoever has left has cancelled the forward, which ends it.
        let _ = self.0.say(Word::Node {
            name: String::from(node),
            rows,
            width,
            values: values.to_vec(),
        });
    }
}

impl RemoteSession {
    pub(super) fn new(card: Arc<Card>, key: Key, about: About) -> Self {
        Self {
            card,
            key,
            positions: vec![0; about.slots],
            about,
            open: Vec::new(),
            way: 0,
        }
    }

    /// Has the session do something, and learns where its slots stand then.
    fn ask<T: Send + 'static>(
        &mut self,
        asker: &mut dyn Asker,
        job: impl FnOnce(&mut CudaSession, &Line) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        let (key, way) = (self.key, self.way);
        let (done, positions) =
            self.card
                .ask_quick(asker, move |desk: &mut Desk, line: &Line| {
                    let session = desk.session(key);
                    session.take_way(way);
                    let done = job(session, line);
                    let slots = (0..session.slots()).map(SlotId);
                    let positions: Vec<usize> = slots.map(|slot| session.position(slot)).collect();
                    (done, positions)
                })?;
        self.positions = positions;
        Ok(done)
    }

    /// The same where nobody can leave.
    fn do_now<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut CudaSession) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        self.ask(&mut Patient, |session, _| job(session))
            .unwrap_or_else(|silence| Err(lost(silence)))
    }
}

fn lost(silence: Silence) -> SessionError {
    SessionError::DeviceLost {
        reason: silence.into_reason(),
    }
}

/// A forward that was left is one that was cancelled.
fn ended(silence: Silence) -> Result<Outcome, SessionError> {
    match silence {
        Silence::Left => Ok(Outcome::Cancelled),
        lost => Err(self::lost(lost)),
    }
}

/// The ticket of a forward that was left before it had one.
const LEFT: u64 = 0;

impl Session for RemoteSession {
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError> {
        let mut before: Vec<_> = batch.rows.iter().map(|row| row.slot).collect();
        before.dedup();
        let before = before.into_iter().map(|slot| (slot, self.position(slot)));
        let before = before.collect();
        let (batch, token) = (batch.clone(), cancel.clone());
        let submitted = self.ask(&mut Stoppable(cancel), move |session, line| {
            let submitted = session.submit(&batch, &token);
            if let Ok(ticket) = &submitted
                && !line.keeps()
            {
                session.take_back(Ticket(ticket.0));
            }
            submitted
        });
        let ticket = match submitted {
            Ok(submitted) => submitted?.0,
            Err(Silence::Left) => LEFT,
            Err(silence) => return Err(lost(silence)),
        };
        self.open.push(Forward {
            ticket,
            cancel: cancel.clone(),
            before,
        });
        Ok(Ticket(ticket))
    }

    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError> {
        let at = self.open.iter().position(|open| open.ticket == ticket.0);
        let Some(at) = at else {
            return Err(SessionError::BadTicket);
        };
        let Forward { cancel, before, .. } = self.open.remove(at);
        rows.outputs.clear();
        if ticket.0 == LEFT {
            return Ok(Outcome::Cancelled);
        }
        let collected = self.ask(&mut Stoppable(&cancel), move |session, line| {
            let mut rows = Rows::default();
            let outcome = session.collect_if(ticket, &mut rows, &|| line.keeps());
            outcome.map(|outcome| (outcome, rows))
        });
        match collected {
            Ok(collected) => {
                let (outcome, given) = collected?;
                *rows = given;
                Ok(outcome)
            }
            Err(silence) => {
                // Its slots moved on when it was submitted; the thread takes that back once the
                // driver answers, and every question from now on is answered after it.
                for (SlotId(slot), position) in before {
                    if let Some(stands) = self.positions.get_mut(slot) {
                        *stands = position;
                    }
                }
                ended(silence)
            }
        }
    }

    fn tapped(
        &mut self,
        batch: &Batch,
        (tap, cancel): (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        let (batch, token) = (batch.clone(), cancel.clone());
        rows.outputs.clear();
        let tapped = self.ask(&mut Shown { tap, cancel }, move |session, line| {
            let mut rows = Rows::default();
            let showing = (&mut Telling(line) as &mut dyn Tap, &token);
            let outcome = session.tapped_if(&batch, showing, &mut rows, &|| line.keeps());
            outcome.map(|outcome| (outcome, rows))
        });
        match tapped {
            Ok(tapped) => {
                let (outcome, given) = tapped?;
                *rows = given;
                Ok(outcome)
            }
            Err(silence) => ended(silence),
        }
    }

    fn ways(&self) -> Vec<usize> {
        self.about.ways.clone()
    }

    fn take_way(&mut self, context: usize) {
        self.way = context;
    }

    fn offers(&self, want: Want) -> bool {
        self.about.offers(want)
    }

    fn position(&self, slot: SlotId) -> usize {
        self.positions.get(slot.0).copied().unwrap_or(0)
    }

    fn ctx_len(&self) -> usize {
        self.about.ctx_len
    }

    fn slots(&self) -> usize {
        self.about.slots
    }

    fn vocabulary(&self) -> usize {
        self.about.vocabulary
    }

    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.do_now(move |session| session.seek(slot, want))
    }

    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.do_now(move |session| session.checkpoint(slot))
    }

    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.do_now(move |session| session.fork(from, to, len))
    }

    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.do_now(move |session| session.reset(slot))
    }

    fn numerics(&self) -> Numerics {
        self.about.numerics
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        let key = self.key;
        // A thread that hangs gives it back when it can, or never.
        let _ = self
            .card
            .ask(&mut Hasty, move |desk, _| desk.drop_session(key));
    }
}
