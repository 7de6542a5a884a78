//! Running a probe through a session, one forward at a time.

use std::time::{Duration, Instant};

use candor_backend::{
    Batch, CancelToken, Feed, Outcome, Row, RowOutput, Rows, Session, SessionError, SlotId, Step,
    Tap, Want,
};

use super::probe::{Cut, Probe};
use super::rules::Spot;
use super::verdict::Path;

/// Whoever waits for a verdict.
pub struct Watching<'a> {
    /// Ends the check, also within a forward.
    pub cancel: CancelToken,
    /// Hears how many positions of how many are done, and may stop it.
    pub progress: &'a mut dyn FnMut(usize, usize) -> Step,
    /// The time.
    pub now: &'a dyn Fn() -> Instant,
}

/// Why a run ended early.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    Stopped,
    Failed(SessionError),
}

impl From<SessionError> for Ended {
    fn from(error: SessionError) -> Self {
        Self::Failed(error)
    }
}

/// Rows of the reference's forwards: enough to use a dequantised weight often, few enough that
/// progress is seen and that the rows of logits are no burden.
const REFERENCE_ROWS_MAX: usize = 48;

/// A session with a probe in one of its slots.
pub(crate) struct Runner<'a> {
    session: &'a mut dyn Session,
    slot: SlotId,
    rows: Rows,
    /// Time in forwards.
    pub(crate) spent: Duration,
}

impl<'a> Runner<'a> {
    /// Empties the last slot: pointers into the pool are not all zero there if there are several.
    pub(crate) fn new(session: &'a mut dyn Session) -> Result<Self, Ended> {
        let slot = SlotId(session.slots().saturating_sub(1));
        session.take_way(0);
        session.reset(slot)?;
        Ok(Self {
            session,
            slot,
            rows: Rows::default(),
            spent: Duration::ZERO,
        })
    }

    pub(crate) fn session(&mut self) -> &mut dyn Session {
        self.session
    }

    pub(crate) fn slot(&self) -> SlotId {
        self.slot
    }

    /// Brings the slot to where a forward of a run begins, in the way in which it is computed. What
    /// is repeated begins where the one before it did.
    pub(crate) fn stand(
        &mut self,
        (cuts, at): (&[Cut], usize),
        ids: &[u32],
        watching: &mut Watching<'_>,
    ) -> Result<(), Ended> {
        let start = cuts[at].rows.start;
        let comes_back = |next: &Cut| next.rows.start == start;
        self.session.take_way(0);
        self.come_to(start, ids, watching)?;
        if cuts.get(at + 1).is_some_and(comes_back) {
            self.session.checkpoint(self.slot)?;
        }
        self.session.take_way(cuts[at].way);
        Ok(())
    }

    fn come_to(
        &mut self,
        position: usize,
        ids: &[u32],
        watching: &mut Watching<'_>,
    ) -> Result<(), Ended> {
        if self.session.position(self.slot) == position {
            return Ok(());
        }
        let reached = self.session.seek(self.slot, position)?;
        if reached < position {
            self.forward(&ids[reached..position], |_| Want::Nothing, watching)?;
        }
        Ok(())
    }

    /// One forward of `tokens`, each of which wants what `want` says of its place.
    pub(crate) fn forward(
        &mut self,
        tokens: &[u32],
        want: impl Fn(usize) -> Want,
        watching: &mut Watching<'_>,
    ) -> Result<&mut [RowOutput], Ended> {
        let batch = self.batch(tokens, want);
        let before = (watching.now)();
        let submitted = self.session.submit(&batch, &watching.cancel);
        let outcome = submitted.and_then(|ticket| self.session.collect(ticket, &mut self.rows));
        self.spent += (watching.now)().saturating_duration_since(before);
        match outcome? {
            Outcome::Done => Ok(&mut self.rows.outputs),
            Outcome::Cancelled => Err(Ended::Stopped),
        }
    }

    /// The same with every node shown.
    pub(crate) fn tapped(
        &mut self,
        tokens: &[u32],
        want: impl Fn(usize) -> Want,
        tap: &mut dyn Tap,
        watching: &Watching<'_>,
    ) -> Result<&mut [RowOutput], Ended> {
        let batch = self.batch(tokens, want);
        let showing = (tap, &watching.cancel);
        match self.session.tapped(&batch, showing, &mut self.rows)? {
            Outcome::Done => Ok(&mut self.rows.outputs),
            Outcome::Cancelled => Err(Ended::Stopped),
        }
    }

    fn batch(&self, tokens: &[u32], want: impl Fn(usize) -> Want) -> Batch {
        let row = |(i, token): (usize, &u32)| Row {
            slot: self.slot,
            feed: Feed::Token(*token),
            want: want(i),
        };
        Batch {
            rows: tokens.iter().enumerate().map(row).collect(),
        }
    }
}

/// Shows a row of logits: where it is judged.
pub(crate) type Show<'a> = dyn FnMut(Spot, &mut [f32]) + 'a;

/// Which of how many passes over a probe a run is. Whoever waits hears of positions, each of which
/// is done once every pass has been over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) before: usize,
    pub(crate) of: usize,
}

impl Pass {
    /// The only one.
    pub(crate) const ONLY: Self = Self { before: 0, of: 1 };

    /// Tells that this pass has come to a position.
    pub(crate) fn tell(
        self,
        position: usize,
        positions: usize,
        watching: &mut Watching<'_>,
    ) -> Result<(), Ended> {
        tell(
            watching,
            (self.before * positions + position) / self.of,
            positions,
        )
    }
}

/// Runs a probe in these cuts and shows the rows that are judged.
pub(crate) fn run_all(
    runner: &mut Runner<'_>,
    probe: &Probe,
    (cuts, pass): (&[Cut], Pass),
    watching: &mut Watching<'_>,
    show: &mut Show<'_>,
) -> Result<(), Ended> {
    let first = probe.first_judged();
    for (at, cut) in cuts.iter().enumerate() {
        let start = cut.rows.start;
        pass.tell(start, probe.ids().len() + 1, watching)?;
        let want = |i: usize| match start + i >= first {
            true => Want::Logits,
            false => Want::Nothing,
        };
        runner.stand((cuts, at), probe.ids(), watching)?;
        let outputs = runner.forward(&probe.ids()[cut.rows.clone()], want, watching)?;
        let judged = cut.rows.clone().filter(|position| *position >= first);
        for (position, output) in judged.zip(outputs) {
            if let RowOutput::Logits(logits) = output {
                show(cut.spot(position), logits);
            }
        }
    }
    Ok(())
}

pub(crate) fn tell(watching: &mut Watching<'_>, done: usize, total: usize) -> Result<(), Ended> {
    if watching.cancel.is_cancelled() || (watching.progress)(done, total) == Step::Stop {
        return Err(Ended::Stopped);
    }
    Ok(())
}

/// Cuts of which none has more rows than the reference takes at once.
pub(crate) fn for_reference(probe: &Probe) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for start in (0..probe.ids().len()).step_by(REFERENCE_ROWS_MAX) {
        let rows = start..(start + REFERENCE_ROWS_MAX).min(probe.ids().len());
        let path = Path::Prefill;
        cuts.push(Cut { rows, path, way: 0 });
    }
    cuts
}
