//! Embed.

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// Both paths give the table's values.
const TOLERANCE: Tolerance = Tolerance {
    exact: 0.0,
    fast: 0.0,
};

/// Every storage type, and rows in any order.
pub fn embed_matches_the_reference(subject: &Subject) {
    for stored in subject.size.pick(candor_quant::TYPES, &[]) {
        embed_of(subject, stored.name);
    }
}

/// One storage type.
pub fn embed_of(subject: &Subject, stored: &str) {
    let stored = quant(stored);
    for n_rows in [19, 3] {
        let width = 512;
        let graph = around(width, |_, embed| embed);
        let table = graph
            .weights
            .iter()
            .position(|w| w.name == "token_embd.weight");
        let table = candor_arch::WeightId(table.expect("the embedding has a table"));
        let bench = Bench::new(graph, |name| match name {
            "token_embd.weight" => stored,
            _ => quant("F32"),
        });
        let tokens = tokens("embed", n_rows);
        let found = &bench.outputs(subject, &tokens)["embed"];
        let row = |token: &u32| &bench.values(table)[*token as usize * width..][..width];
        let expected: Vec<f64> = tokens
            .iter()
            .flat_map(|t| reference::wide(row(t)))
            .collect();
        compare(subject, stored.name, found, &expected, TOLERANCE);
    }
}
