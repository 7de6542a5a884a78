//! Experts: each row goes through a few feed-forwards of many, chosen by a router.
//!
//! The router is multiplied in float32 on either path, since a small change of it can choose
//! another expert. The rows of an expert are gathered and go through it together, and several
//! experts are computed at once, so that no thread waits at the end of each. What they give is
//! added in the order of the experts, so that a row does not depend on the others.

use candor_arch::{NodeId, Op, Routing, Shares};

use super::gated_ffn::{Ffn, FfnBiases, multiply_parts};
use super::linear::{Product, Tools, multiply};
use crate::forward::{Forward, ROWS_MAX, Stopped, each_row};
use crate::weights::Matrix;

/// A row of an expert.
#[derive(Clone, Copy)]
struct Chosen {
    row: usize,
    share: f32,
}

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let it = f.machine.weights.model.graph.node(node);
    let Op::Experts {
        router,
        gate,
        up,
        down,
        biases,
        routing,
        inner,
        activation,
    } = it.op
    else {
        unreachable!("only experts come here");
    };
    let (width, n_rows) = (it.width, f.rows.len());
    let mut out = f.work.values.take(node, n_rows * width);
    out.fill(0.0);
    let x = f.work.values.of(it.inputs[0]);
    let machine = &f.machine;
    let mut tools = Tools {
        machine,
        cancel: f.cancel,
        threads: &mut f.work.threads,
        panel: &mut f.work.panel,
    };
    let vector = |id| machine.weights.vector(id);
    let router = Router {
        matrix: Matrix::Stored(machine.weights.stored(router)),
        bias: biases.map(|biases| vector(biases.router)),
        routing,
    };
    let ffn_of = |expert: usize| Ffn {
        gate: machine.expert(gate, expert),
        up: machine.expert(up, expert),
        down: machine.expert(down, expert),
        biases: biases.map(|biases| FfnBiases {
            gate: &vector(biases.gate)[expert * inner..][..inner],
            up: &vector(biases.up)[expert * inner..][..inner],
            down: &vector(biases.down)[expert * width..][..width],
        }),
        inner,
        activation,
    };
    let mut wave = Wave::new(n_rows);
    let rows_of = router.choose(&mut tools, x);
    let done = rows_of.and_then(|rows_of| {
        let chosen = rows_of
            .iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty());
        for (expert, rows) in chosen {
            if wave.rows() + rows.len() > WAVE_ROWS {
                wave.run(&mut tools, &mut f.work.inner, (&mut out, width))?;
            }
            wave.add(ffn_of(expert), rows, (x, width));
        }
        wave.run(&mut tools, &mut f.work.inner, (&mut out, width))
    });
    f.work.values.put(node, out);
    done
}

/// Rows that go through their experts together, unless one expert alone has more: as many as go
/// through the plan together. In a reply that is every expert of a row, in a prompt some of them.
const WAVE_ROWS: usize = ROWS_MAX;

/// Some experts and their rows.
struct Wave<'a> {
    parts: Vec<(Ffn<'a>, usize)>,
    /// The rows of the first expert, then those of the next.
    gathered: Vec<f32>,
    given: Vec<f32>,
    /// For each row of the batch, where its results are and what they count, by expert.
    shares: Vec<Vec<(usize, f32)>>,
}

impl<'a> Wave<'a> {
    fn new(n_rows: usize) -> Self {
        Self {
            parts: Vec::new(),
            gathered: Vec::new(),
            given: Vec::new(),
            shares: vec![Vec::new(); n_rows],
        }
    }

    fn rows(&self) -> usize {
        self.parts.iter().map(|(_, rows)| rows).sum()
    }

    fn add(&mut self, ffn: Ffn<'a>, rows: &[Chosen], (x, width): (&[f32], usize)) {
        let first = self.rows();
        for (i, chosen) in rows.iter().enumerate() {
            let row = &x[chosen.row * width..][..width];
            self.gathered.extend_from_slice(row);
            self.shares[chosen.row].push((first + i, chosen.share));
        }
        self.parts.push((ffn, rows.len()));
    }

    /// Adds to `out` what the experts give, and begins anew.
    fn run(
        &mut self,
        tools: &mut Tools<'_>,
        inner: &mut [Vec<f32>; 2],
        (out, width): (&mut [f32], usize),
    ) -> Result<(), Stopped> {
        self.given.resize(self.gathered.len(), 0.0);
        multiply_parts(&self.parts, tools, &self.gathered, inner, &mut self.given)?;
        let (given, shares) = (&self.given, &self.shares);
        each_row(
            tools.machine,
            tools.cancel,
            tools.threads,
            (out, width),
            |row, out| {
                for (at, share) in &shares[row] {
                    for (out, given) in out.iter_mut().zip(&given[at * width..]) {
                        *out += share * given;
                    }
                }
            },
        )?;
        self.parts.clear();
        self.gathered.clear();
        self.shares.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// Chooses the experts of rows.
struct Router<'a> {
    matrix: Matrix<'a>,
    bias: Option<&'a [f32]>,
    routing: Routing,
}

impl Router<'_> {
    /// For each expert, the rows that go through it.
    fn choose(&self, tools: &mut Tools<'_>, x: &[f32]) -> Result<Vec<Vec<Chosen>>, Stopped> {
        let n_experts = self.matrix.rows();
        let n_rows = x.len() / self.matrix.cols();
        let mut logits = vec![0.0; n_rows * n_experts];
        let product = Product {
            matrix: self.matrix,
            bias: self.bias,
            out: &mut logits,
        };
        multiply(tools, x, &mut [product])?;
        let mut rows_of = vec![Vec::new(); n_experts];
        let mut order: Vec<usize> = Vec::new();
        let mut shares = Vec::new();
        for (row, logits) in logits.chunks_exact(n_experts).enumerate() {
            order.clear();
            order.extend(0..n_experts);
            // Stable, so that of equal ones the lower expert comes first.
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
            let counted = match self.routing.shares {
                Shares::OfAll => n_experts,
                Shares::OfChosen => self.routing.n_used,
            };
            shares.clear();
            shares.extend(order[..counted].iter().map(|expert| logits[*expert]));
            softmax(&mut shares);
            let best = order.iter().zip(&shares).take(self.routing.n_used);
            for (expert, share) in best {
                let share = share * self.routing.scale;
                rows_of[*expert].push(Chosen { row, share });
            }
        }
        Ok(rows_of)
    }
}

/// Of values of which the first is the largest.
fn softmax(values: &mut [f32]) {
    let largest = values.first().copied().unwrap_or(0.0);
    values.iter_mut().for_each(|v| *v = (*v - largest).exp());
    let total: f32 = values.iter().sum();
    values.iter_mut().for_each(|v| *v /= total);
}
