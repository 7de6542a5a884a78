//! The tiny models.

use candor_backend::{Batch, Precision, Rows, Tap, Want};

use crate::data::{self, Case, Golden};
use crate::runner::{self, SLOT};

/// Root mean square and largest absolute difference.
fn distance(found: &[f32], expected: &[f32]) -> (f32, f32) {
    assert_eq!(found.len(), expected.len());
    let mut squares = 0.0f64;
    let mut largest = 0.0f32;
    for (found, expected) in found.iter().zip(expected) {
        let d = found - expected;
        squares += f64::from(d) * f64::from(d);
        largest = largest.max(d.abs());
    }
    ((squares / found.len() as f64).sqrt() as f32, largest)
}

/// Runs every case of a model on both paths.
fn check(name: &str) {
    let (golden, numbers) = data::read("logits", name);
    let loaded = runner::load(&data::model(&golden));
    let mut decided = 0;
    for case in &golden.cases {
        let ctx_len = case.tokens.len() + case.greedy_f32.len();
        let place = case
            .logits_f32
            .as_ref()
            .expect("the tiny models have all logits");
        let expected = &numbers[place.offset..][..case.n_pos * golden.n_vocab];
        for precision in [Precision::Exact, Precision::Fast] {
            let mut session = runner::open(&*loaded, precision, ctx_len);
            let found = runner::logits(&mut *session, &case.tokens, case.first_pos, 512).concat();
            let (rms, largest) = distance(&found, expected);
            eprintln!(
                "{name} {} {precision:?}: rms {rms:.2e}, largest {largest:.2e}",
                case.name
            );
            let own = case.diff.as_ref().expect("both runs were made").rms;
            let (rms_max, largest_max) = match precision {
                // Only the order of float32 sums differs.
                Precision::Exact => (1e-3, 1e-2),
                // As near as the other program's own 8-bit activations.
                Precision::Fast => ((1.5 * own).max(0.01), f32::INFINITY),
            };
            assert!(
                rms <= rms_max && largest <= largest_max,
                "{rms} {rms_max} {largest}"
            );
        }
        let mut session = runner::open(&*loaded, Precision::Exact, ctx_len);
        let steps = runner::check_greedy(
            &mut *session,
            &case.tokens,
            &case.greedy_f32,
            &case.greedy_margin_f32,
            // The logits are within 1e-4, as the lines above print.
            2e-3,
        );
        eprintln!("{name} {}: {steps} greedy steps", case.name);
        decided += steps;
    }
    assert!(decided > 16, "most steps are no ties");
    check_trace(&golden, &golden.cases[0], &numbers);
}

/// Collects the nodes that the trace has, under its names.
struct Trace(Vec<(String, Vec<f32>)>);

impl Tap for Trace {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        assert_eq!(values.len(), rows * width, "{node}");
        let mut parts = node.splitn(3, '.');
        let name = match (parts.next(), parts.next(), parts.next()) {
            (Some("blk"), Some(layer), Some("attn_norm")) => format!("attn_norm-{layer}"),
            (Some("blk"), Some(layer), Some("out")) => format!("l_out-{layer}"),
            (Some("output_norm"), ..) => "result_norm".to_owned(),
            (Some("embed"), ..) => "inp_embd".to_owned(),
            _ => return,
        };
        self.0.push((name, values.to_vec()));
    }
}

/// Holds the values between the nodes of the exact path against the trace.
fn check_trace(golden: &Golden, case: &Case, numbers: &[f32]) {
    let loaded = runner::load(&data::model(golden));
    let mut session = runner::open(&*loaded, Precision::Exact, case.tokens.len());
    let mut tap = Trace(Vec::new());
    let batch = Batch::of_slot(SLOT, &case.tokens, Want::Logits);
    session
        .tapped(&batch, &mut tap, &mut Rows::default())
        .expect("the forward succeeds");
    assert!(case.trace_f32.len() >= 5, "two layers and the ends");
    for trace in &case.trace_f32 {
        let expected = &numbers[trace.offset..][..trace.shape[0] * trace.shape[1]];
        let found = tap.0.iter().find(|(name, _)| *name == trace.name);
        let (_, found) = found.unwrap_or_else(|| panic!("no node gives {}", trace.name));
        // The last rows only are kept where the other program drops the rest after attention.
        let found = &found[found.len() - expected.len()..];
        let (rms, largest) = distance(found, expected);
        let scale = (expected.iter().map(|v| v * v).sum::<f32>() / expected.len() as f32).sqrt();
        // Relative to the values, since they grow from layer to layer.
        assert!(
            rms <= 1e-4 * scale && largest <= 1e-3 * scale,
            "{} {}: rms {rms}, largest {largest}, values {scale}",
            golden.model,
            trace.name
        );
    }
}

macro_rules! models {
    ($($name:ident: $file:literal,)*) => { $(
        #[test]
        fn $name() {
            check($file);
        }
    )* };
}

models! {
    llama_f32: "s01-llama-f32",
    llama_f16_tied: "s02-llama-f16-spm",
    llama_bf16_with_rope_factors: "s03-llama-bf16-ropefreqs",
    llama_q8_0: "s04-llama-q8_0",
    llama_q4_0: "s05-llama-q4_0",
    llama_q4_1_tied: "s06-llama-q4_1",
    llama_iq: "s22-llama-iq2-iq3",
    qwen2_q5: "s09-qwen2-q5_0-q5_1",
    qwen2_q4_k: "s10-qwen2-q4_k_m",
}
