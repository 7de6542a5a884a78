//! Where in the graph two computations part.
//!
//! The forward with the bad position is run once more on both sides with every node shown. A node
//! is where it begins if its values are further off than its arithmetic allows, and much further
//! than those it was computed from.

use std::collections::HashMap;

use candor_arch::{Graph, Op};
use candor_backend::{Numerics, RowOutput, SessionError, Tap, Want};

use super::compare::KeptRow;
use super::judge::seen;
use super::probe::Cut;
use super::rules::{Evidence, RULES, Spot, judge, limits};
use super::run::{Ended, Pass, Runner, Watching};
use super::verdict::{Located, NodeDistance};

/// By how much a node's distance exceeds those of its inputs where something new goes wrong. No
/// operation of a right device multiplies errors by this much once they are above the limit.
const GROWTH: f64 = 3.0;

/// Values of a row below which a node is no measure of its own: a gate that is a single number may
/// be all but zero, and is then far off in proportion. What it is for is measured.
pub(crate) const WIDTH_MIN: usize = 8;

/// Nodes that are named at most: the first, and how it goes on.
const NODES_MAX: usize = 8;

/// The reference and the candidate.
pub(crate) type Sides<'a> = (Runner<'a>, Runner<'a>);

/// What is to be located.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) spot: Spot,
    /// What the reference gave there.
    pub(crate) row: Option<&'a KeptRow>,
    pub(crate) numerics: Numerics,
}

/// Looks for the first node whose values differ at a spot. The cuts are those of the reference and
/// those of the candidate.
pub(crate) fn locate(
    graph: &Graph,
    (ids, cuts): (&[u32], (&[Cut], &[Cut])),
    at: At<'_>,
    (sides, watching): (&mut Sides<'_>, &mut Watching<'_>),
) -> Result<Located, Ended> {
    let Spot { position, way, .. } = at.spot;
    let holds = |cut: &Cut, way: usize| cut.way == way && cut.rows.contains(&position);
    let of_reference = cuts.0.iter().position(|cut| holds(cut, 0));
    let of_candidate = cuts.1.iter().position(|cut| holds(cut, way));
    let Some((reference, candidate)) = of_reference.zip(of_candidate) else {
        let reason = format!("position {position} is not part of the check");
        return Ok(Located::Unknown { reason });
    };
    let place = |cuts, at| Place {
        ids,
        cuts,
        at,
        position,
    };
    let reference = place(cuts.0, reference).read(&mut sides.0, watching)?;
    let candidate = place(cuts.1, candidate).read(&mut sides.1, watching)?;
    let numerics = at.numerics;
    if let Some(row) = at.row {
        let evidence = Evidence {
            numerics,
            positions: vec![seen(row, &candidate.logits, at.spot)],
            asked: 1,
            next: at.spot,
            best: None,
        };
        if judge(RULES, &evidence).is_none() {
            return Ok(Located::OnlyTogether);
        }
    }
    let limit = limits(numerics, at.spot.path).node;
    Ok(name(&distances(graph, &reference, &candidate), limit))
}

/// A position in one of the forwards of a probe.
pub(crate) struct Place<'a> {
    pub(crate) ids: &'a [u32],
    pub(crate) cuts: &'a [Cut],
    /// Which of the forwards.
    pub(crate) at: usize,
    pub(crate) position: usize,
}

impl Place<'_> {
    /// What a side gives there.
    pub(crate) fn read(
        &self,
        runner: &mut Runner<'_>,
        watching: &mut Watching<'_>,
    ) -> Result<Read, Ended> {
        for at in 0..self.at {
            let rows = self.cuts[at].rows.clone();
            Pass::ONLY.tell(rows.start, self.ids.len(), watching)?;
            runner.stand((self.cuts, at), self.ids, watching)?;
            runner.forward(&self.ids[rows], |_| Want::Nothing, watching)?;
        }
        let rows = self.cuts[self.at].rows.clone();
        Pass::ONLY.tell(rows.start, self.ids.len(), watching)?;
        runner.stand((self.cuts, self.at), self.ids, watching)?;
        let row = self.position - rows.start;
        let mut tap = RowTap::new(row);
        let want = |i: usize| match i == row {
            true => Want::Logits,
            false => Want::Nothing,
        };
        let logits = match runner.tapped(&self.ids[rows], want, &mut tap, watching) {
            Ok([RowOutput::Logits(logits)]) => std::mem::take(logits),
            // What was shown until then says where it began.
            Ok(_) | Err(Ended::Failed(SessionError::NotFinite { .. })) => Vec::new(),
            Err(ended) => return Err(ended),
        };
        let nodes = tap.nodes;
        Ok(Read { nodes, logits })
    }
}

