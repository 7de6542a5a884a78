//! One model in all forms of file gives the same logits.

use std::path::Path;

use candor_backend::Precision;
use candor_modelfile::Assumed;
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Storage, Writer, rewritten, values_of};
use candor_testkit::gguf::Gguf;
use candor_testkit::golden;

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "the golden models use the rest")]
mod runner;

const TOKENS: [u32; 12] = [5, 300, 17, 17, 260, 1, 99, 340, 12, 7, 280, 33];

fn logits(path: &Path, precision: Precision) -> Vec<f32> {
    let loaded = runner::load(path);
    let mut session = runner::open(&*loaded, precision, TOKENS.len());
    runner::logits(&mut *session, &TOKENS, 0, 512).concat()
}

/// Logits of a file with these bytes, on both paths.
fn of_bytes(name: &str, bytes: &[u8]) -> [Vec<f32>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("the file is written");
    [Precision::Exact, Precision::Fast].map(|precision| logits(&path, precision))
}

fn of_apr(model: &Gguf, writer: Writer) -> [Vec<f32>; 2] {
    of_bytes("m.apr", &Apr::of(model, writer).encode())
}

fn models() -> [TinyModel; 4] {
    let shape = |model: TinyModel| model.width(256, 512).heads(4, 2);
    [
        shape(
            TinyModel::llama()
                .quant("Q4_K")
                .quant_of("ffn_down", "Q6_K"),
        )
        .rope_freqs(),
        shape(TinyModel::llama().quant("F16")).tied(),
        // One of the writers puts it under the code of F32.
        shape(TinyModel::qwen2().quant("BF16")).tied(),
        shape(TinyModel::qwen2().quant("Q5_0").quant_of("attn_v", "Q8_0")),
    ]
}

#[test]
fn apr_writers_that_keep_bytes_give_bit_equal_logits() {
    for model in models() {
        let model = model.gguf();
        let want = of_bytes("m.gguf", &model.encode().bytes);
        let writers = [
            Writer::RawImport,
            Writer::Preserve,
            Writer::PassThrough,
            Writer::Streaming,
        ];
        for writer in writers {
            assert!(of_apr(&model, writer) == want, "{writer:?}");
        }
    }
}

/// The model with the values that a writer makes of its matrices, in F32.
fn with_rewritten_values(model: &Gguf, storage: Storage) -> Gguf {
    let mut model = model.clone();
    for tensor in &mut model.tensors {
        let cols = *tensor.dims.last().expect("a shape") as usize;
        let is_changed = tensor.dims.len() > 1 || storage == Storage::F16;
        let values = values_of(tensor);
        let values = if is_changed {
            // Of stacked experts each was a tensor of its own.
            let n = if tensor.dims.len() == 3 {
                tensor.dims[0] as usize
            } else {
                1
            };
            let each = values.chunks_exact(values.len() / n);
            each.flat_map(|values| rewritten(values, cols, storage))
                .collect()
        } else {
            values
        };
        tensor.type_id = 0;
        tensor.bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
    }
    model
}

/// Every way to store matrices anew.
const STORAGES: [Storage; 8] = [
    Storage::F32,
    Storage::F16,
    Storage::Q8,
    Storage::LegacyQ8,
    Storage::Q4,
    Storage::LegacyQ4,
    Storage::PaddedQ4K,
    Storage::FlatQ4K,
];

/// Within the limits of the exact path.
fn check_close(found: &[f32], want: &[f32], what: &str) {
    let differences = found.iter().zip(want).map(|(a, b)| (a - b).abs());
    let squares: f32 = differences.clone().map(|d| d * d).sum();
    let rms = (squares / found.len() as f32).sqrt();
    let largest = differences.fold(0.0, f32::max);
    assert!(rms < 1e-3 && largest < 1e-2, "{what}: {rms} {largest}");
}

