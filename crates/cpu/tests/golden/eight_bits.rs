//! Keys and values in 8 bits: how far the logits of the tiny models move by that alone.

use candor_backend::{KvType, Precision};

use crate::data;
use crate::runner;
use crate::synthetic::distance;

/// Runs every case of a model with float32 activations, so that nothing but the state is rounded,
/// and holds the logits within `limit` of the other program's float32 run, root mean square.
fn check(name: &str, limit: f32) {
    let (golden, numbers) = data::read("logits", name);
    let loaded = runner::load(&data::model(&golden));
    for case in &golden.cases {
        let ctx_len = case.tokens.len();
        let place = case
            .logits_f32
            .as_ref()
            .expect("the tiny models have all logits");
        let expected = &numbers[place.offset..][..case.n_pos * golden.n_vocab];
        let rms = [KvType::F16, KvType::Q8_0].map(|kv| {
            let mut session = runner::open_with(&*loaded, Precision::Exact, kv, ctx_len);
            // Chunks that end within a page and within a block of sixteen positions.
            let found = runner::logits(&mut *session, &case.tokens, case.first_pos, 77).concat();
            distance(&found, expected).0
        });
        let [half, eight] = rms;
        eprintln!(
            "{name} {} of {ctx_len} tokens: rms {half:.2e} in 16 bits, {eight:.2e} in 8",
            case.name
        );
        assert!(eight <= limit, "{eight}");
    }
}

macro_rules! models {
    ($($name:ident: $file:literal $limit:literal,)*) => { $(
        #[test]
        fn $name() {
            check($file, $limit);
        }
    )* };
}

// Twice what the lines above print, at the most.
models! {
    llama: "s04-llama-q8_0" 0.07,
    qwen2_with_biases: "s10-qwen2-q4_k_m" 0.12,
    qwen3_with_wide_heads: "s11-qwen3-q5_k_m" 0.09,
    gemma3_with_windows: "s16-gemma3-q4_0" 0.05,
    qwen35_with_sums: "s18-qwen35-f16" 0.007,
}
