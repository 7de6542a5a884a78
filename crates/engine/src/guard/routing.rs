//! Experts whose choice hangs on a hair.
//!
//! A router takes the few largest of many numbers. Where the last one taken and the first one left
//! are all but tied, a right device may take the other, and what follows differs by a whole expert.
//! So before logits are held against each other strictly, the router's own numbers are: both sides
//! show what went into it, and the numbers are computed here from that. What the reference showed is
//! kept with its logits, so that a later check needs the candidate alone.
//!
//! A position is excused if its own first choice that differs was near a tie, or if it reads, from
//! the context, what an earlier position left there after one, and nothing went wrong before that. A
//! tie is near if all numbers of the router agree as far as the arithmetic allows, and those of the
//! experts that were exchanged lie together on the reference's side too.

use std::collections::{BTreeSet, HashMap, HashSet};

use candor_arch::{Graph, NodeId, Op, Routing, WeightId};
use candor_backend::{Model, Numerics, Tap, Want};
use half::bf16;

use super::locate::{Off, WIDTH_MIN, begins, distance};
use super::probe::Cut;
use super::rules::{Limits, Spot, limits};
use super::run::{Ended, Pass, Runner, Watching};

/// Values of a node at a position that a distance is taken from. All of them would be 3 MB at a
/// position of a mixture of 30 billion weights, and a quarter of a probe's positions may ask; of so
/// many, spread over all of it, the distance is right within a tenth, and limits are factors apart.
pub(crate) const SAMPLE: usize = 128;

/// Whether a model chooses experts at all.
pub(crate) fn has_experts(model: &Model) -> bool {
    let mut nodes = model.graph.nodes.iter();
    nodes.any(|node| matches!(node.op, Op::Experts { .. }))
}

/// What the reference shows of its routers, and of what lies between them. Kept with its logits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KeptRouting {
    /// What each router says, by position.
    pub(crate) numbers: Vec<Vec<Vec<f32>>>,
    /// A sample of each node's values where an excuse was asked for: by position and node.
    pub(crate) nodes: HashMap<(usize, usize), Vec<bf16>>,
}

impl KeptRouting {
    /// Whether it says something at each of these spots.
    pub(crate) fn covers(&self, asking: &[Spot]) -> bool {
        let positions: HashSet<usize> = self.nodes.keys().map(|(position, _)| *position).collect();
        asking.iter().all(|spot| positions.contains(&spot.position))
    }
}

/// What the reference shows of itself over a probe; of its nodes at the positions that ask.
pub(crate) fn show(
    model: &Model,
    of: (&[u32], &[Cut]),
    at: &BTreeSet<usize>,
    (runner, watching): (&mut Runner<'_>, &mut Watching<'_>),
) -> Result<KeptRouting, Ended> {
    let routers = routers(model);
    let mut kept = KeptRouting {
        numbers: vec![Vec::new(); routers.len()],
        nodes: HashMap::new(),
    };
    let mut tap = Shown::new(&model.graph, &routers, |seen| match seen {
        Given::Router {
            router, numbers, ..
        } => kept.numbers[router].push(numbers),
        Given::Node { node, spot, sample } if at.contains(&spot.position) => {
            let sample = sample().map(bf16::from_f32).collect();
            kept.nodes.insert((spot.position, node), sample);
        }
        Given::Node { .. } => {}
    });
    tap.run(of, runner, watching)?;
    Ok(kept)
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) model: &'a Model,
    /// All tokens, and the candidate's forwards.
    pub(crate) of: (&'a [u32], &'a [Cut]),
    pub(crate) numerics: Numerics,
    /// The spots that differ more than they may without an excuse.
    pub(crate) asking: &'a [Spot],
}

/// What a candidate shows beside what the reference has shown.
#[derive(Default)]
struct Beside {
    /// The first router that chose other experts, by spot.
    flips: HashMap<Spot, Flip>,
    /// How far each node is off at the spots that ask.
    distances: HashMap<(Spot, usize), f64>,
}

/// A router that chose other experts.
#[derive(Clone, Copy)]
struct Flip {
    /// Of the experts.
    node: usize,
    /// The node that went into it.
    input: usize,
    tie: Tie,
}

impl Flip {
    /// The tie with its input. A spot that asks for nothing has logits that are right, and shows none
    /// of its nodes: its input passes. Where one asks, an input that was not shown is not right.
    fn tie_at(&self, spot: Spot, asks: bool, beside: &Beside) -> Tie {
        let shown = || beside.distances.get(&(spot, self.input)).copied();
        Tie {
            input: if asks {
                shown().unwrap_or(f64::INFINITY)
            } else {
                0.0
            },
            ..self.tie
        }
    }
}