#[test]
fn apr_writers_that_store_anew_give_the_logits_of_the_values_that_they_wrote() {
    // Rows of 96 and 160 values: no whole blocks of Q4_K.
    let narrow = TinyModel::llama().quant("F32").width(96, 160).heads(3, 1);
    let wide = TinyModel::qwen2().quant("F32").width(256, 512);
    for model in [narrow, wide] {
        let model = model.gguf();
        for storage in STORAGES {
            let want = with_rewritten_values(&model, storage).encode().bytes;
            let [want, _] = of_bytes("m.gguf", &want);
            let [found, _] = of_apr(&model, Writer::Rewrite(storage));
            check_close(&found, &want, &format!("{storage:?}"));
            let [converted, _] = of_apr(&model, Writer::Convert(storage));
            assert!(converted == found, "{storage:?} under the other command");
            if storage != Storage::FlatQ4K {
                let [from_hf, _] = of_apr(&model, Writer::RewriteHf(storage));
                assert!(from_hf == found, "{storage:?} in Hugging Face's order");
            }
        }
    }
}

#[test]
fn apr_files_of_experts_give_bit_equal_logits_if_they_say_how_many_are_used() {
    let model = golden::gguf("s14-qwen3moe-q4_k_m");
    let want = of_bytes("m.gguf", &model.encode().bytes);
    // One leaves the shapes of stacked tensors as GGUF has them, one turns them round.
    for writer in [Writer::Preserve, Writer::PassThrough] {
        let apr = Apr::of(&model, writer).entry("num_experts_per_tok", "2");
        assert!(of_bytes("m.apr", &apr.encode()) == want, "{writer:?}");
    }
}

#[test]
fn experts_in_tensors_of_their_own_give_the_logits_of_the_stack() {
    let model = golden::gguf("s14-qwen3moe-q4_k_m");
    let want = of_bytes("m.gguf", &model.encode().bytes);
    // It does not say how many experts a token uses.
    let apr = Apr::of(&model, Writer::Streaming).entry("num_experts_per_tok", "2");
    assert!(of_bytes("m.apr", &apr.encode()) == want);
    for storage in STORAGES {
        let want = with_rewritten_values(&model, storage).encode().bytes;
        let [want, _] = of_bytes("m.gguf", &want);
        let [found, _] = of_apr(&model, Writer::RewriteHf(storage));
        check_close(&found, &want, &format!("{storage:?}"));
    }
}

#[test]
fn constants_of_a_converter_give_the_right_logits_if_a_person_states_the_truth() {
    let model = TinyModel::llama().quant("F32").width(256, 512).heads(2, 1);
    let mut model = model.gguf();
    let text = Apr::of(&model, Writer::Stamped).encode();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.apr");
    std::fs::write(&path, text).expect("the file is written");
    let mut assumed = Assumed::default();
    for fact in [
        "general.architecture=llama",
        "attention.head_count=2",
        "rope.freq_base=10000",
    ] {
        assumed.add(fact).expect("a fact");
    }
    for fact in [
        "attention.head_count_kv=1",
        "attention.layer_norm_rms_epsilon=0.00001",
    ] {
        assumed.add(fact).expect("a fact");
    }
    let loaded = runner::load_as(&path, &assumed);
    let mut session = runner::open(&*loaded, Precision::Exact, TOKENS.len());
    let found = runner::logits(&mut *session, &TOKENS, 0, 512).concat();
    let embeddings = model
        .tensors
        .iter()
        .position(|t| t.name == "token_embd.weight");
    let embeddings = embeddings.map(|at| (at, model.tensors[at].clone()));
    model = with_rewritten_values(&model, Storage::PaddedQ4K);
    let (at, embeddings) = embeddings.expect("a model has embeddings");
    model.tensors[at] = embeddings;
    let [want, _] = of_bytes("m.gguf", &model.encode().bytes);
    check_close(&found, &want, "stamped");
}

#[test]
fn split_models_give_bit_equal_logits() {
    for model in models() {
        let want = of_bytes("m.gguf", &model.bytes());
        let folder = tempfile::tempdir().expect("a folder");
        let parts = model
            .write_split(folder.path(), "m", 3)
            .expect("the parts are written");
        for path in parts {
            let found = [Precision::Exact, Precision::Fast].map(|p| logits(&path, p));
            assert!(found == want, "{}", path.display());
        }
    }
}
