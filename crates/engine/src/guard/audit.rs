//! Checks while nobody waits: on what a user really wrote, at its true positions, so that long
//! contexts are judged too.

use std::sync::Arc;
use std::time::Duration;

use super::judge::{Policy, Reference, verified};
use super::probe::Probe;
use super::run::Watching;
use super::verdict::{NotJudged, Report};
use super::{Candidate, Servable};

/// Time without input after which somebody is taken to be away.
pub const IDLE_MIN: Duration = Duration::from_secs(60);

/// Tokens of the longest conversation that is audited: the reference reads all of it.
pub const AUDIT_TOKENS_MAX: usize = 4_096;

/// Threads of the reference in an audit: whoever is at the machine has the others.
pub const AUDIT_THREADS_MAX: usize = 2;

/// Share of an hour that audits may take.
pub const AUDIT_SHARE: f64 = 0.02;

/// The hour.
pub const HOUR: Duration = Duration::from_secs(3_600);

/// How a device that serves came out of an audit.
pub enum Audited {
    /// It serves on.
    Kept(Servable, Arc<Report>),
    /// It has lost the right to.
    Withdrawn(Arc<Report>),
    /// Nobody knows; it serves on as before.
    NotJudged(Servable, NotJudged),
}

/// Holds another session of the same weights on the same device against the reference. The one
/// that serves keeps its conversations, and loses the right to serve if that is rejected.
pub fn audit(
    reference: &mut Reference<'_>,
    (servable, mut audited): (Servable, Candidate),
    probe: &Probe,
    policy: Policy,
    watching: &mut Watching<'_>,
) -> Audited {
    match verified(reference, &mut audited, probe, policy, watching) {
        Ok((report, _)) if report.first_bad.is_some() => Audited::Withdrawn(Arc::new(report)),
        Ok((report, _)) => Audited::Kept(servable, Arc::new(report)),
        Err(reason) => Audited::NotJudged(servable, reason),
    }
}

/// Where the machine gets its power from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The mains.
    Mains,
    /// A battery, or nobody knows.
    Battery,
}

/// What decides whether there is an audit now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Since somebody last pressed a key or moved the mouse, or a reply ended.
    pub idle: Duration,
    /// Where the power comes from.
    pub power: Power,
    /// Tokens of the conversation that would be audited.
    pub tokens: usize,
    /// Time that audits took in the last hour.
    pub spent: Duration,
    /// Time that this one will take, as far as can be known; that of the last one.
    pub expected: Duration,
}

/// Why there is no audit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAudit {
    /// Somebody is there.
    InUse,
    /// The power is the battery's.
    OnBattery,
    /// There is nothing to audit.
    NothingWritten,
    /// The conversation is too long.
    TooLong,
    /// There were enough of them in this hour.
    EnoughThisHour,
}

impl Conditions {
    /// Time that audits may take in an hour.
    pub fn budget() -> Duration {
        HOUR.mul_f64(AUDIT_SHARE)
    }

    /// Whether there may be an audit now.
    ///
    /// # Errors
    /// [`NoAudit`], the first reason against it.
    pub fn allow(&self) -> Result<(), NoAudit> {
        let reasons = [
            (self.idle < IDLE_MIN, NoAudit::InUse),
            (self.power != Power::Mains, NoAudit::OnBattery),
            (self.tokens == 0, NoAudit::NothingWritten),
            (self.tokens > AUDIT_TOKENS_MAX, NoAudit::TooLong),
            (
                self.spent.saturating_add(self.expected) > Self::budget(),
                NoAudit::EnoughThisHour,
            ),
        ];
        match reasons.into_iter().find(|(holds, _)| *holds) {
            Some((_, reason)) => Err(reason),
            None => Ok(()),
        }
    }
}
