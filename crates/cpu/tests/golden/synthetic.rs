//! The tiny models.

use candor_backend::{Batch, CancelToken, Precision, Rows, Tap, Want};

use crate::data::{self, Case, Golden};
use crate::runner::{self, SLOT};

/// Root mean square and largest absolute difference.
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> (f32, f32) {
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

/// How near a model can be expected, by what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only the order of float32 sums differs.
    Plain,
    /// The other program takes GELU from a table in half precision, and a delta net amplifies
    /// what float32 rounds.
    Amplified,
}

impl Kind {
    /// Root mean square and largest difference of the exact path.
    fn exact(self) -> (f32, f32) {
        match self {
            Self::Plain => (1e-3, 1e-2),
            Self::Amplified => (4e-3, 5e-2),
        }
    }
}

/// How the fast path is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fast {
    /// Root mean square over all positions, within 1.5 of the other program's.
    All,
    /// The median over the positions of their root mean squares, within 3: where two experts are
    /// close, rounding chooses the other one, and one position's logits jump.
    Median,
}

/// Runs every case of a model on both paths.
fn check(name: &str, kind: Kind, fast: Fast) {
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
            let (rms, largest) = match (precision, fast) {
                (Precision::Fast, Fast::Median) => median(&found, expected, golden.n_vocab),
                _ => distance(&found, expected),
            };
            eprintln!(
                "{name} {} {precision:?}: rms {rms:.2e}, largest {largest:.2e}",
                case.name
            );
            let own = case.diff.as_ref().expect("both runs were made").rms;
            let (rms_max, largest_max) = match (precision, fast) {
                (Precision::Exact, _) => kind.exact(),
                // As near as the other program's own 8-bit activations.
                (Precision::Fast, Fast::All) => ((1.5 * own).max(0.01), f32::INFINITY),
                (Precision::Fast, Fast::Median) => ((3.0 * own).max(0.01), f32::INFINITY),
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
            // Twice what the lines above print, at the most.
            match kind {
                Kind::Plain => 2e-3,
                Kind::Amplified => 2e-2,
            },
        );
        eprintln!("{name} {}: {steps} greedy steps", case.name);
        decided += steps;
    }
    assert!(decided > 16, "most steps are no ties");
    check_trace(&golden, &golden.cases[0], &numbers, kind);
}

/// The root mean square of the position in the middle, and the largest difference of all.
fn median(found: &[f32], expected: &[f32], n_vocab: usize) -> (f32, f32) {
    let rows = found.chunks(n_vocab).zip(expected.chunks(n_vocab));
    let (mut each, largest): (Vec<f32>, Vec<f32>) = rows.map(|(f, e)| distance(f, e)).unzip();
    each.sort_by(f32::total_cmp);
    let largest = largest.into_iter().fold(0.0, f32::max);
    (each[each.len() / 2], largest)
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
            (Some("embed_scaled"), ..) => "inp_scaled".to_owned(),
            _ => return,
        };
        self.0.push((name, values.to_vec()));
    }
}

/// Holds the values between the nodes of the exact path against the trace.
fn check_trace(golden: &Golden, case: &Case, numbers: &[f32], kind: Kind) {
    let loaded = runner::load(&data::model(golden));
    let mut session = runner::open(&*loaded, Precision::Exact, case.tokens.len());
    let mut tap = Trace(Vec::new());
    let batch = Batch::of_slot(SLOT, &case.tokens, Want::Logits);
    session
        .tapped(
            &batch,
            (&mut tap, &CancelToken::new()),
            &mut Rows::default(),
        )
        .expect("the forward succeeds");
    assert!(case.trace_f32.len() >= 3, "a layer and the end");
    for trace in &case.trace_f32 {
        let expected = &numbers[trace.offset..][..trace.shape[0] * trace.shape[1]];
        let found = tap.0.iter().find(|(name, _)| *name == trace.name);
        let (_, found) = found.unwrap_or_else(|| panic!("no node gives {}", trace.name));
        // The last rows only are kept where the other program drops the rest after attention.
        let found = &found[found.len() - expected.len()..];
        let (rms, largest) = distance(found, expected);
        let scale = (expected.iter().map(|v| v * v).sum::<f32>() / expected.len() as f32).sqrt();
        // Relative to the values, since they grow from layer to layer.
        let limit = match kind {
            Kind::Plain => 1e-4,
            Kind::Amplified => 2e-3,
        };
        assert!(
            rms <= limit * scale && largest <= 10.0 * limit * scale,
            "{} {}: rms {rms}, largest {largest}, values {scale}",
            golden.model,
            trace.name
        );
    }
}

