//! Holding a candidate against the reference: [`verify`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use candor_backend::{Model, Numerics, RowOutput, Session, SessionError, Want};

use super::compare::{KeptRow, Unfit, best_of};
use super::judged::Judged;
use super::locate::{At, locate};
use super::probe::{Cut, Probe};
use super::remembered::Remembered;
use super::routing::{self, Question, Tie, has_experts};
use super::rules::{Broken, Evidence, OwnBest, RULES, Row, Seen, Spot, asks_for_an_excuse, judge};
use super::run::{Ended, Pass, Runner, Show, Watching, for_reference, run_all};
use super::verdict::{Basis, FirstBad, Located, Mode, NotJudged, Path, Report, VerdictId};
use super::{Candidate, Servable};

/// Opens a session of the reference, with float32 activations and state.
pub type OpenReference<'a> = dyn FnMut() -> Result<Box<dyn Session>, String> + 'a;

/// What a candidate is held against.
pub struct Reference<'a> {
    /// The model that both compute.
    pub model: &'a Model,
    /// Opens a session, which is only done where one is needed.
    pub open: &'a mut OpenReference<'a>,
    /// What the reference said to the same probe before.
    pub remembered: Option<Arc<Remembered>>,
}

/// What kind of verdict is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Tells it from others.
    pub id: VerdictId,
    /// When the device is judged.
    pub mode: Mode,
    /// Today, in milliseconds since 1970.
    pub judged_ms: i64,
}

/// How a candidate was judged.
pub enum Verdict {
    /// It may serve.
    Accepted {
        /// The session that was judged.
        servable: Servable,
        /// What was seen.
        report: Arc<Report>,
        /// What the reference said, to be kept.
        remembered: Arc<Remembered>,
    },
    /// It computes something else.
    Rejected(Arc<Report>),
    /// Nobody knows.
    NotJudged {
        /// Why.
        reason: NotJudged,
        /// The session, unjudged as before.
        candidate: Candidate,
    },
}

/// Judges a candidate by the logits of every judged position of `probe`, read in chunks and then
/// as replies are written, and of one greedy step more.
pub fn verify(
    reference: &mut Reference<'_>,
    mut candidate: Candidate,
    probe: &Probe,
    policy: Policy,
    watching: &mut Watching<'_>,
) -> Verdict {
    match verified(reference, &mut candidate, probe, policy, watching) {
        Ok((report, _)) if report.first_bad.is_some() => Verdict::Rejected(Arc::new(report)),
        Ok((report, remembered)) => Verdict::Accepted {
            servable: candidate.proven(report.id),
            report: Arc::new(report),
            remembered,
        },
        Err(reason) => Verdict::NotJudged { reason, candidate },
    }
}

/// What was seen of a candidate, and what it was held against; for a session of any kind.
pub(super) fn verified(
    reference: &mut Reference<'_>,
    candidate: &mut Candidate,
    probe: &Probe,
    policy: Policy,
    watching: &mut Watching<'_>,
) -> Result<(Report, Arc<Remembered>), NotJudged> {
    let remembered = reference.remembered.take().filter(|kept| kept.is_of(probe));
    let session = &mut *candidate.session;
    let mut trial = Trial {
        reference,
        cuts: probe.all_cuts(&session.ways()),
        candidate: session,
        probe,
        watching,
        session: None,
        reference_time: Duration::ZERO,
        furthest_tie: Tie::default(),
    };
    let mut basis = Basis::Computed;
    let mut outcome = None;
    if let Some(kept) = remembered {
        let mut seen = trial.candidate_run(&kept)?;
        trial.excuse_by(&mut seen.evidence, &kept)?;
        // What does not agree with kept logits is held against the reference itself.
        if judge(RULES, &seen.evidence).is_none() {
            basis = Basis::Remembered;
            outcome = Some((kept, seen));
        }
    }
    let (kept, seen) = match outcome {
        Some(outcome) => outcome,
        None => {
            let mut kept = trial.reference_run()?;
            let mut seen = trial.candidate_run(&kept)?;
            trial.show_routing(&seen.evidence, &mut kept)?;
            trial.excuse_by(&mut seen.evidence, &kept)?;
            (Arc::new(kept), seen)
        }
    };
    let broken = judge(RULES, &seen.evidence);
    let first_bad = match broken {
        Some(broken) => Some(trial.explain(broken, &seen.evidence, &kept)?),
        None => None,
    };
    let judged = Judged {
        policy,
        basis,
        reference_time: trial.reference_time,
        furthest_tie: trial.furthest_tie,
        asked: probe.judged(),
        reach: probe.ids().len(),
        ways: trial.cuts.iter().filter(|cut| cut.way > 0).count(),
        device: candidate.device.clone(),
    };
    // Nothing of the check stays in the way of the first conversation.
    candidate.empty();
    Ok((judged.report(&seen, first_bad), kept))
}

