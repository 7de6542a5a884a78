//! One model in all forms of file gives the same logits.

use std::path::Path;

use candor_backend::Precision;
use candor_modelfile::ModelFile;
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Storage, Writer, rewritten, values_of};
use candor_testkit::gguf::{Gguf, Tensor, Value};

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

fn models() -> [TinyModel; 3] {
    let shape = |model: TinyModel| model.width(256, 512).heads(4, 2);
    [
        shape(
            TinyModel::llama()
                .quant("Q4_K")
                .quant_of("ffn_down", "Q6_K"),
        )
        .rope_freqs(),
        shape(TinyModel::llama().quant("F16")).tied(),
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
        let is_changed = tensor.dims.len() == 2 || storage == Storage::F16;
        let values = values_of(tensor);
        let values = if is_changed {
            rewritten(&values, cols, storage)
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

#[test]
fn apr_writers_that_store_anew_give_the_logits_of_the_values_that_they_wrote() {
    // Rows of 96 and 160 values: no whole blocks of Q4_K.
    let narrow = TinyModel::llama().quant("F32").width(96, 160).heads(3, 1);
    let wide = TinyModel::qwen2().quant("F32").width(256, 512);
    for model in [narrow, wide] {
        let model = model.gguf();
        for storage in [
            Storage::F32,
            Storage::F16,
            Storage::Q8,
            Storage::LegacyQ8,
            Storage::Q4,
            Storage::LegacyQ4,
            Storage::PaddedQ4K,
            Storage::FlatQ4K,
        ] {
            let want = with_rewritten_values(&model, storage).encode().bytes;
            let [want, _] = of_bytes("m.gguf", &want);
            let [found, _] = of_apr(&model, Writer::Rewrite(storage));
            let differences = found.iter().zip(&want).map(|(a, b)| (a - b).abs());
            let squares: f32 = differences.clone().map(|d| d * d).sum();
            let rms = (squares / found.len() as f32).sqrt();
            let largest = differences.fold(0.0, f32::max);
            // The limits of the exact path.
            assert!(rms < 1e-3 && largest < 1e-2, "{storage:?}: {rms} {largest}");
            if storage != Storage::FlatQ4K {
                let [from_hf, _] = of_apr(&model, Writer::RewriteHf(storage));
                assert!(from_hf == found, "{storage:?} in Hugging Face's order");
            }
        }
    }
}

/// A golden GGUF file, read into the form that the writers take; without its vocabulary.
fn golden(name: &str) -> Gguf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    let file = ModelFile::open(&folder.join(name)).expect("the golden file is there");
    let value = |value: &candor_modelfile::Value| match value {
        candor_modelfile::Value::Integer(n) => u32::try_from(*n).ok().map(Value::U32),
        candor_modelfile::Value::Float(n) => Some(Value::F32(*n as f32)),
        candor_modelfile::Value::Text(text) => Some(Value::Text(text.clone())),
        _ => None,
    };
    let entries = file.index().metadata.iter();
    let entries = entries.filter_map(|(key, found)| Some((key.to_owned(), value(found)?)));
    let tensors = file.index().tensors.iter().map(|tensor| Tensor {
        name: tensor.name.clone(),
        dims: tensor.dims.iter().map(|dim| *dim as u64).collect(),
        type_id: tensor.quant.id,
        bytes: file.bytes(tensor).to_vec(),
    });
    Gguf {
        metadata: entries.collect(),
        tensors: tensors.collect(),
        ..Gguf::default()
    }
}

#[test]
fn apr_files_of_experts_give_bit_equal_logits_if_they_say_how_many_are_used() {
    let model = golden("s14-qwen3moe-q4_k_m.gguf");
    let want = of_bytes("m.gguf", &model.encode().bytes);
    // One leaves the shapes of stacked tensors as GGUF has them, one turns them round.
    for writer in [Writer::Preserve, Writer::PassThrough] {
        let apr = Apr::of(&model, writer).entry("num_experts_per_tok", "2");
        assert!(of_bytes("m.apr", &apr.encode()) == want, "{writer:?}");
    }
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
