//! Logits.

use candor_arch::{Node, Op};

use super::bench::{Bench, SLOT, VOCABULARY, around, compare, open, quant, run, tokens};
use super::{Subject, Tolerance, reference};
use crate::{Batch, RowOutput, Want};

/// One product with activations of 8 bits on the fast path, as for Linear.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-2,
};

/// As they are, and bounded.
pub fn logits_match_the_reference(subject: &Subject) {
    for softcap in [None, Some(1.5)] {
        for stored in ["F32", "Q8_0"] {
            for n_rows in [40, 2] {
                check(subject, softcap, (stored, 96), n_rows);
            }
        }
    }
}

/// One storage type.
pub fn logits_of(subject: &Subject, stored: &str) {
    let width = quant(stored).block_elems.max(32);
    for n_rows in [3, 11] {
        check(subject, None, (stored, width), n_rows);
    }
}

fn check(subject: &Subject, softcap: Option<f32>, (stored, width): (&str, usize), n_rows: usize) {
    let mut graph = around(width, |_, embed| embed);
    if let Some(Node {
        op: Op::Logits { softcap: cap, .. },
        ..
    }) = graph.nodes.last_mut()
    {
        *cap = softcap;
    }
    let bench = Bench::new(graph, |name| match name {
        "output.weight" => quant(stored),
        _ => quant("F32"),
    });
    let values = |name| bench.named(name).expect("the graph has it");
    let (table, output) = (values("token_embd.weight"), values("output.weight"));
    let tokens = tokens("logits", n_rows);
    let mut session = open(subject, &*bench.load(subject), 1, 64);
    let mut batch = Batch::of_slot(SLOT, &tokens, Want::Logits);
    batch
        .rows
        .iter_mut()
        .for_each(|row| row.want = Want::Logits);
    let mut found = Vec::new();
    for output in run(&mut *session, &batch) {
        let RowOutput::Logits(logits) = output else {
            panic!("logits were asked for")
        };
        assert_eq!(logits.len(), VOCABULARY);
        found.extend(logits);
    }
    let expected = tokens.iter().flat_map(|token| {
        let row = reference::wide(&table[*token as usize * width..][..width]);
        let logits = reference::linear(output, &row);
        logits
            .into_iter()
            .map(move |logit| reference::softcap(logit, softcap))
    });
    let expected: Vec<f64> = expected.collect();
    let what = format!("{stored}, within {softcap:?}");
    compare(subject, &what, &found, &expected, TOLERANCE);
}
