//! Logits against an independent program's, on the tiny golden models.
//!
//! `tests/golden/README.md` says where the numbers come from.
#![expect(clippy::print_stderr, reason = "a test says what it measured")]

mod common;
#[allow(dead_code, reason = "the data of the processor's tests, not all of it")]
#[path = "../../cpu/tests/golden/data.rs"]
mod data;

use candor_backend::{Batch, Feed, Loaded, Row, RowOutput, Session, Want};

use common::{SLOT, forward, load, options};
use data::{Case, Golden};

/// Tokens of the prompt that are computed as a reply is: one after the other.
const DECODED: usize = 4;

/// Cases of a model that are computed: one of few tokens, which all go the way of a reply, and one
/// whose beginning is a prompt. A simulated card takes long for more.
const CASES: usize = 2;

fn logits(session: &mut dyn Session, tokens: &[u32]) -> Vec<Vec<f32>> {
    let rows = tokens.iter().map(|token| Row {
        slot: SLOT,
        feed: Feed::Token(*token),
        want: Want::Logits,
    });
    let rows = rows.collect();
    let outputs = forward(session, &Batch { rows }).outputs;
    let logits = outputs.into_iter().map(|output| match output {
        RowOutput::Logits(logits) => logits,
        RowOutput::Top { .. } | RowOutput::Hidden(_) => panic!("logits were asked for"),
    });
    logits.collect()
}

fn rms(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let off = |(f, e): (&f32, &f32)| f64::from(f - e).powi(2);
    let squares: f64 = found.iter().zip(expected).map(off).sum();
    (squares / found.len() as f64).sqrt() as f32
}

/// How far the logits of one case are off, as the root mean square over all positions, and how far
/// they may be: half as far again as the other program's fast arithmetic is off its exact one.
fn check_case(
    loaded: &dyn Loaded,
    (golden, numbers): (&Golden, &[f32]),
    case: &Case,
) -> (f32, f32) {
    let tokens = &case.tokens;
    let mut session = loaded
        .open(options(tokens.len()))
        .expect("the session opens");
    let (prompt, reply) = tokens.split_at(tokens.len() - DECODED);
    let mut found = logits(&mut *session, prompt);
    for token in reply {
        found.extend(logits(&mut *session, &[*token]));
    }
    let place = case.logits_f32.as_ref().expect("there are all logits");
    let expected = &numbers[place.offset..][..case.n_pos * golden.n_vocab];
    let expected = expected.chunks_exact(golden.n_vocab);
    let found = found[case.first_pos..].iter();
    assert_eq!(found.len(), expected.len());
    let each: Vec<f32> = found.zip(expected).map(|(f, e)| rms(f, e)).collect();
    let own = case.diff.as_ref().expect("both runs were made").rms;
    let squares: f32 = each.iter().map(|rms| rms * rms).sum();
    ((squares / each.len() as f32).sqrt(), (1.5 * own).max(0.01))
}

/// A prompt in one piece, then token by token.
fn check(name: &str) {
    let (golden, numbers) = data::read("logits", name);
    let mut backend = common::backend();
    let model = common::model(&data::model(&golden));
    let loaded = load(&mut *backend, &model).expect("the model loads");
    for case in &golden.cases[..CASES] {
        let (distance, limit) = check_case(&*loaded, (&golden, &numbers), case);
        eprintln!(
            "{name} {}: rms {distance:.2e}, {limit:.2e} is allowed",
            case.name
        );
        assert!(
            distance <= limit,
            "{name} {}: {distance} {limit}",
            case.name
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
    llama_f16_yarn: "s07-llama-f16-yarn",
    llama_f16_linear: "s08-llama-f16-linear",
    qwen2_q5: "s09-qwen2-q5_0-q5_1",
    qwen2_q4_k: "s10-qwen2-q4_k_m",
    qwen3_q5_k_wide_heads_tied: "s11-qwen3-q5_k_m",
    qwen3_q2_k_q3_k: "s12-qwen3-q2_k-q3_k",
    qwen3_iq4: "s13-qwen3-iq4",
    qwen3moe_q4_k: "s14-qwen3moe-q4_k_m",
    qwen3moe_mxfp4: "s15-qwen3moe-mxfp4",
    gemma3_q4_0: "s16-gemma3-q4_0",
    gemma3_q4_k_with_a_period_of_3: "s17-gemma3-q4_k_m",
    qwen35_f16: "s18-qwen35-f16",
    qwen35_q4_k: "s19-qwen35-q4_k_m",
    qwen35moe_q8_0: "s20-qwen35moe-q8_0",
    qwen3next_q8_0: "s21-qwen3next-q8_0",
    llama_iq: "s22-llama-iq2-iq3",
    phi3_q4_0: "s23-phi3-q4_0",
    phi3_q8_0_of_two_lengths: "s24-phi3-longrope-q8_0",
    gemma2_q4_0: "s25-gemma2-q4_0",
    granite_q5_1_tied: "s26-granite-q5_1",
    gpt_oss_mxfp4: "s27-gpt-oss-mxfp4",
    olmo2_f16: "s28-olmo2-f16",
    smollm3_q5_0_tied: "s29-smollm3-q5_0",
    deepseek_q4_1: "s30-deepseek-q4_1",
    gemma3_q8_0_stretched: "s31-gemma3-stretched-q8_0",
    olmo2_q8_0_with_windows_and_yarn: "s32-olmo2-window-q8_0",
    granitemoe_q8_0_tied: "s33-granitemoe-q8_0",
    mixtral_q5_0_tied: "s34-mixtral-q5_0",
}
