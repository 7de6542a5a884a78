//! Experts whose choice hangs on a hair.
//!
//! A router takes the few largest of many numbers. Where the last one taken and the first one left
//! are all but tied, a right device may take the other, and what follows differs by a whole expert.
//! So before logits are held against each other strictly, the router's own numbers are: both sides
//! show what went into it, and the numbers are computed here from that.

use std::collections::{HashMap, HashSet};

use candor_arch::{NodeId, Op, Routing, WeightId};
use candor_backend::{Model, Numerics, Tap, Want};

use super::locate::{Sides, distance};
use super::probe::Probe;
use super::rules::limits;
use super::run::{Ended, Runner, Watching, tell};

/// Whether a model chooses experts at all.
pub(crate) fn has_experts(model: &Model) -> bool {
    let mut nodes = model.graph.nodes.iter();
    nodes.any(|node| matches!(node.op, Op::Experts { .. }))
}

/// Where near ties went the other way.
pub(crate) struct Ties {
    /// The first position at which one did; later ones read what it left in the context.
    first: Option<usize>,
}

impl Ties {
    /// Whether a difference at a position can come from one.
    pub(crate) fn explain(&self, position: usize) -> bool {
        self.first.is_some_and(|first| first <= position)
    }
}

/// Runs both sides with their routers shown, and looks for choices that differ.
pub(crate) fn excuse(
    model: &Model,
    probe: &Probe,
    numerics: Numerics,
    sides: &mut Sides<'_>,
    watching: &mut Watching<'_>,
) -> Result<Ties, Ended> {
    let routers = routers(model);
    let reference = numbers(&routers, probe, &mut sides.0, watching)?;
    let candidate = numbers(&routers, probe, &mut sides.1, watching)?;
    let mut first = None;
    for cut in probe.cuts() {
        let limit = limits(numerics, cut.path).router;
        for position in cut.rows {
            let tie = routers.iter().enumerate().find_map(|(i, router)| {
                let (a, b) = (reference[i].get(position)?, candidate[i].get(position)?);
                (chosen(a, router.routing) != chosen(b, router.routing))
                    .then(|| distance(a, b) <= limit)
            });
            if tie == Some(true) && first.is_none() {
                first = Some(position);
            }
        }
    }
    Ok(Ties { first })
}

/// A router of a graph, in float32.
struct Router {
    /// The node that goes into it, by name.
    input: String,
    weight: Vec<f32>,
    bias: Vec<f32>,
    n_experts: usize,
    routing: Routing,
}

impl Router {
    fn numbers(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.weight.chunks_exact(x.len().max(1)).zip(0..self.n_experts);
        let number = |(row, expert): (&[f32], usize)| {
            let products = row.iter().zip(x).map(|(w, x)| w * x);
            products.sum::<f32>() + self.bias.get(expert).copied().unwrap_or(0.0)
        };
        rows.map(number).collect()
    }
}

fn routers(model: &Model) -> Vec<Router> {
    let graph = &model.graph;
    let experts = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Experts {
            router,
            biases,
            routing,
            ..
        } => {
            let input: NodeId = *node.inputs.first()?;
            let weight = floats(model, *router);
            Some(Router {
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

/// What every router says of every position.
fn numbers(
    routers: &[Router],
    probe: &Probe,
    runner: &mut Runner<'_>,
    watching: &mut Watching<'_>,
) -> Result<Vec<Vec<Vec<f32>>>, Ended> {
    let mut tap = RouterTap {
        routers,
        by_input: HashMap::new(),
        numbers: vec![Vec::new(); routers.len()],
    };
    for (i, router) in routers.iter().enumerate() {
        tap.by_input.insert(&router.input, i);
    }
    for cut in probe.cuts() {
        tell(watching, cut.rows.start, probe.ids().len())?;
        runner.tapped(&probe.ids()[cut.rows], |_| Want::Nothing, &mut tap)?;
    }
    Ok(tap.numbers)
}

struct RouterTap<'a> {
    routers: &'a [Router],
    by_input: HashMap<&'a str, usize>,
    /// By router, then by position.
    numbers: Vec<Vec<Vec<f32>>>,
}

impl Tap for RouterTap<'_> {
    fn output(&mut self, node: &str, _rows: usize, width: usize, values: &[f32]) {
        if let Some(i) = self.by_input.get(node) {
            let of_rows = values.chunks_exact(width.max(1));
            self.numbers[*i].extend(of_rows.map(|row| self.routers[*i].numbers(row)));
        }
    }
}
