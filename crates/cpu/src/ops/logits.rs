//! Logits: the output matrix, for the rows of which somebody wants it.

use candor_arch::{NodeId, Op};
use candor_backend::{RowOutput, SessionError, Want};

use super::attention::bound;
use super::linear::{Product, Tools, multiply};
use crate::forward::{Forward, Stopped};

/// Rows that are multiplied at once: with a vocabulary of 150,000 they take 20 MB.
const ROWS_AT_ONCE: usize = 32;

/// Sums side by side, a multiple of what any register holds.
const SUMS: usize = 64;

pub(crate) fn run(
    f: &mut Forward<'_>,
    node: NodeId,
    outputs: &mut Vec<RowOutput>,
) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let Op::Logits { weight, softcap } = graph.node(node).op else {
        unreachable!("only logits come here");
    };
    let vocabulary = graph.node(node).width;
    let input = graph.node(node).inputs[0];
    let width = graph.node(input).width;
    let wanted: Vec<usize> = (0..f.rows.len())
        .filter(|row| f.rows[*row].want != Want::Nothing)
        .collect();
    let matrix = f.machine.matrix(weight);
    let [gathered, logits] = &mut f.work.inner;
    let is_hidden = |row: &usize| f.rows[*row].want == Want::Hidden;
    let alike = wanted.chunk_by(|a, b| is_hidden(a) == is_hidden(b));
    for rows in alike.flat_map(|rows| rows.chunks(ROWS_AT_ONCE)) {
        gathered.clear();
        let x = f.work.values.of(input);
        if is_hidden(&rows[0]) {
            for row in rows {
                let values = &x[row * width..][..width];
                all_finite(values, &graph.node(input).name)?;
                outputs.push(RowOutput::Hidden(values.to_vec()));
            }
            continue;
        }
        for row in rows {
            gathered.extend_from_slice(&x[row * width..][..width]);
        }
        logits.resize(rows.len() * vocabulary, 0.0);
        let mut tools = Tools {
            machine: &f.machine,
            cancel: f.cancel,
            threads: &mut f.work.threads,
            panel: &mut f.work.panel,
        };
        let product = Product {
            matrix,
            bias: None,
            out: logits,
        };
        multiply(&mut tools, gathered, &mut [product])?;
        if f.cancel.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        for (row, logits) in rows.iter().zip(logits.chunks_exact_mut(vocabulary)) {
            all_finite(logits, &graph.node(node).name)?;
            if let Some(cap) = softcap {
                bound(cap, logits);
            }
            outputs.push(output(f.rows[*row].want, logits));
        }
    }
    Ok(())
}

fn all_finite(values: &[f32], node: &str) -> Result<(), Stopped> {
    // One pass: a value that is not finite makes the sum of its zeroes NaN. In several sums, since an
    // addition waits for the one before it: one alone took 4 % of a token of a small model.
    let (parts, tail) = values.as_chunks::<SUMS>();
    let mut sums = [0.0f32; SUMS];
    for part in parts {
        for (sum, v) in sums.iter_mut().zip(part) {
            *sum += v * 0.0;
        }
    }
    let all = sums.into_iter().chain(tail.iter().map(|v| v * 0.0));
    if all.sum::<f32>() == 0.0 {
        return Ok(());
    }
    let node = node.to_owned();
    Err(Stopped::Failed(SessionError::NotFinite { node }))
}

fn output(want: Want, logits: &[f32]) -> RowOutput {
    match want {
        Want::Top { k } => top(logits, k),
        _ => RowOutput::Logits(logits.to_vec()),
    }
}

/// The largest `k`, ties to the lower id.
fn top(logits: &[f32], k: usize) -> RowOutput {
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    let better = |a: &u32, b: &u32| {
        logits[*b as usize]
            .total_cmp(&logits[*a as usize])
            .then(a.cmp(b))
    };
    let k = k.min(ids.len());
    if k < ids.len() {
        ids.select_nth_unstable_by(k, better);
        ids.truncate(k);
    }
    ids.sort_unstable_by(better);
    let best = ids
        .into_iter()
        .map(|id| (id, logits[id as usize]))
        .collect();
    RowOutput::Top {
        best,
        lse: log_sum_exp(logits),
    }
}

fn log_sum_exp(logits: &[f32]) -> f32 {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let sum: f64 = logits.iter().map(|v| f64::from((v - largest).exp())).sum();
    (f64::from(largest) + sum.ln()) as f32
}