macro_rules! models {
    ($($name:ident: $file:literal $kind:ident $fast:ident,)*) => { $(
        #[test]
        pub(crate) fn $name() {
            check($file, Kind::$kind, Fast::$fast);
        }
    )* };
}

models! {
    llama_f32: "s01-llama-f32" Plain All,
    llama_f16_tied: "s02-llama-f16-spm" Plain All,
    llama_bf16_with_rope_factors: "s03-llama-bf16-ropefreqs" Plain All,
    llama_q8_0: "s04-llama-q8_0" Plain All,
    llama_q4_0: "s05-llama-q4_0" Plain All,
    llama_q4_1_tied: "s06-llama-q4_1" Plain All,
    llama_f16_yarn: "s07-llama-f16-yarn" Plain All,
    llama_f16_linear: "s08-llama-f16-linear" Plain All,
    qwen2_q5: "s09-qwen2-q5_0-q5_1" Plain All,
    qwen2_q4_k: "s10-qwen2-q4_k_m" Plain All,
    qwen3_q5_k_wide_heads_tied: "s11-qwen3-q5_k_m" Plain All,
    qwen3_q2_k_q3_k: "s12-qwen3-q2_k-q3_k" Plain All,
    qwen3_iq4: "s13-qwen3-iq4" Plain All,
    qwen3moe_q4_k: "s14-qwen3moe-q4_k_m" Plain Median,
    qwen3moe_mxfp4: "s15-qwen3moe-mxfp4" Plain Median,
    gemma3_q4_0: "s16-gemma3-q4_0" Amplified All,
    gemma3_q4_k_with_a_period_of_3: "s17-gemma3-q4_k_m" Amplified All,
    qwen35_f16: "s18-qwen35-f16" Amplified All,
    qwen35_q4_k: "s19-qwen35-q4_k_m" Amplified Median,
    qwen35moe_q8_0: "s20-qwen35moe-q8_0" Amplified Median,
    qwen3next_q8_0: "s21-qwen3next-q8_0" Amplified Median,
    llama_iq: "s22-llama-iq2-iq3" Plain All,
    phi3_q4_0: "s23-phi3-q4_0" Plain All,
    phi3_q8_0_of_two_lengths: "s24-phi3-longrope-q8_0" Plain All,
    gemma2_q4_0: "s25-gemma2-q4_0" Amplified All,
    granite_q5_1_tied: "s26-granite-q5_1" Plain All,
    gpt_oss_mxfp4: "s27-gpt-oss-mxfp4" Plain Median,
    olmo2_f16: "s28-olmo2-f16" Plain All,
    smollm3_q5_0_tied: "s29-smollm3-q5_0" Plain All,
    deepseek_q4_1: "s30-deepseek-q4_1" Plain Median,
    gemma3_q8_0_stretched: "s31-gemma3-stretched-q8_0" Amplified All,
    olmo2_q8_0_with_windows_and_yarn: "s32-olmo2-window-q8_0" Plain All,
    granitemoe_q8_0_tied: "s33-granitemoe-q8_0" Plain Median,
    mixtral_q5_0_tied: "s34-mixtral-q5_0" Plain Median,
}
