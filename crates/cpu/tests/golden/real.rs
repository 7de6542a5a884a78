//! Real models, where this machine has them.

use candor_backend::{Loaded, Precision, RowOutput, Want};

use crate::data::{self, Case, Golden, Top};
use crate::runner;

/// What a path may differ by.
struct Limits {
    /// Of the twenty best logits of every position, root mean square.
    rms: f32,
    /// Of the mean negative log-likelihood of a text of about 1,100 tokens.
    mean_nll: f64,
}

/// The best logits are within 1e-3 where float32 sums differ in their order only.
const EXACT: Limits = Limits {
    rms: 1e-3,
    mean_nll: 2e-3,
};

/// The other program takes GELU from a table in half precision.
const EXACT_WITH_GELU: Limits = Limits {
    rms: 4e-3,
    mean_nll: 4e-3,
};

fn check(name: &str, exact: &Limits) {
    let (golden, _) = data::read("real", name);
    let Some(path) = data::real_model(&golden) else {
        eprintln!(
            "NOT RUN: {} is neither in CANDOR_TEST_MODELS nor in target/models",
            golden.model
        );
        return;
    };
    let loaded = runner::load(&path);
    let fast = fast_limits(&golden);
    for case in &golden.cases {
        for (precision, limits) in [(Precision::Exact, exact), (Precision::Fast, &fast)] {
            let ctx_len = case.tokens.len() + case.greedy_f32.len();
            let mut session = runner::open(&*loaded, precision, ctx_len);
            if let Some(top) = &case.top_f32 {
                let found = runner::logits(&mut *session, &case.tokens, 0, 512);
                let rms = top_distance(&found, top);
                eprintln!(
                    "{name} {} {precision:?}: rms {rms:.2e} of {:.2e}",
                    case.name, limits.rms
                );
                assert!(rms <= limits.rms, "{rms}");
            }
            if let Some(expected) = case.mean_nll_f32 {
                let found = mean_nll(&mut *session, &case.tokens);
                let d = (found - expected).abs();
                eprintln!(
                    "{name} {} {precision:?}: mean nll {found:.5}, expected {expected:.5}",
                    case.name
                );
                assert!(d <= limits.mean_nll, "{d}");
            }
        }
    }
    check_greedy(&*loaded, &golden);
}

/// Steps of the exact path, which dequantises the whole model for each.
const EXACT_STEPS: usize = 12;

fn check_greedy(loaded: &dyn Loaded, golden: &Golden) {
    let case = &golden.cases[0];
    let ctx_len = case.tokens.len() + case.greedy_f32.len();
    let mut session = runner::open(loaded, Precision::Exact, ctx_len);
    let steps = runner::check_greedy(
        &mut *session,
        &case.tokens,
        &case.greedy_f32[..EXACT_STEPS],
        &case.greedy_margin_f32,
        1e-2,
    );
    eprintln!("{} {}: {steps} greedy steps", golden.model, case.name);
    assert!(steps > 0, "the first step is decided");
}

/// The other program's own distance from its float32 run, times 1.5, and as much for the mean.
fn fast_limits(golden: &Golden) -> Limits {
    let own = |case: &Case| -> Option<Vec<f32>> {
        let (top, exact) = (case.top.as_ref()?, case.top_f32.as_ref()?);
        let mut all = Vec::new();
        for position in 0..exact.ids.len() {
            for (id, logit) in exact.ids[position].iter().zip(&exact.logits[position]) {
                let at = top.ids[position].iter().position(|other| other == id);
                all.extend(at.map(|at| (top.logits[position][at] - logit).powi(2)));
            }
        }
        Some(all)
    };
    let squares: Vec<f32> = golden.cases.iter().filter_map(own).flatten().collect();
    let rms = (squares.iter().sum::<f32>() / squares.len() as f32).sqrt();
    let nll = golden
        .cases
        .iter()
        .filter_map(|case| Some(case.mean_nll? - case.mean_nll_f32?));
    let mean_nll = nll.fold(0.0, |a: f64, b| a.max(b.abs()));
    Limits {
        rms: (1.5 * rms).max(0.01),
        mean_nll: (1.5 * mean_nll).max(0.01),
    }
}

/// Root mean square of the differences of the best logits, and of the normaliser.
fn top_distance(found: &[Vec<f32>], top: &Top) -> f32 {
    assert_eq!(found.len(), top.ids.len(), "every position");
    let mut squares = 0.0;
    let mut n = 0;
    for (position, logits) in found.iter().enumerate() {
        let pairs = top.ids[position].iter().zip(&top.logits[position]);
        for (id, expected) in pairs {
            squares += (logits[*id as usize] - expected).powi(2);
            n += 1;
        }
        squares += (log_sum_exp(logits) - top.lse[position]).powi(2);
        n += 1;
    }
    (squares / n as f32).sqrt()
}

fn log_sum_exp(logits: &[f32]) -> f32 {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let sum: f64 = logits.iter().map(|v| f64::from(v - largest).exp()).sum();
    (f64::from(largest) + sum.ln()) as f32
}

/// Mean of -log p of every token after the first.
fn mean_nll(session: &mut dyn candor_backend::Session, tokens: &[u32]) -> f64 {
    let mut sum = 0.0;
    let mut position = 0;
    // Few enough rows that their logits stay small beside the model.
    for chunk in tokens.chunks(256) {
        let rows = chunk.iter().map(|token| candor_backend::Row {
            slot: runner::SLOT,
            feed: candor_backend::Feed::Token(*token),
            want: Want::Logits,
        });
        let batch = candor_backend::Batch {
            rows: rows.collect(),
        };
        for output in runner::forward(session, &batch).outputs {
            let RowOutput::Logits(logits) = output else {
                panic!("logits were asked for")
            };
            if let Some(next) = tokens.get(position + 1) {
                sum += f64::from(log_sum_exp(&logits) - logits[*next as usize]);
            }
            position += 1;
        }
    }
    sum / (tokens.len() - 1) as f64
}

#[test]
fn smollm2_135m_q4_1() {
    check("smollm2-135m-instruct-q4_1", &EXACT);
}

#[test]
fn qwen2_5_coder_0_5b_q4_k_m() {
    check("qwen2.5-coder-0.5b-instruct-q4_k_m", &EXACT);
}

#[test]
fn gemma3_270m_q4_k_m() {
    check("gemma3-270m-q4_k_m", &EXACT_WITH_GELU);
}
