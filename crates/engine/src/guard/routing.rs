//! Experts whose choice hangs on a hair.
//!
//! A router takes the few largest of many numbers. Where the last one taken and the first one left
//! are all but tied, a right device may take the other, and what follows differs by a whole expert.
//! So before logits are held against each other strictly, the router's own numbers are: both sides
//! show what went into it, and the numbers are computed here from that.
//!
//! A position is excused if its own first choice that differs was near a tie, or if it reads, from
//! the context, what an earlier position left there after one, and nothing went wrong before that.

use std::collections::{HashMap, HashSet};

use candor_arch::{Graph, NodeId, Op, Routing, WeightId};
use candor_backend::{Model, Numerics, Tap, Want};
use half::bf16;

use super::locate::{Off, Sides, WIDTH_MIN, begins, distance};
use super::probe::Probe;
use super::rules::limits;
use super::run::{Ended, Runner, Watching, tell};

/// Whether a model chooses experts at all.
pub(crate) fn has_experts(model: &Model) -> bool {
    let mut nodes = model.graph.nodes.iter();
    nodes.any(|node| matches!(node.op, Op::Experts { .. }))
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) model: &'a Model,
    pub(crate) probe: &'a Probe,
    pub(crate) greedy: u32,
    pub(crate) numerics: Numerics,
    /// The positions that differ more than they may without an excuse.
    pub(crate) asking: &'a HashSet<usize>,
}

/// Runs both sides with their routers shown, and gives the positions that near ties excuse.
pub(crate) fn excuse(
    question: Question<'_>,
    sides: &mut Sides<'_>,
    watching: &mut Watching<'_>,
) -> Result<HashSet<usize>, Ended> {
    let routers = routers(question.model);
    let mut reference = Shown::new(question.asking, &routers, None);
    question.show(&mut sides.0, watching, &mut reference)?;
    let Shown { numbers, nodes, .. } = reference;
    let mut candidate = Shown::new(question.asking, &routers, Some(&nodes));
    question.show(&mut sides.1, watching, &mut candidate)?;
    let sides = [&numbers, &candidate.numbers];
    Ok(question.excused(&routers, sides, &candidate.distances))
}

impl Question<'_> {
    fn show(
        &self,
        runner: &mut Runner<'_>,
        watching: &mut Watching<'_>,
        shown: &mut Shown<'_>,
    ) -> Result<(), Ended> {
        let mut ids = self.probe.ids().to_vec();
        ids.push(self.greedy);
        for cut in self.probe.cuts_with_greedy() {
            tell(watching, cut.rows.start, ids.len())?;
            runner.tapped(&ids[cut.rows], |_| Want::Nothing, shown)?;
        }
        Ok(())
    }

    /// Pure: from the routers' numbers of both sides, and the nodes' distances.
    fn excused(
        &self,
        routers: &[Router],
        [reference, candidate]: [&Vec<Numbers>; 2],
        distances: &HashMap<(String, usize), f64>,
    ) -> HashSet<usize> {
        let mut excused = HashSet::new();
        // The first node that a near tie spoiled, at any position so far.
        let mut spoiled: Option<usize> = None;
        for cut in self.probe.cuts_with_greedy() {
            let limits = limits(self.numerics, cut.path);
            for position in cut.rows {
                let first = routers.iter().enumerate().find_map(|(i, router)| {
                    let (a, b) = (reference[i].get(position)?, candidate[i].get(position)?);
                    let differ = chosen(a, router.routing) != chosen(b, router.routing);
                    differ.then(|| (router.node, distance(a, b) <= limits.router))
                });
                let own = first.and_then(|(node, near)| near.then_some(node));
                let read = || {
                    let reader = self.first_reader(position, distances, limits.node)?;
                    spoiled.filter(|node| *node < reader).map(|_| reader)
                };
                let asks = self.asking.contains(&position);
                let from = own.or_else(|| asks.then(read).flatten());
                if let Some(node) = from {
                    spoiled = Some(spoiled.map_or(node, |before| before.min(node)));
                    if asks {
                        excused.insert(position);
                    }
                }
            }
        }
        excused
    }

    /// The node at which a position begins to differ, if it is one that reads other positions.
    fn first_reader(
        &self,
        position: usize,
        distances: &HashMap<(String, usize), f64>,
        limit: f64,
    ) -> Option<usize> {
        let graph: &Graph = &self.model.graph;
        let mut all: Vec<f64> = Vec::with_capacity(graph.nodes.len());
        for (i, node) in graph.nodes.iter().enumerate() {
            let inputs = node.inputs.iter().map(|input| all[input.0]);
            let of_inputs = inputs.fold(0.0, f64::max);
            let shown = distances.get(&(node.name.clone(), position));
            let shown = shown.filter(|_| node.width >= WIDTH_MIN);
            let distance = shown.copied().unwrap_or(of_inputs);
            all.push(distance);
            let off = Off {
                node: &node.name,
                distance,
                of_inputs,
            };
            if begins(&off, limit) {
                let reads = matches!(
                    node.op,
                    Op::Attention { .. } | Op::CausalConv { .. } | Op::DeltaNet(_)
                );
                return reads.then_some(i);
            }
        }
        None
    }
}

