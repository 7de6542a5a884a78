//! What a script does, and what goes wrong.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use candor_backend::{Arithmetic, DeviceKind, SessionError, Unavailable, Unsupported};

use crate::random::Random;

/// What goes wrong at a forward.
pub enum Fault {
    /// It is refused or fails.
    Error(SessionError),
    /// It panics.
    Panic,
    /// Its logits are not numbers.
    NotANumber,
    /// It stands still until it is let go or cancelled.
    Stall,
    /// This is called before it computes; a token cancelled here cancels the forward.
    Before(Box<dyn FnOnce() + Send>),
    /// This is called after it has committed.
    After(Box<dyn FnOnce() + Send>),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error(_) => "Error",
            Self::Panic => "Panic",
            Self::NotANumber => "NotANumber",
            Self::Stall => "Stall",
            Self::Before(_) => "Before",
            Self::After(_) => "After",
        })
    }
}

/// What goes wrong at a report of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// It stands still, and asks on, until it is let go or stopped.
    Stall,
    /// It panics.
    Panic,
    /// There is not enough memory.
    OutOfMemory,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) kind: DeviceKind,
    pub(super) unavailable: Option<Unavailable>,
    pub(super) missing: Vec<Unsupported>,
    /// Contexts of at least this many tokens get other logits than they should.
    pub(super) wrong_from: Option<usize>,
    /// So do contexts of fewer.
    pub(super) wrong_below: usize,
    /// Lengths of context up to each of which a few rows are computed in a way of its own.
    pub(super) ways: Vec<usize>,
    tokens: Range<u32>,
    pub(super) reply: VecDeque<u32>,
    pub(super) faults: Vec<(usize, Fault)>,
    pub(super) load_reports: usize,
    pub(super) load_fault: Option<(usize, LoadFault)>,
    pub(super) cut_tokens: usize,
    /// What writing computes with, by its own word.
    pub(super) decode: Arithmetic,
    /// Whether it gives rows before they become logits.
    pub(super) offers_rows: bool,
}

/// By how much the favoured token's logit is above all others.
const FAVOUR: f32 = 4.0;

impl Plan {
    pub(super) fn new(tokens: Range<u32>) -> Self {
        Self {
            kind: DeviceKind::Cpu,
            unavailable: None,
            missing: Vec::new(),
            wrong_from: None,
            wrong_below: 0,
            ways: Vec::new(),
            tokens,
            reply: VecDeque::new(),
            faults: Vec::new(),
            load_reports: 4,
            load_fault: None,
            cut_tokens: 1,
            decode: Arithmetic::F32,
            offers_rows: true,
        }
    }

    /// What is to go wrong at this forward.
    pub(super) fn take_fault(&mut self, forward: usize) -> Option<Fault> {
        let at = self
            .faults
            .iter()
            .position(|(planned, _)| *planned == forward)?;
        Some(self.faults.swap_remove(at).1)
    }

    /// Logits after `context`: noise from 0 to 1, and one token above it.
    pub(super) fn logits(&mut self, context: &[u32], vocabulary: usize) -> Vec<f32> {
        let fold = |hash: u64, &token: &u32| Random::new(hash ^ u64::from(token)).bits();
        let wrong = self.wrong_from.is_some_and(|from| context.len() >= from)
            || context.len() < self.wrong_below;
        let mut random = Random::new(context.iter().fold(u64::from(wrong), fold));
        let choices = self.tokens.len().max(1);
        let by_context = self.tokens.start + random.below(choices) as u32;
        let favoured = self.reply.pop_front().unwrap_or(by_context);
        let mut logits: Vec<f32> = (0..vocabulary)
            .map(|_| random.signed_unit().abs())
            .collect();
        if let Some(logit) = logits.get_mut(favoured as usize) {
            *logit += FAVOUR;
        }
        logits
    }
}