/// How near a tie was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tie {
    /// How far what went into the router is off. What is wrong before a router is no matter of its
    /// choice, and comes in here.
    pub(crate) input: f64,
    /// How far all numbers of a router are apart on both sides, in proportion.
    pub(crate) distance: f64,
    /// How far the reference's own numbers of the experts that were exchanged are apart, in units of
    /// the spread of all of them.
    pub(crate) gap: f64,
}

impl Tie {
    /// NaN is no tie.
    pub(crate) fn is_near(self, limits: &Limits) -> bool {
        self.input <= limits.router
            && self.distance <= limits.router
            && self.gap <= limits.router_gap
    }

    /// The further one of each.
    fn or_further(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            distance: self.distance.max(other.distance),
            gap: self.gap.max(other.gap),
        }
    }
}

/// What near ties excuse.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Excused {
    pub(crate) spots: HashSet<Spot>,
    /// The furthest that their routers were from a tie.
    pub(crate) furthest: Tie,
}

impl Question<'_> {
    /// Runs the candidate with its routers shown, and gives the spots that near ties excuse.
    pub(crate) fn excused(
        &self,
        kept: &KeptRouting,
        (runner, watching): (&mut Runner<'_>, &mut Watching<'_>),
    ) -> Result<Excused, Ended> {
        let routers = routers(self.model);
        let asking: HashSet<Spot> = self.asking.iter().copied().collect();
        let mut beside = Beside::default();
        let mut tap = Shown::new(&self.model.graph, &routers, |seen| match seen {
            Given::Router {
                router,
                spot,
                numbers,
            } => {
                let Router {
                    routing,
                    node,
                    input,
                    ..
                } = routers[router];
                let reference = kept
                    .numbers
                    .get(router)
                    .and_then(|of| of.get(spot.position));
                let tie = reference.and_then(|reference| tie(reference, &numbers, routing));
                if let Some(tie) = tie {
                    beside
                        .flips
                        .entry(spot)
                        .or_insert(Flip { node, input, tie });
                }
            }
            Given::Node { node, spot, sample } if asking.contains(&spot) => {
                if let Some(reference) = kept.nodes.get(&(spot.position, node)) {
                    let reference: Vec<f32> = reference.iter().map(|v| v.to_f32()).collect();
                    let sample: Vec<f32> = sample().collect();
                    let off = distance(&reference, &sample);
                    beside.distances.insert((spot, node), off);
                }
            }
            Given::Node { .. } => {}
        });
        tap.run(self.of, runner, watching)?;
        Ok(self.judged(&asking, &beside))
    }

    /// Pure: from the choices that differ, and the nodes' distances.
    fn judged(&self, asking: &HashSet<Spot>, beside: &Beside) -> Excused {
        let mut excused = Excused::default();
        // The first node that a near tie spoiled, at any position so far.
        let mut spoiled: Option<usize> = None;
        for cut in self.of.1 {
            for spot in cut.rows.clone().map(|position| cut.spot(position)) {
                let asks = asking.contains(&spot);
                let limits = limits(self.numerics, spot.path);
                let flip = beside.flips.get(&spot);
                let own = flip.map(|flip| (flip.node, flip.tie_at(spot, asks, beside)));
                let own = own.filter(|(_, tie)| tie.is_near(limits));
                let read = || {
                    let reader = self.first_reader(spot, beside)?;
                    spoiled.filter(|node| *node < reader).map(|_| reader)
                };
                let read = || asks.then(read).flatten();
                if let Some(node) = own.map(|(node, _)| node).or_else(read) {
                    spoiled = Some(spoiled.map_or(node, |before| before.min(node)));
                    if asks {
                        excused.spots.insert(spot);
                        let tie = own.map_or_else(Tie::default, |(_, tie)| tie);
                        excused.furthest = excused.furthest.or_further(tie);
                    }
                }
            }
        }
        excused
    }

    /// The node at which a spot begins to differ, if it is one that reads other positions.
    fn first_reader(&self, spot: Spot, beside: &Beside) -> Option<usize> {
        let graph: &Graph = &self.model.graph;
        let limit = limits(self.numerics, spot.path).node;
        let mut all: Vec<f64> = Vec::with_capacity(graph.nodes.len());
        for (i, node) in graph.nodes.iter().enumerate() {
            let inputs = node.inputs.iter().map(|input| all[input.0]);
            let of_inputs = inputs.fold(0.0, f64::max);
            let shown = beside.distances.get(&(spot, i));
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
    /// The node that goes into it.
    input: usize,
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
                input: input.0,
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

/// How near a tie was where two sides choose other experts; none if they choose the same. What went
/// into the router is not known from its numbers, and counts as right.
pub(crate) fn tie(reference: &[f32], candidate: &[f32], routing: Routing) -> Option<Tie> {
    let (here, there) = (chosen(reference, routing), chosen(candidate, routing));
    let left_out = here.difference(&there).map(|expert| reference[*expert]);
    let taken = there.difference(&here).map(|expert| {
        // A side that says too little agrees in nothing.
        reference.get(*expert).copied().unwrap_or(f32::NEG_INFINITY)
    });
    let best_left_out = left_out.reduce(f32::max)?;
    let worst_taken = taken.reduce(f32::min).unwrap_or(f32::NEG_INFINITY);
    // What all numbers have in common chooses nothing, and would hide what does.
    let reference = centred(reference);
    let squares = reference.iter().map(|number| f64::from(*number).powi(2));
    let spread = (squares.sum::<f64>() / reference.len() as f64).sqrt();
    Some(Tie {
        input: 0.0,
        distance: distance(&reference, &centred(candidate)),
        gap: f64::from(best_left_out - worst_taken) / spread,
    })
}

fn centred(numbers: &[f32]) -> Vec<f32> {
    let mean = numbers.iter().sum::<f32>() / numbers.len().max(1) as f32;
    numbers.iter().map(|number| number - mean).collect()
}

/// What a side shows at a spot.
enum Given<'a> {
    Router {
        router: usize,
        spot: Spot,
        numbers: Vec<f32>,
    },
    Node {
        node: usize,
        spot: Spot,
        sample: &'a dyn Fn() -> Sample<'a>,
    },
}

/// Values of a row, spread over all of it.
type Sample<'a> = Box<dyn Iterator<Item = f32> + 'a>;

/// Shows the routers and the nodes of a run, spot by spot.
struct Shown<'a, F> {
    routers: &'a [Router],
    nodes: HashMap<&'a str, usize>,
    /// The forward that runs, and how many of its rows of each node were shown.
    cut: Option<Cut>,
    rows: HashMap<usize, usize>,
    give: F,
}

