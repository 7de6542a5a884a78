//! Where in the graph two computations part.
//!
//! The forward with the bad position is run once more on both sides with every node shown. A node
//! is where it begins if its values are further off than its arithmetic allows, and much further
//! than those it was computed from.

use std::collections::HashMap;

use candor_arch::{Graph, Op};
use candor_backend::{Numerics, RowOutput, Tap, Want};

use super::judge::seen;
use super::probe::{Cut, Probe};
use super::remembered::Remembered;
use super::rules::{Evidence, RULES, judge, limits};
use super::run::{Ended, Runner, Watching, tell};
use super::verdict::{Located, NodeDistance, Path};

/// By how much a node's distance exceeds those of its inputs where something new goes wrong. No
/// operation of a right device multiplies errors by this much once they are above the limit.
const GROWTH: f64 = 3.0;

/// Nodes that are named at most: the first, and how it goes on.
const NODES_MAX: usize = 8;

/// The reference and the candidate.
pub(crate) type Sides<'a> = (Runner<'a>, Runner<'a>);

/// Looks for the first node whose values differ at a position.
pub(crate) fn locate(
    graph: &Graph,
    probe: &Probe,
    (position, kept): (usize, &Remembered),
    numerics: Numerics,
    (sides, watching): (&mut Sides<'_>, &mut Watching<'_>),
) -> Result<Located, Ended> {
    let mut ids = probe.ids().to_vec();
    ids.push(kept.greedy());
    let mut cuts = probe.cuts();
    cuts.push(Cut {
        rows: probe.ids().len()..ids.len(),
        path: Path::Greedy,
    });
    let at = cuts.iter().position(|cut| cut.rows.contains(&position));
    let Some(at) = at else {
        let reason = format!("position {position} is not part of the check");
        return Ok(Located::Unknown { reason });
    };
    let (before, cut) = (&cuts[..at], &cuts[at]);
    let row = position - cut.rows.start;
    let mut read = |runner: &mut Runner<'_>| -> Result<Read, Ended> {
        for earlier in before {
            tell(watching, earlier.rows.start, ids.len())?;
            runner.forward(&ids[earlier.rows.clone()], |_| Want::Nothing, watching)?;
        }
        tell(watching, cut.rows.start, ids.len())?;
        let mut tap = RowTap::new(row);
        let want = |i: usize| if i == row { Want::Logits } else { Want::Nothing };
        let outputs = runner.tapped(&ids[cut.rows.clone()], want, &mut tap)?;
        let logits = match outputs {
            [RowOutput::Logits(logits)] => std::mem::take(logits),
            _ => Vec::new(),
        };
        let nodes = tap.nodes;
        Ok(Read { nodes, logits })
    };
    let reference = read(&mut sides.0)?;
    let candidate = read(&mut sides.1)?;
    if let Some(row) = kept.row(position) {
        let evidence = Evidence {
            numerics,
            positions: vec![seen(row, &candidate.logits, position, cut.path)],
            asked: 1,
            next: position,
            best: None,
        };
        if judge(RULES, &evidence).is_none() {
            return Ok(Located::OnlyTogether);
        }
    }
    let limit = limits(numerics, cut.path).node;
    Ok(compare(graph, &reference, &candidate, limit))
}

/// What a side gave at one row.
struct Read {
    nodes: HashMap<String, Vec<f32>>,
    logits: Vec<f32>,
}

/// Pure: the nodes in the order of the graph.
fn compare(graph: &Graph, reference: &Read, candidate: &Read, limit: f64) -> Located {
    let mut distances: Vec<f64> = Vec::with_capacity(graph.nodes.len());
    let mut named: Vec<NodeDistance> = Vec::new();
    for node in &graph.nodes {
        let inputs = node.inputs.iter().map(|input| distances[input.0]);
        let of_inputs = inputs.fold(0.0, f64::max);
        let shown = match node.op {
            Op::Logits { .. } => Some((&reference.logits, &candidate.logits)),
            // A fused step need not show what never leaves it.
            _ => reference.nodes.get(&node.name).zip(candidate.nodes.get(&node.name)),
        };
        let distance = shown.map_or(of_inputs, |(a, b)| distance(a, b));
        distances.push(distance);
        let begins = distance > limit && distance > GROWTH * of_inputs;
        let goes_on = !named.is_empty() && distance > limit;
        if shown.is_some() && (begins || goes_on) && named.len() < NODES_MAX {
            let node = node.name.clone();
            named.push(NodeDistance {
                node,
                distance,
                limit,
            });
        }
    }
    if named.is_empty() {
        let reason = String::from("no node is much further off than those before it");
        return Located::Unknown { reason };
    }
    Located::Nodes(named)
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
    if distance.is_nan() { f64::INFINITY } else { distance }
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