/// A check under way.
struct Trial<'a, 'b, 'c> {
    reference: &'a mut Reference<'b>,
    candidate: &'a mut dyn Session,
    probe: &'a Probe,
    /// The candidate's forwards, the greedy step last.
    cuts: Vec<Cut>,
    watching: &'a mut Watching<'c>,
    /// The reference's session, once one was needed.
    session: Option<Box<dyn Session>>,
    reference_time: Duration,
    /// The furthest from a tie that excuses.
    furthest_tie: Tie,
}

/// What a candidate gave.
pub(super) struct Given {
    pub(super) evidence: Evidence,
    pub(super) time: Duration,
}

fn of_reference(ended: Ended) -> NotJudged {
    match ended {
        Ended::Stopped => NotJudged::Stopped,
        Ended::Failed(error) => NotJudged::Reference {
            reason: error.to_string(),
        },
    }
}

fn of_candidate(ended: Ended) -> NotJudged {
    match ended {
        Ended::Stopped => NotJudged::Stopped,
        Ended::Failed(error) => NotJudged::Candidate {
            reason: error.to_string(),
        },
    }
}

impl Trial<'_, '_, '_> {
    fn session(&mut self) -> Result<&mut dyn Session, NotJudged> {
        if self.session.is_none() {
            let opened = (self.reference.open)();
            let session = opened.map_err(|reason| NotJudged::Reference { reason })?;
            self.session = Some(session);
        }
        let session = self.session.as_mut().expect("it was opened just now");
        Ok(&mut **session)
    }

    /// The logits that the reference gives to the probe.
    fn reference_run(&mut self) -> Result<Remembered, NotJudged> {
        self.session()?;
        let session = self.session.as_mut().expect("it was opened just now");
        let (probe, watching) = (self.probe, &mut *self.watching);
        let judged = probe.judged();
        let pass = Pass { before: 0, of: 2 };
        let mut rows = Vec::with_capacity(judged);
        let mut runner = Runner::new(&mut **session).map_err(of_reference)?;
        let ran = run_all(
            &mut runner,
            probe,
            (&for_reference(probe), pass),
            watching,
            &mut |_, logits| rows.push(KeptRow::new(logits, rows.len(), judged)),
        );
        ran.map_err(of_reference)?;
        let not_finite = || NotJudged::Reference {
            reason: String::from("it gave a value that is not a number"),
        };
        let greedy = rows
            .last()
            .and_then(Option::as_ref)
            .ok_or_else(not_finite)?
            .argmax;
        let step = runner.forward(&[greedy], |_| Want::Logits, watching);
        if let [RowOutput::Logits(logits)] = &step.map_err(of_reference)?[..] {
            rows.push(KeptRow::new(logits, rows.len(), judged));
        }
        self.reference_time = runner.spent;
        let rows: Option<Vec<KeptRow>> = rows.into_iter().collect();
        let rows = rows.ok_or_else(not_finite)?;
        Ok(Remembered::new(probe, greedy, rows))
    }

    /// What the candidate gives to the probe, held against what the reference gave.
    fn candidate_run(&mut self, kept: &Remembered) -> Result<Given, NotJudged> {
        let (probe, watching) = (self.probe, &mut *self.watching);
        let numerics = self.candidate.numerics();
        let pass = match self.session {
            Some(_) => Pass { before: 1, of: 2 },
            None => Pass::ONLY,
        };
        let first = probe.first_judged();
        let spots = self.cuts.iter().flat_map(|cut| {
            let judged = cut.rows.clone().filter(|position| *position >= first);
            judged.map(|position| cut.spot(position))
        });
        let spots: Vec<Spot> = spots.collect();
        let mut runner = Runner::new(self.candidate).map_err(of_candidate)?;
        let mut positions = Vec::with_capacity(spots.len());
        let mut show = |spot: Spot, logits: &mut [f32]| {
            if let Some(row) = kept.row(spot.position) {
                positions.push(seen(row, logits, spot));
            }
        };
        let (_, cuts) = self.cuts.split_last().expect("the greedy step is one");
        let ran = run_all(&mut runner, probe, (cuts, pass), watching, &mut show);
        let ran = ran.and_then(|()| {
            let len = probe.ids().len();
            pass.tell(len, len + 1, watching)?;
            greedy_step(&mut runner, kept.greedy(), watching, &mut show)
        });
        let mut best = None;
        match ran {
            Ok(own) => best = own,
            Err(Ended::Failed(SessionError::NotFinite { .. })) => {
                let (spot, row) = (next_of(&spots, positions.len()), Row::NotFinite);
                let excused = false;
                positions.push(Seen { spot, row, excused });
            }
            Err(ended) => return Err(of_candidate(ended)),
        }
        let evidence = Evidence {
            numerics,
            asked: spots.len(),
            next: next_of(&spots, positions.len()),
            positions,
            best,
        };
        let time = runner.spent;
        Ok(Given { evidence, time })
    }

    /// The spots that an excuse would help.
    fn asking(&self, evidence: &Evidence) -> Vec<Spot> {
        let asks = |seen: &&Seen| asks_for_an_excuse(evidence.numerics, seen);
        if !has_experts(self.reference.model) {
            return Vec::new();
        }
        let asking = evidence.positions.iter().filter(asks);
        asking.map(|seen| seen.spot).collect()
    }

    /// Adds to what is kept of the reference what excuses rest on.
    fn show_routing(
        &mut self,
        evidence: &Evidence,
        kept: &mut Remembered,
    ) -> Result<(), NotJudged> {
        let asking = self.asking(evidence);
        if asking.is_empty() {
            return Ok(());
        }
        let at: BTreeSet<usize> = asking.iter().map(|spot| spot.position).collect();
        self.session()?;
        let session = self.session.as_mut().expect("it was opened just now");
        let mut runner = Runner::new(&mut **session).map_err(of_reference)?;
        let ids = self.probe.ids_with(kept.greedy());
        let cuts = self.probe.all_cuts(&[]);
        let of = (&ids[..], &cuts[..]);
        let shown = routing::show(self.reference.model, of, &at, (&mut runner, self.watching));
        kept.set_routing(shown.map_err(of_reference)?);
        Ok(())
    }

    /// A row that went through other experts than the reference's, because two were all but tied,
    /// is measured less strictly.
    fn excuse_by(&mut self, evidence: &mut Evidence, kept: &Remembered) -> Result<(), NotJudged> {
        let asking = self.asking(evidence);
        let Some(routing) = kept.routing().filter(|kept| kept.covers(&asking)) else {
            return Ok(());
        };
        if asking.is_empty() {
            return Ok(());
        }
        let mut runner = Runner::new(self.candidate).map_err(of_candidate)?;
        let ids = self.probe.ids_with(kept.greedy());
        let question = Question {
            model: self.reference.model,
            of: (&ids, &self.cuts),
            numerics: evidence.numerics,
            asking: &asking,
        };
        let excused = question.excused(routing, (&mut runner, self.watching));
        let excused = excused.map_err(of_candidate)?;
        for seen in &mut evidence.positions {
            seen.excused = excused.spots.contains(&seen.spot);
        }
        self.furthest_tie = excused.furthest;
        Ok(())
    }

    /// Adds to what a rule found where it begins.
    fn explain(
        &mut self,
        broken: Broken,
        evidence: &Evidence,
        kept: &Remembered,
    ) -> Result<FirstBad, NotJudged> {
        let at = |seen: &&Seen| seen.spot == broken.spot;
        let measure = evidence
            .positions
            .iter()
            .find(at)
            .and_then(|seen| match seen.row {
                Row::Compared(measure) => Some(measure),
                Row::Length { .. } | Row::NotFinite => None,
            });
        let located = match self.locate(broken.spot, evidence.numerics, kept) {
            Ok(located) => located,
            Err(NotJudged::Stopped) => return Err(NotJudged::Stopped),
            Err(other) => Located::Unknown {
                reason: other.to_string(),
            },
        };
        Ok(FirstBad {
            position: broken.spot.position,
            path: broken.spot.path,
            way: (broken.spot.way > 0).then_some(broken.spot.way),
            rule: broken.rule,
            found: broken.found,
            cosine: measure.map(|m| m.cosine),
            kl: measure.map(|m| m.kl),
            reference_token: measure.map(|m| m.reference_token),
            candidate_token: measure.map(|m| m.candidate_token),
            located,
        })
    }

    fn locate(
        &mut self,
        spot: Spot,
        numerics: Numerics,
        kept: &Remembered,
    ) -> Result<Located, NotJudged> {
        self.session()?;
        let session = self.session.as_mut().expect("it was opened just now");
        let mut sides = (
            Runner::new(&mut **session).map_err(of_reference)?,
            Runner::new(self.candidate).map_err(of_candidate)?,
        );
        let graph = &self.reference.model.graph;
        let at = At {
            spot,
            row: kept.row(spot.position),
            numerics,
        };
        let ids = self.probe.ids_with(kept.greedy());
        let cuts = (&self.probe.all_cuts(&[])[..], &self.cuts[..]);
        let located = locate(graph, (&ids, cuts), at, (&mut sides, self.watching));
        located.map_err(of_candidate)
    }
}

