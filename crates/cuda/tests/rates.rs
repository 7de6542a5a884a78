//! What is measured on a card, in small on the simulated one: every figure that is wanted of a card
//! has its row. What the figures say, only a card can.
#![cfg(not(feature = "real-driver"))]

#[allow(dead_code, reason = "the program's own beginning")]
#[path = "../benches/card.rs"]
mod card;
mod common;

use candor_testkit::large::LargeModel;
use simcuda::{Library, scenario};

use common::simulated;

/// The shapes that a simulated card can run, of the usual form and with experts.
const SHAPES: [&str; 2] = ["llama-tiny", "qwen3moe-tiny"];

/// How the rows of a model go on behind its name.
const OF_A_MODEL: [&str; 5] = [
    "loaded with its kernels",
    "a question to the card's thread, two a token",
    "read a second of 24",
    "stop of a prompt of 24",
    "written a second after 16",
];

scenario!(
    every_figure_of_a_card_has_its_row,
    "",
    |library: Library| {
        let folder = tempfile::tempdir().expect("there is room for it");
        let paths = SHAPES.map(|name| folder.path().join(format!("{name}.gguf")));
        for (name, path) in SHAPES.iter().zip(&paths) {
            let shape = LargeModel::by_name(name).expect("it is known");
            shape.write(path, 1).expect("it is written");
        }
        let mut rows: Vec<(String, String)> = Vec::new();
        let mut keep = |what: &str, found: String, beside: String| {
            rows.push((what.to_owned(), format!("{found}{beside}")));
        };
        let models = [&*paths[0], &*paths[1]];
        card::measure(&simulated(), &card::SMALL, &models, &mut keep).expect("it measures");
        let types = candor_quant::TYPES.iter();
        let types = types.map(|quant| format!("{}, GB/s of its products", quant.name));
        let of_models = SHAPES.iter().flat_map(|name| {
            let of_one = OF_A_MODEL.iter();
            of_one.map(move |what| format!("{name}, {what}"))
        });
        let wanted: Vec<String> = types.chain(of_models).collect();
        let found: Vec<&String> = rows.iter().map(|(what, _)| what).collect();
        assert_eq!(found, wanted.iter().collect::<Vec<_>>());
        assert!(rows.iter().all(|(_, found)| !found.is_empty()), "{rows:?}");
        assert!(library.counters().graph_launches() > 0);
    }
);

/// On a card it is the contexts and prompts that people have.
#[test]
fn a_card_is_measured_at_the_lengths_that_are_compared() {
    assert_eq!(card::REAL.contexts, [128, 4_096, 16_384]);
    assert_eq!(card::REAL.prompts, [512, 4_096]);
}
