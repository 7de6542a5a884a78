//! Bugs planted in the kernels as they ship: the guard rejects each, and names the node whose
//! kernel it is in.
#![cfg(not(feature = "real-driver"))]
#![expect(clippy::print_stderr, reason = "a test says what it measured")]

mod common;

use std::sync::Arc;
use std::time::Instant;

use candor_backend::{
    Backend, CancelToken, DeviceInfo, DeviceKind, KvType, Loaded, Model, OpenOptions, Part,
    Precision, Session, Step,
};
use candor_cpu::{CpuBackend, CpuConfig};
use candor_cuda::CudaBackend;
use candor_engine::guard::{
    Candidate, Mode, Path, Policy, Probe, Reference, Report, Subject, Verdict, VerdictId, Watching,
    verify,
};
use candor_text::{Tokenizer, TokenizerError};
use simcuda::{Library, scenario};

use common::{Unwatched, golden_model, load, simulated};

/// Tokens of the sessions: the built-in probe and one more, with room.
const CTX_LEN: usize = 512;

/// Tokens of the built-in probe, behind which a reply writes one.
const PROBE: usize = 288;

/// Tokens of sessions that hold a part of it.
const SHORT_CTX_LEN: usize = 96;

/// Tokens of sessions that have a graph for longer contexts as well.
const LONG_CTX_LEN: usize = 4_096;

fn options(precision: Precision, ctx_len: usize) -> OpenOptions {
    OpenOptions {
        kv: match precision {
            Precision::Exact => KvType::F32,
            Precision::Fast => KvType::F16,
        },
        precision,
        ..common::options(ctx_len)
    }
}

fn processor(model: &Arc<Model>) -> Box<dyn Loaded> {
    let mut backend = CpuBackend::new(CpuConfig {
        prepare: Precision::Exact,
        ..CpuConfig::new(2)
    });
    let loaded = backend.load(Arc::clone(model), Part::All, &mut Unwatched);
    loaded.expect("the reference loads")
}

fn device() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Gpu,
        name: String::from("Simulated GPU"),
        isa: String::from("8.6"),
        threads: 1,
        memory_bytes: None,
    }
}

/// Judges the card over the built-in probe.
fn verdict(model: &Arc<Model>) -> Verdict {
    verdict_in(model, CTX_LEN)
}

fn verdict_in(model: &Arc<Model>, ctx_len: usize) -> Verdict {
    let processor = processor(model);
    let card = load(&mut CudaBackend::new(simulated()), model).expect("the model loads");
    let session = card.open(options(Precision::Fast, ctx_len));
    let session = session.expect("it opens");
    let spec = model.file.index().tokenizer.as_ref();
    let tokenizer = match spec.map(Tokenizer::from_spec) {
        Some(Ok(tokenizer)) => tokenizer,
        Some(Err(reason)) => Tokenizer::ids_only(spec, reason),
        None => Tokenizer::ids_only(None, TokenizerError::Absent),
    };
    let subject = Subject {
        model,
        tokenizer: &tokenizer,
        ctx_len,
    };
    let probe = Probe::built_in(subject).expect("the context holds it");
    let mut open = || -> Result<Box<dyn Session>, String> {
        let options = options(Precision::Exact, ctx_len);
        Ok(processor.open(options).expect("it opens"))
    };
    let mut reference = Reference {
        model,
        open: &mut open,
        remembered: None,
    };
    let policy = Policy {
        id: VerdictId(1),
        mode: Mode::Probe,
        judged_ms: 0,
    };
    let mut watching = Watching {
        cancel: CancelToken::new(),
        progress: &mut |_, _| Step::Go,
        now: &Instant::now,
    };
    let candidate = Candidate::new(session, device());
    verify(&mut reference, candidate, &probe, policy, &mut watching)
}

fn report(verdict: &Verdict) -> &Report {
    match verdict {
        Verdict::Accepted { report, .. } | Verdict::Rejected(report) => report,
        Verdict::NotJudged { reason, .. } => panic!("not judged: {reason}"),
    }
}

