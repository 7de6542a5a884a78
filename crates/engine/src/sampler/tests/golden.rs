//! The stages against llama.cpp's samplers: `tests/golden/samplers`, written by
//! `tests/oracles/gen_samplers.py`.

use std::path::Path;

use serde_json::Value;

use super::super::filters::xtc;
use super::super::penalties::{dry, penalties};
use super::*;

fn read() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../tests/golden/samplers/llama_cpp.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(case: &Value, key: &str) -> f32 {
    case[key].as_f64().unwrap() as f32
}

fn ids(list: &Value) -> Vec<u32> {
    let list = list.as_array().unwrap();
    list.iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// The formula of the script.
fn logits(vocabulary: u64, case: &Value) -> Vec<f32> {
    let seed = case["seed"].as_u64().unwrap();
    let logit = |id: u64| ((id * 7919 + 13 * seed) % 1009) as f32 / 100.0 - 5.0;
    (0..vocabulary).map(logit).collect()
}

/// The logits are as before but for those that the case names.
fn check_changed(case: &Value, before: &[f32], found: &[f32]) -> usize {
    let mut expected = before.to_vec();
    let changed = case["changed"].as_array().unwrap();
    for pair in changed {
        expected[pair[0].as_u64().unwrap() as usize] = pair[1].as_f64().unwrap() as f32;
    }
    for (id, (found, expected)) in found.iter().zip(&expected).enumerate() {
        // The last bits of a power differ between libraries.
        let allowed = 1e-6 * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() <= allowed,
            "{id}: {found} {expected}\n{case}"
        );
    }
    changed.len()
}

#[test]
fn penalties_dry_and_xtc_change_what_llama_cpp_changes() {
    let golden = read();
    let vocabulary = golden["vocabulary"].as_u64().unwrap();
    let breakers = ids(&golden["breakers"]);
    let (mut changed, mut removed) = (0, 0);
    for case in golden["cases"].as_array().unwrap() {
        let history = ids(&case["history"]);
        let before = logits(vocabulary, case);
        let mut after = before.clone();
        let context = (&history[..], &breakers[..]);
        match case["stage"].as_str().unwrap() {
            "penalties" => {
                let numbers = sampling(|s| {
                    s.repeat_penalty = number(case, "repeat_penalty");
                    s.frequency_penalty = number(case, "frequency_penalty");
                    s.presence_penalty = number(case, "presence_penalty");
                });
                apply(penalties, &numbers, &mut after, context);
                changed += check_changed(case, &before, &after);
            }
            "dry" => {
                let numbers = sampling(|s| {
                    s.dry_multiplier = number(case, "multiplier");
                    s.dry_base = number(case, "base");
                    s.dry_allowed_length = number(case, "allowed_length") as usize;
                    s.dry_window = number(case, "window") as usize;
                });
                apply(dry, &numbers, &mut after, context);
                changed += check_changed(case, &before, &after);
            }
            "xtc" => {
                let spread = number(case, "spread");
                after.iter_mut().for_each(|logit| *logit *= spread);
                let numbers = sampling(|s| {
                    (s.xtc_probability, s.xtc_threshold) = (1.0, number(case, "threshold"));
                });
                let left = apply(xtc, &numbers, &mut after, context);
                let gone = |id: &u32| !left.iter().any(|candidate| candidate.id == *id);
                let found: Vec<u32> = (0..vocabulary as u32).filter(gone).collect();
                assert_eq!(found, ids(&case["removed"]), "{case}");
                removed += found.len();
            }
            other => panic!("no such stage: {other}"),
        }
    }
    assert!(changed > 100 && removed > 100, "{changed} {removed}");
}

#[test]
fn a_repetition_ends_at_the_tokens_at_which_llama_cpp_ends_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../tests/golden/models/s04-llama-q8_0.gguf");
    let file = candor_modelfile::ModelFile::open(&path).unwrap();
    let spec = file.index().tokenizer.as_ref().unwrap();
    let tokenizer = candor_text::Tokenizer::from_spec(spec).unwrap();
    let found = crate::request::breakers(&tokenizer);
    assert_eq!(found, ids(&read()["breakers"]));
}