/// What a side gave at one row.
pub(crate) struct Read {
    nodes: HashMap<String, Vec<f32>>,
    logits: Vec<f32>,
}

/// How far a node is off.
pub(crate) struct Off<'a> {
    pub(crate) node: &'a str,
    pub(crate) distance: f64,
    /// The largest of those that it was computed from.
    pub(crate) of_inputs: f64,
}

/// Pure: the nodes that both sides show, in the order of the graph.
pub(crate) fn distances<'a>(graph: &'a Graph, reference: &Read, candidate: &Read) -> Vec<Off<'a>> {
    let mut all: Vec<f64> = Vec::with_capacity(graph.nodes.len());
    let mut shown = Vec::new();
    for node in &graph.nodes {
        let inputs = node.inputs.iter().map(|input| all[input.0]);
        let of_inputs = inputs.fold(0.0, f64::max);
        let both = match node.op {
            Op::Logits { .. } => Some((&reference.logits, &candidate.logits)),
            _ if node.width < WIDTH_MIN => None,
            // A fused step need not show what never leaves it.
            _ => reference
                .nodes
                .get(&node.name)
                .zip(candidate.nodes.get(&node.name)),
        };
        let distance = both.map_or(of_inputs, |(a, b)| distance(a, b));
        all.push(distance);
        if both.is_some() {
            shown.push(Off {
                node: &node.name,
                distance,
                of_inputs,
            });
        }
    }
    shown
}

/// Whether something goes wrong at a node.
pub(crate) fn begins(off: &Off<'_>, limit: f64) -> bool {
    off.distance > limit && off.distance > GROWTH * off.of_inputs
}

/// Pure: where it begins, and how it goes on.
fn name(off: &[Off<'_>], limit: f64) -> Located {
    let Some(first) = off.iter().position(|off| begins(off, limit)) else {
        let reason = String::from("no node is much further off than those before it");
        return Located::Unknown { reason };
    };
    let named = off[first..].iter().filter(|off| off.distance > limit);
    let named = named.take(NODES_MAX).map(|off| NodeDistance {
        node: off.node.to_owned(),
        distance: off.distance,
        limit,
    });
    Located::Nodes(named.collect())
}

/// The length of the difference over the length of the first; infinite where there is none.
pub(crate) fn distance(reference: &[f32], candidate: &[f32]) -> f64 {
    if reference.len() != candidate.len() {
        return f64::INFINITY;
    }
    let (mut apart, mut length) = (0.0, 0.0);
    for (a, b) in reference.iter().zip(candidate) {
        let (a, b) = (f64::from(*a), f64::from(*b));
        apart += (a - b) * (a - b);
        length += a * a;
    }
    if apart == 0.0 {
        return 0.0;
    }
    let distance = (apart / length).sqrt();
    if distance.is_nan() {
        f64::INFINITY
    } else {
        distance
    }
}

/// Keeps one row of every node.
struct RowTap {
    row: usize,
    seen: HashMap<String, usize>,
    nodes: HashMap<String, Vec<f32>>,
}

impl RowTap {
    fn new(row: usize) -> Self {
        Self {
            row,
            seen: HashMap::new(),
            nodes: HashMap::new(),
        }
    }
}

impl Tap for RowTap {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        // A large batch comes in parts.
        let before = match self.seen.get_mut(node) {
            Some(before) => std::mem::replace(before, *before + rows),
            None => {
                self.seen.insert(node.to_owned(), rows);
                0
            }
        };
        let row = self.row.checked_sub(before).filter(|row| *row < rows);
        if let Some(values) = row.and_then(|row| values.get(row * width..(row + 1) * width)) {
            self.nodes.insert(node.to_owned(), values.to_vec());
        }
    }
}
