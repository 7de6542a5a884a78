//! Who may serve. A token of a reply can only come from a [`Servable`], and one can only be had
//! here: from the reference's own session, or from a device that [`verify`] has held against it.
//!
//! What it proves is the device. Both sides compute the same graph, so a wrong graph agrees with
//! itself; graphs are proven by logits of independent programs, in the golden tests.

mod audit;
mod compare;
mod judge;
mod judged;
mod locate;
mod probe;
mod remembered;
mod routing;
mod rules;
mod run;
mod servable;
mod verdict;

pub use audit::{
    AUDIT_SHARE, AUDIT_THREADS_MAX, AUDIT_TOKENS_MAX, Audited, Conditions, HOUR, IDLE_MIN, NoAudit,
    Power, audit,
};
pub use judge::{OpenReference, Policy, Reference, Verdict, verify};
pub use probe::{DECODE_ROWS_MAX, PROBE_TOKENS, PROMPT_POSITIONS, Probe, Subject};
pub use remembered::{Key, Remembered, RememberedError, VerdictMemory, VerdictStore};
pub use run::Watching;
pub(crate) use servable::unproven;
pub use servable::{Candidate, Servable, Unproven, reference};
pub use verdict::{
    Basis, FirstBad, Located, Mode, NodeDistance, NotJudged, Path, Report, Served, VerdictId,
};

#[cfg(test)]
mod tests;