impl<'a, F: FnMut(Given<'_>)> Shown<'a, F> {
    fn new(graph: &'a Graph, routers: &'a [Router], give: F) -> Self {
        let nodes = graph.nodes.iter().enumerate();
        Self {
            routers,
            nodes: nodes.map(|(i, node)| (node.name.as_str(), i)).collect(),
            cut: None,
            rows: HashMap::new(),
            give,
        }
    }

    fn run(
        &mut self,
        (ids, cuts): (&[u32], &[Cut]),
        runner: &mut Runner<'_>,
        watching: &mut Watching<'_>,
    ) -> Result<(), Ended> {
        for (at, cut) in cuts.iter().enumerate() {
            Pass::ONLY.tell(cut.rows.start, ids.len(), watching)?;
            self.cut = Some(cut.clone());
            self.rows.clear();
            runner.stand((cuts, at), ids, watching)?;
            runner.tapped(&ids[cut.rows.clone()], |_| Want::Nothing, self, watching)?;
        }
        Ok(())
    }
}

impl<F: FnMut(Given<'_>)> Tap for Shown<'_, F> {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        let (Some(cut), Some(node)) = (self.cut.clone(), self.nodes.get(node).copied()) else {
            return;
        };
        // A large batch comes in parts.
        let shown = self.rows.entry(node).or_default();
        let first = cut.rows.start + std::mem::replace(shown, *shown + rows);
        for (position, row) in (first..).zip(values.chunks_exact(width.max(1))) {
            let spot = cut.spot(position);
            for (i, router) in self.routers.iter().enumerate() {
                if router.input == node {
                    let numbers = router.numbers(row);
                    (self.give)(Given::Router {
                        router: i,
                        spot,
                        numbers,
                    });
                }
            }
            let sample = || -> Sample<'_> { Box::new(sample(row)) };
            (self.give)(Given::Node {
                node,
                spot,
                sample: &sample,
            });
        }
    }
}

/// At most [`SAMPLE`] values: one of each of as many parts. Which one differs from part to part, so
/// that no regular form of a row is missed.
fn sample(row: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let parts = row.len().min(SAMPLE);
    (0..parts).map(move |part| {
        let bounds = |part: usize| part * row.len() / parts;
        let (start, end) = (bounds(part), bounds(part + 1));
        // A step that has no divisor in common with most sizes.
        row[start + part * 7_919 % (end - start)]
    })
}