/// The card with a planted bug is rejected, by this rule, at this node.
fn check(library: Library, model: &str, rule: &str, node: &str) {
    let verdict = verdict(&golden_model(model));
    assert!(
        library.counters().mutations() > 0,
        "there is a bug in what was loaded"
    );
    let report = report(&verdict);
    assert!(matches!(verdict, Verdict::Rejected(_)), "{report}");
    let bad = report.first_bad.as_ref().expect("it was rejected");
    assert_eq!(
        (bad.rule, bad.located.first()),
        (rule, Some(node)),
        "{report}"
    );
}

/// A bug, the model that shows it, and what the guard has to say.
macro_rules! planted {
    ($($(#[$doc:meta])* $name:ident: $bug:literal, $model:ident, $rule:ident, $node:literal;)*) => {
        $(scenario!($(#[$doc])* $name, $bug, |library: Library| {
            check(library, $model, $rule, $node);
        });)*
    };
}

/// A small model of the usual form, one with groups of heads, and one with experts.
const DENSE: &str = "s04-llama-q8_0.gguf";
const GROUPED: &str = "s01-llama-f32.gguf";
const EXPERTS: &str = "s33-granitemoe-q8_0.gguf";

/// The rules by which bugs are found; the first that a position breaks is named.
const COSINE: &str = "cosine";
const NUMBERS: &str = "logits are numbers";

planted! {
    /// The scale of a block of weights is read one place on.
    a_wrong_scale_of_weights: "mutate=linear_decode_1:shift:ld.shared.u16:1:2",
        DENSE, NUMBERS, "blk.0.attn_q";
    /// The scale of a block of activations is that of the next one.
    a_wrong_scale_of_activations: "mutate=linear_decode_1:shift:ld.global.f32:1:4",
        DENSE, COSINE, "blk.0.attn_q";
    a_missing_barrier_in_the_products: "mutate=tiles_product:drop:bar.sync:1,races=off,seed=3",
        DENSE, NUMBERS, "blk.0.attn_q";
    a_missing_barrier_in_the_attention:
        "mutate=attention_combine:drop:bar.sync:1,races=off,seed=3",
        DENSE, NUMBERS, "blk.0.attn";
    /// The first half of a query is that of the next head.
    a_wrong_head: "mutate=attention_decode_4:shift:ld.global.v4.f32:1:128",
        DENSE, COSINE, "blk.0.attn";
    /// In prompts, a head reads the keys and values of another one than its group's.
    a_wrong_head_of_a_prompt: "mutate=attention_prefill_64:swap:div.s32:2:rem.s32",
        GROUPED, COSINE, "blk.0.attn";
    /// The scale of what lies between, in the product with an expert's matrix, is the next one.
    a_wrong_scale_of_an_expert: "mutate=experts_sum:shift:ld.global.f32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// The router's number for an expert stands with the next one.
    a_wrong_expert_of_the_router: "mutate=experts_router:shift:st.global.f32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// Each choice stands where the next one belongs, and counts with its share.
    a_wrong_expert_of_the_choice: "fresh=0,mutate=experts_router:shift:st.global.u32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// The expert behind each of the best is chosen, and behind the last one that is none.
    an_expert_that_is_not_there: "mutate=experts_router:swap:not.b32:3:neg.s32",
        EXPERTS, NUMBERS, "blk.0.ffn_experts";
    /// Gate and up are those of the expert that is next in the list.
    a_wrong_expert_of_gate_and_up: "mutate=gated_ffn_decode_1:shift:ld.global.u32:2:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// Likewise down.
    a_wrong_expert_of_down: "mutate=experts_sum:shift:ld.global.s32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// In prompts, which are sorted by experts: no part of the list says whose it is.
    a_wrong_expert_of_the_sorted_rows: "fresh=0,mutate=experts_sort:drop:st.global.u32:17",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// Each part of that list is multiplied with the matrices of the next part's expert.
    a_wrong_expert_of_a_tile: "fresh=0,mutate=tiles_product:shift:ld.global.s32:1:16",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// What another expert gave is counted with a row's share.
    a_wrong_expert_of_the_sum: "fresh=0,mutate=experts_combine:shift:ld.global.s32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// Every row of the context stands where the next one belongs, and the first was never written.
    a_row_of_the_context_that_is_no_number: "mutate=rope_append:shift:st.global.u16:3:64",
        DENSE, NUMBERS, "blk.0.attn";
    /// The same where memory comes full of numbers, as it mostly does on a card.
    a_stale_row_of_the_context: "fresh=44,mutate=rope_append:shift:st.global.u16:3:64",
        DENSE, COSINE, "blk.0.attn";
    /// Half of each key is not written: what memory held is taken for it.
    half_a_row_of_the_context_left_out: "fresh=44,mutate=rope_append:drop:st.global.u16:1",
        DENSE, COSINE, "blk.0.attn";
    /// What brings activations into the range of float16 is added to every fourth, not multiplied.
    a_wrong_scale_of_float16: "mutate=quantize_f16:swap:mul.f32:1:add.f32",
        DENSE, COSINE, "blk.0.ffn";
    /// Activations are divided by what brings them into the range of float16, not multiplied: they
    /// become infinite, whatever memory held.
    an_overflow_of_float16: "mutate=quantize_f16:swap:mul.f32:1:div.rn.f32",
        DENSE, NUMBERS, "blk.0.ffn";
}

/// The kernels as they ship, over all golden models: those that differ most over the whole probe.
macro_rules! accepted {
    ($($name:ident: $model:literal;)*) => {
        $(scenario!($name, "", |library: Library| {
            check_accepted(library, $model, CTX_LEN);
        });)*
    };
    (in a context of $ctx_len:ident: $($name:ident: $model:literal;)*) => {
        $(scenario!($name, "", |library: Library| {
            check_accepted(library, $model, $ctx_len);
        });)*
    };
}

/// The simulated card takes its time, so that most models are judged over what a short context
/// holds.
fn check_accepted(library: Library, model: &str, ctx_len: usize) {
    let verdict = verdict_in(&golden_model(model), ctx_len);
    let report = report(&verdict);
    eprintln!(
        "{model}: cosine {:.5}, kl {:.5}, mean {:.6}, same {:.1} %, ties {} ({:.4}, gap {:.4}), {:.0} ms",
        report.min_cosine,
        report.max_kl,
        report.mean_kl,
        100.0 * report.argmax_agreement,
        report.near_ties,
        report.tie_distance,
        report.tie_gap,
        report.candidate_ms,
    );
    assert!(matches!(verdict, Verdict::Accepted { .. }), "{report}");
    let asked = ctx_len.min(PROBE + 1);
    assert_eq!((report.positions, report.asked), (asked, asked));
    assert_eq!(library.counters().mutations(), 0);
}

accepted! {
    llama_f32_is_accepted: "s01-llama-f32.gguf";
    llama_q8_0_is_accepted: "s04-llama-q8_0.gguf";
    qwen2_q4_k_is_accepted: "s10-qwen2-q4_k_m.gguf";
    gemma3_q4_0_is_accepted: "s16-gemma3-q4_0.gguf";
    qwen35_f16_is_accepted: "s18-qwen35-f16.gguf";
    qwen3moe_mxfp4_is_accepted: "s15-qwen3moe-mxfp4.gguf";
    qwen3next_q8_0_is_accepted: "s21-qwen3next-q8_0.gguf";
    gpt_oss_mxfp4_is_accepted: "s27-gpt-oss-mxfp4.gguf";
    granitemoe_q8_0_is_accepted: "s33-granitemoe-q8_0.gguf";
    mixtral_q5_0_is_accepted: "s34-mixtral-q5_0.gguf";
}

accepted! {
    in a context of SHORT_CTX_LEN:
    llama_f16_tied_is_accepted: "s02-llama-f16-spm.gguf";
    llama_bf16_with_rope_factors_is_accepted: "s03-llama-bf16-ropefreqs.gguf";
    llama_q4_0_is_accepted: "s05-llama-q4_0.gguf";
    llama_q4_1_tied_is_accepted: "s06-llama-q4_1.gguf";
    llama_f16_yarn_is_accepted: "s07-llama-f16-yarn.gguf";
    llama_f16_linear_is_accepted: "s08-llama-f16-linear.gguf";
    qwen2_q5_is_accepted: "s09-qwen2-q5_0-q5_1.gguf";
    qwen3_q5_k_wide_heads_tied_is_accepted: "s11-qwen3-q5_k_m.gguf";
    qwen3_q2_k_q3_k_is_accepted: "s12-qwen3-q2_k-q3_k.gguf";
    qwen3_iq4_is_accepted: "s13-qwen3-iq4.gguf";
    qwen3moe_q4_k_is_accepted: "s14-qwen3moe-q4_k_m.gguf";
    gemma3_q4_k_with_a_period_of_3_is_accepted: "s17-gemma3-q4_k_m.gguf";
    qwen35_q4_k_is_accepted: "s19-qwen35-q4_k_m.gguf";
    qwen35moe_q8_0_is_accepted: "s20-qwen35moe-q8_0.gguf";
    llama_iq_is_accepted: "s22-llama-iq2-iq3.gguf";
    phi3_q4_0_is_accepted: "s23-phi3-q4_0.gguf";
    phi3_q8_0_of_two_lengths_is_accepted: "s24-phi3-longrope-q8_0.gguf";
    gemma2_q4_0_is_accepted: "s25-gemma2-q4_0.gguf";
    granite_q5_1_tied_is_accepted: "s26-granite-q5_1.gguf";
    olmo2_f16_is_accepted: "s28-olmo2-f16.gguf";
    smollm3_q5_0_tied_is_accepted: "s29-smollm3-q5_0.gguf";
    deepseek_q4_1_is_accepted: "s30-deepseek-q4_1.gguf";
    gemma3_q8_0_stretched_is_accepted: "s31-gemma3-stretched-q8_0.gguf";
    olmo2_q8_0_with_windows_and_yarn_is_accepted: "s32-olmo2-window-q8_0.gguf";
}

/// A context has a graph of its own for each reach. What is wrong in that of long ones alone is
/// found where the context is short: a kernel of the first layer fails in the first run of it.
fn check_longer(library: Library) {
    let model = golden_model(DENSE);
    let verdict = verdict_in(&model, LONG_CTX_LEN);
    let report = report(&verdict);
    assert_eq!((report.positions, report.ways), (289, 4), "{report}");
    assert!(library.counters().launches() > 0);
    let bad = report.first_bad.as_ref().expect("it is rejected");
    assert_eq!(bad.way, Some(LONG_CTX_LEN), "{report}");
    assert_eq!(bad.path, Path::Decode, "{report}");
}

// The model has three layers, so the fourth run of the kernel is the first for a longer context.
scenario!(
    a_fault_of_the_graph_for_long_contexts_is_found_in_short_ones,
    "kernel=attention_decode*:scaled:4",
    |library: Library| {
        check_longer(library);
    }
);

// Where races are looked for, the simulated card itself says where the barrier is missing.
scenario!(
    a_missing_barrier_is_a_fault_with_its_place,
    "mutate=tiles_product:drop:bar.sync:1",
    |library: Library| {
        let verdict = verdict(&golden_model(DENSE));
        assert!(matches!(verdict, Verdict::NotJudged { .. }));
        let fault = library.fault().expect("the device is lost");
        assert!(
            fault.contains("tiles_product") && fault.contains("without a barrier"),
            "{fault}"
        );
    }
);
