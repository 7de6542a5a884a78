//! What was seen of a candidate, as a report says it.

use std::time::Duration;

use candor_backend::DeviceInfo;

use super::judge::{Given, Policy};
use super::routing::Tie;
use super::rules::Row;
use super::verdict::{Basis, FirstBad, Report};

/// What a report says beside what was seen.
pub(super) struct Judged {
    pub(super) policy: Policy,
    pub(super) basis: Basis,
    pub(super) device: DeviceInfo,
    pub(super) reference_time: Duration,
    pub(super) furthest_tie: Tie,
    /// Positions that were to be judged.
    pub(super) asked: usize,
    /// The last of them.
    pub(super) reach: usize,
    /// Forwards that were repeated in the way of a longer context.
    pub(super) ways: usize,
}

impl Judged {
    pub(super) fn report(self, given: &Given, first_bad: Option<FirstBad>) -> Report {
        let evidence = &given.evidence;
        let measures = evidence.positions.iter().filter_map(|seen| match seen.row {
            Row::Compared(measure) => Some(measure),
            Row::Length { .. } | Row::NotFinite => None,
        });
        let (seen, compared) = (evidence.positions.len(), measures.clone().count());
        let same = measures
            .clone()
            .filter(|m| m.reference_token == m.candidate_token);
        // A row that cannot be compared agrees in nothing.
        let lowest = if compared < seen { 0.0 } else { 1.0 };
        // What is repeated in another way is the same position.
        let once = || evidence.positions.iter().filter(|seen| seen.spot.way == 0);
        let in_ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        Report {
            id: self.policy.id,
            mode: self.policy.mode,
            judged_ms: self.policy.judged_ms,
            basis: self.basis,
            device: self.device,
            numerics: evidence.numerics,
            positions: once().count(),
            asked: self.asked,
            reach: self.reach,
            ways: self.ways,
            min_cosine: measures.clone().map(|m| m.cosine).fold(lowest, f64::min),
            max_kl: measures.clone().map(|m| m.kl).fold(0.0, f64::max),
            mean_kl: measures.clone().map(|m| m.kl).fold(0.0, |a, b| a + b)
                / compared.max(1) as f64,
            argmax_agreement: same.count() as f64 / seen.max(1) as f64,
            tie_distance: self.furthest_tie.distance,
            tie_gap: self.furthest_tie.gap,
            near_ties: once().filter(|seen| seen.excused).count(),
            first_bad,
            reference_ms: in_ms(self.reference_time),
            candidate_ms: in_ms(given.time),
        }
    }
}
