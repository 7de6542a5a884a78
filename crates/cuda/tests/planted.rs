//! Bugs planted in the kernels as they ship: the guard rejects each, and names the node whose
//! kernel it is in.
#![cfg(not(feature = "real-driver"))]

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
    Candidate, Mode, Policy, Probe, Reference, Report, Subject, Verdict, VerdictId, Watching,
    verify,
};
use candor_text::{Tokenizer, TokenizerError};
use simcuda::{Library, scenario};

use common::{Unwatched, golden_model, load, simulated};

/// Tokens of the sessions: the built-in probe and one more, with room.
const CTX_LEN: usize = 512;

fn options(precision: Precision) -> OpenOptions {
    OpenOptions {
        kv: match precision {
            Precision::Exact => KvType::F32,
            Precision::Fast => KvType::F16,
        },
        precision,
        ..common::options(CTX_LEN)
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
    let processor = processor(model);
    let card = load(&mut CudaBackend::new(simulated()), model).expect("the model loads");
    let session = card.open(options(Precision::Fast)).expect("it opens");
    let spec = model.file.index().tokenizer.as_ref();
    let tokenizer = match spec.map(Tokenizer::from_spec) {
        Some(Ok(tokenizer)) => tokenizer,
        Some(Err(reason)) => Tokenizer::ids_only(spec, reason),
        None => Tokenizer::ids_only(None, TokenizerError::Absent),
    };
    let subject = Subject {
        model,
        tokenizer: &tokenizer,
        ctx_len: CTX_LEN,
    };
    let probe = Probe::built_in(subject).expect("the context holds it");
    let mut open = || -> Result<Box<dyn Session>, String> {
        Ok(processor.open(options(Precision::Exact)).expect("it opens"))
    };
    let mut reference = Reference {
        model,
        open: &mut open,
        remembered: None,
    };
    let policy = Policy {
        id: VerdictId(1),
        mode: Mode::Probe,
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

/// A small model of the usual form, and one with experts.
const DENSE: &str = "s04-llama-q8_0.gguf";
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
    /// The results of other experts are summed.
    a_wrong_expert: "mutate=experts_sum:shift:ld.global.f32:1:4",
        EXPERTS, COSINE, "blk.0.ffn_experts";
    /// Every row of the context stands where the next one belongs.
    a_stale_row_of_the_context: "mutate=rope_append:shift:st.global.u16:3:64",
        DENSE, NUMBERS, "blk.0.attn";
    /// Activations are divided by what brings them into the range of float16, not multiplied.
    an_overflow_of_float16: "mutate=quantize_f16:swap:mul.f32:1:div.rn.f32",
        DENSE, NUMBERS, "blk.0.ffn";
}

scenario!(
    without_a_bug_the_card_is_accepted,
    "",
    |library: Library| {
        let verdict = verdict(&golden_model(DENSE));
        assert!(
            matches!(verdict, Verdict::Accepted { .. }),
            "{}",
            report(&verdict)
        );
        assert_eq!(library.counters().mutations(), 0);
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