/// The spot after so many; where there are no more the last.
fn next_of(spots: &[Spot], seen: usize) -> Spot {
    let last = spots.len().saturating_sub(1);
    spots[seen.min(last)]
}

pub(super) fn seen(row: &KeptRow, logits: &[f32], spot: Spot) -> Seen {
    let row = match row.compare(logits) {
        Ok(measure) => Row::Compared(measure),
        Err(Unfit::Length { found, expected }) => Row::Length { found, expected },
        Err(Unfit::NotFinite { .. }) => Row::NotFinite,
    };
    Seen {
        spot,
        row,
        excused: false,
    }
}

/// One step more, and the same step once more with the device choosing, where it offers that.
fn greedy_step(
    runner: &mut Runner<'_>,
    token: u32,
    watching: &mut Watching<'_>,
    show: &mut Show<'_>,
) -> Result<Option<OwnBest>, Ended> {
    let slot = runner.slot();
    runner.session().take_way(0);
    runner.session().checkpoint(slot)?;
    let position = runner.session().position(slot);
    let spot = Spot {
        position,
        path: Path::Greedy,
        way: 0,
    };
    let mut by_logits = None;
    if let [RowOutput::Logits(logits)] = runner.forward(&[token], |_| Want::Logits, watching)? {
        by_logits = best_of(logits);
        show(spot, logits);
    }
    let top = Want::Top { k: 1 };
    if !runner.session().offers(top) || runner.session().seek(slot, position)? != position {
        return Ok(None);
    }
    let by_device = match runner.forward(&[token], |_| top, watching)? {
        [RowOutput::Top { best, .. }] => best.first().map(|(id, _)| *id),
        _ => None,
    };
    Ok(Some(OwnBest {
        spot,
        by_logits,
        by_device,
    }))
}