/// A router of a graph, in float32.
struct Router {
    /// Of the experts.
    node: usize,
    /// The node that goes into it, by name.
    input: String,
    weight: Vec<f32>,
    bias: Vec<f32>,
    n_experts: usize,
    routing: Routing,
}

impl Router {
    fn numbers(&self, x: &[f32]) -> Vec<f32> {
        let rows = self
            .weight
            .chunks_exact(x.len().max(1))
            .zip(0..self.n_experts);
        let number = |(row, expert): (&[f32], usize)| {
            let products = row.iter().zip(x).map(|(w, x)| w * x);
            products.sum::<f32>() + self.bias.get(expert).copied().unwrap_or(0.0)
        };
        rows.map(number).collect()
    }
}

fn routers(model: &Model) -> Vec<Router> {
    let graph = &model.graph;
    let nodes = graph.nodes.iter().enumerate();
    let experts = nodes.filter_map(|(i, node)| match &node.op {
        Op::Experts {
            router,
            biases,
            routing,
            ..
        } => {
            let input: NodeId = *node.inputs.first()?;
            let weight = floats(model, *router);
            Some(Router {
                node: i,
                input: graph.node(input).name.clone(),
                n_experts: graph.weight(*router).dims.first().copied()?,
                bias: biases.map_or(Vec::new(), |biases| floats(model, biases.router)),
                weight,
                routing: *routing,
            })
        }
        _ => None,
    });
    experts.collect()
}

/// A weight's values.
fn floats(model: &Model, id: WeightId) -> Vec<f32> {
    let weight = model.graph.weight(id);
    let Some(tensor) = model.file.index().tensor(&weight.name) else {
        return Vec::new();
    };
    let bytes = model.file.bytes(tensor);
    let bytes = &bytes[weight.bytes_of(0..bytes.len())];
    let mut values = vec![0.0; weight.dims.iter().product()];
    (tensor.quant.dequantize)(bytes, &mut values);
    values
}

/// The experts that these numbers choose.
fn chosen(numbers: &[f32], routing: Routing) -> HashSet<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|a, b| numbers[*b].total_cmp(&numbers[*a]));
    order.into_iter().take(routing.n_used).collect()
}

/// What a router says, by position.
type Numbers = Vec<Vec<f32>>;

/// What a side shows.
struct Shown<'a> {
    asking: &'a HashSet<usize>,
    routers: &'a [Router],
    /// By router.
    numbers: Vec<Numbers>,
    /// Positions of each node that were shown.
    seen: HashMap<String, usize>,
    /// Values at the positions that ask, in as many bits as a distance takes.
    nodes: HashMap<(String, usize), Vec<bf16>>,
    /// The other side's, if it was first; then only distances are kept.
    other: Option<&'a HashMap<(String, usize), Vec<bf16>>>,
    distances: HashMap<(String, usize), f64>,
}

impl<'a> Shown<'a> {
    fn new(
        asking: &'a HashSet<usize>,
        routers: &'a [Router],
        other: Option<&'a HashMap<(String, usize), Vec<bf16>>>,
    ) -> Self {
        Self {
            asking,
            routers,
            numbers: vec![Vec::new(); routers.len()],
            seen: HashMap::new(),
            nodes: HashMap::new(),
            other,
            distances: HashMap::new(),
        }
    }
}

impl Tap for Shown<'_> {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        let of_rows = || values.chunks_exact(width.max(1));
        for (router, numbers) in self.routers.iter().zip(&mut self.numbers) {
            if router.input == node {
                numbers.extend(of_rows().map(|row| router.numbers(row)));
            }
        }
        let seen = self.seen.entry(node.to_owned()).or_default();
        let first = std::mem::replace(seen, *seen + rows);
        for (position, row) in (first..).zip(of_rows()) {
            if !self.asking.contains(&position) {
                continue;
            }
            let key = (node.to_owned(), position);
            match self.other {
                None => {
                    let row = row.iter().map(|value| bf16::from_f32(*value));
                    self.nodes.insert(key, row.collect());
                }
                Some(other) => {
                    if let Some(reference) = other.get(&key) {
                        let reference: Vec<f32> = reference.iter().map(|v| v.to_f32()).collect();
                        self.distances.insert(key, distance(&reference, row));
                    }
                }
            }
        }
    }
}
