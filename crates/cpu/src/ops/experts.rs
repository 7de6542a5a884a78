//! Experts: each row goes through a few feed-forwards of many, chosen by a router.
//!
//! The router is multiplied in float32 on either path, since a small change of it can choose
//! another expert. The rows of an expert are gathered and go through it together; what they give
//! is added in the order of the experts, so that a row does not depend on the others.

use candor_arch::{NodeId, Op};

use super::gated_ffn::Ffn;
use super::linear::{Product, Tools, multiply};
use crate::forward::{Forward, Stopped};
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
        n_used,
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
    let router = Matrix::Stored(machine.weights.stored(router));
    let rows_of = choose(&mut tools, x, router, n_used);
    let (mut gathered, mut given) = (Vec::new(), Vec::new());
    let done = rows_of.and_then(|rows_of| {
        for (expert, rows) in rows_of
            .iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
        {
            gathered.clear();
            for chosen in rows {
                gathered.extend_from_slice(&x[chosen.row * width..][..width]);
            }
            given.resize(rows.len() * width, 0.0);
            let ffn = Ffn {
                gate: machine.expert(gate, expert),
                up: machine.expert(up, expert),
                down: machine.expert(down, expert),
                inner,
                activation,
            };
            ffn.multiply(&mut tools, &gathered, &mut f.work.inner, &mut given)?;
            for (chosen, given) in rows.iter().zip(given.chunks_exact(width)) {
                let out = &mut out[chosen.row * width..][..width];
                for (out, given) in out.iter_mut().zip(given) {
                    *out += chosen.share * given;
                }
            }
        }
        Ok(())
    });
    f.work.values.put(node, out);
    done
}

/// For each expert, the rows that go through it.
fn choose(
    tools: &mut Tools<'_>,
    x: &[f32],
    router: Matrix<'_>,
    n_used: usize,
) -> Result<Vec<Vec<Chosen>>, Stopped> {
    let n_experts = router.rows();
    let n_rows = x.len() / router.cols();
    let mut logits = vec![0.0; n_rows * n_experts];
    let product = Product {
        matrix: router,
        bias: None,
        out: &mut logits,
    };
    multiply(tools, x, &mut [product])?;
    let mut rows_of = vec![Vec::new(); n_experts];
    let mut order: Vec<usize> = Vec::new();
    for (row, logits) in logits.chunks_exact_mut(n_experts).enumerate() {
        softmax(logits);
        order.clear();
        order.extend(0..n_experts);
        // Stable, so that of equal shares the lower expert comes first.
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
        let best = &order[..n_used];
        let total: f32 = best.iter().map(|expert| logits[*expert]).sum();
        for expert in best {
            let share = logits[*expert] / total;
            rows_of[*expert].push(Chosen { row, share });
        }
    }
    Ok(rows_of)
}

fn softmax(values: &mut [f32]) {
    let largest = values.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    values.iter_mut().for_each(|v| *v = (*v - largest).exp());
    let total: f32 = values.iter().sum();
    values.iter_mut().for_each(|v| *v /= total);
}
