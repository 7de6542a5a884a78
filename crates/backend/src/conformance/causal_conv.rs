//! CausalConv.

use candor_arch::{Node, Op, StateLayout, WeightId};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// A few products, and an exponential.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-5,
};

/// Rows before and after the first ones, few taps and many.
pub fn causal_conv_matches_the_reference(subject: &Subject) {
    for (channels, taps, n_rows) in [(32, 4, 1), (96, 4, 30), (50, 2, 9), (17, 7, 40)] {
        check(subject, channels, taps, n_rows);
    }
}

fn check(subject: &Subject, channels: usize, taps: usize, n_rows: usize) {
    let mut weight = WeightId(0);
    let mut graph = around(channels, |builder, embed| {
        weight = builder.table("conv.weight", &[channels, taps]);
        builder.state(StateLayout::Recurrent {
            channels,
            taps,
            n_heads: 1,
            state_size: 1,
        });
        builder.node(Node {
            name: "conv".to_owned(),
            op: Op::CausalConv { weight, taps },
            inputs: vec![embed],
            layer: Some(0),
            width: channels,
        })
    });
    graph.hparams.n_layers = 1;
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs_in_parts(subject, &tokens("conv", n_rows));
    let rows: Vec<&[f32]> = seen["embed"].chunks_exact(channels).collect();
    let mut expected = Vec::new();
    for row in 0..n_rows {
        for (channel, weights) in bench.values(weight).chunks_exact(taps).enumerate() {
            // The last weight belongs to the row itself; before the first row there is nothing.
            let term = |(back, w): (usize, &f32)| {
                let value = row.checked_sub(back).map_or(0.0, |row| rows[row][channel]);
                f64::from(*w) * f64::from(value)
            };
            let sum: f64 = weights.iter().rev().enumerate().map(term).sum();
            expected.push(sum * reference::sigmoid(sum));
        }
    }
    let what = format!("{channels} channels, {taps} taps, {n_rows} rows");
    compare(subject, &what, &seen["conv"], &expected, TOLERANCE);
}
