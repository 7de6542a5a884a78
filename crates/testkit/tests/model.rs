//! Tiny models are what they were asked to be, and the same each time.

use candor_testkit::gguf::Value;
use candor_testkit::large::LARGE_MODELS;
use candor_testkit::{Damage, TURN_END, TURN_START, TinyModel};

fn names(model: &TinyModel) -> Vec<String> {
    model
        .gguf()
        .tensors
        .into_iter()
        .map(|tensor| tensor.name)
        .collect()
}

fn has(model: &TinyModel, name: &str) -> bool {
    names(model).iter().any(|n| n == name)
}

#[test]
fn one_seed_gives_one_file_and_another_seed_another() {
    let bytes = |seed: u64| TinyModel::llama().seed(seed).bytes();
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
    // A tensor's weights depend on its name, not on what else is in the file.
    let weights = |model: TinyModel| {
        let file = model.gguf();
        let found = file
            .tensors
            .into_iter()
            .find(|t| t.name == "blk.0.ffn_up.weight");
        found.expect("a tensor of every model").bytes
    };
    assert_eq!(
        weights(TinyModel::llama()),
        weights(TinyModel::qwen2().layers(1).tied())
    );
}

#[test]
fn families_and_options_have_their_tensors() {
    let llama = TinyModel::llama();
    assert_eq!(names(&llama).len(), 3 + 2 * 9);
    assert!(!has(&llama, "rope_freqs.weight") && !has(&llama, "blk.0.attn_q.bias"));
    assert!(has(&llama.clone().rope_freqs(), "rope_freqs.weight"));
    assert!(!has(&llama.clone().tied(), "output.weight"));
    let qwen2 = TinyModel::qwen2().layers(3);
    assert_eq!(names(&qwen2).len(), 3 + 3 * 12);
    assert!(has(&qwen2, "blk.2.attn_v.bias"));
    let changed = llama
        .without_tensor("blk.1.ffn_up.weight")
        .rename_tensor("output.weight", "lm_head.weight")
        .extra_tensor("extra.weight", &[2, 32], "Q4_0");
    assert!(!has(&changed, "blk.1.ffn_up.weight") && !has(&changed, "output.weight"));
    assert!(has(&changed, "lm_head.weight") && has(&changed, "extra.weight"));
}

#[test]
fn each_storage_type_can_be_asked_for() {
    for kind in candor_quant::TYPES {
        let model = TinyModel::llama().layers(1).width(256, 256).quant("F32");
        let model = model.quant_of("ffn_down", &kind.name.to_lowercase());
        for tensor in model.gguf().tensors {
            let want = if tensor.name == "blk.0.ffn_down.weight" {
                kind.id
            } else {
                0
            };
            assert_eq!(tensor.type_id, want, "{}", tensor.name);
        }
    }
}

#[test]
fn metadata_follows_the_options() {
    let entry = |model: &TinyModel, key: &str| {
        let found = model.gguf().metadata.into_iter().find(|(k, _)| k == key);
        found.map(|(_, value)| value)
    };
    let model = TinyModel::qwen2()
        .architecture("strange")
        .context(77)
        .vocabulary(1000);
    assert_eq!(
        entry(&model, "general.architecture"),
        Some("strange".into())
    );
    assert_eq!(
        entry(&model, "strange.context_length"),
        Some(Value::U32(77))
    );
    let end = model.token_id(TURN_END);
    assert_eq!(end, Some(999));
    assert_eq!(
        entry(&model, "tokenizer.ggml.eos_token_id"),
        end.map(Value::U32)
    );
    let model = model
        .metadata("tokenizer.ggml.eos_token_id", Value::U32(5))
        .metadata("split.count", Value::U16(2))
        .without_metadata("tokenizer.chat_template")
        .token_type(TURN_START, 1);
    assert_eq!(
        entry(&model, "tokenizer.ggml.eos_token_id"),
        Some(Value::U32(5))
    );
    assert_eq!(entry(&model, "split.count"), Some(Value::U16(2)));
    assert_eq!(entry(&model, "tokenizer.chat_template"), None);
    let Some(Value::Ints(types)) = entry(&model, "tokenizer.ggml.token_type") else {
        panic!("no token types");
    };
    assert_eq!(types[997..], [3, 1, 3]);
}

#[test]
fn a_model_of_20_megabytes_is_written_from_its_sizes() {
    let model = TinyModel::llama()
        .layers(6)
        .width(512, 1536)
        .heads(8, 4)
        .quant("Q8_0");
    let len = model.bytes().len();
    assert!((15_000_000..30_000_000).contains(&len), "{len}");
}

#[test]
fn damage_leaves_something_to_open_in_each_case() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let whole = TinyModel::llama().bytes();
    for damage in Damage::ALL {
        let path = damage.write(folder.path(), &TinyModel::llama())?;
        let is_folder = path.is_dir();
        assert_eq!(is_folder, damage == Damage::Directory, "{damage:?}");
        if damage.is_cut() {
            let bytes = std::fs::read(&path)?;
            assert!(
                bytes.len() < whole.len() && whole.starts_with(&bytes),
                "{damage:?}"
            );
        }
    }
    Ok(())
}

/// Bytes of all tensors, as the shapes give them: layers of 3 · 4,096² + 3 · 4,096 · 14,336 numbers
/// and so on, 144 bytes for each 256 of them in Q4_K and 210 in Q6_K. They agree with the files that
/// are published under these names to within their few small tensors.
#[test]
fn real_shapes_are_as_large_as_the_real_models() {
    let published = [
        ("llama-8b", 4_920_000_000_u64),
        ("qwen3moe-30b-a3b", 18_550_000_000),
    ];
    for (name, bytes) in published {
        let model = LARGE_MODELS.iter().find(|model| model.name == name);
        let written = model.unwrap().data_bytes();
        let apart = written.abs_diff(bytes) as f64 / bytes as f64;
        assert!(apart < 0.01, "{name}: {written} bytes, published {bytes}");
    }
}
