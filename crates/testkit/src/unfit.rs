//! Whole and healthy files that are not models that this version can chat with.

use std::io;
use std::path::{Path, PathBuf};

use crate::gguf::{Gguf, Value};
use crate::model::TinyModel;

/// Why a file does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An architecture that nobody knows.
    Architecture,
    /// A known architecture, with a tensor under another name.
    RenamedTensor,
    /// A dense architecture, with experts in every layer.
    Experts,
    /// A number of a storage type that does not exist.
    StorageType,
    /// Changes to another model.
    Adapter,
    /// A model that gives vectors: a known architecture, and the way it is summed up.
    Embedding,
    /// A model that gives vectors, of an architecture of its own.
    Encoder,
}

impl Unfit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Architecture,
        Self::RenamedTensor,
        Self::Experts,
        Self::StorageType,
        Self::Adapter,
        Self::Embedding,
        Self::Encoder,
    ];

    /// What the sentence about it has to contain.
    pub fn words(self) -> &'static [&'static str] {
        const UNSUPPORTED: &str = "not supported by this version";
        const NO_CHAT: &str = "not a chat model";
        match self {
            Self::Architecture => &["qwen99", UNSUPPORTED],
            Self::RenamedTensor => &["blk.0.ffn_up.weight", "blk.0.ffn_upper.weight", UNSUPPORTED],
            Self::Experts => &[
                "blk.0.ffn_gate.weight",
                "blk.0.ffn_gate_exps.weight",
                UNSUPPORTED,
            ],
            Self::StorageType => &["blk.1.attn_k.weight", "77", UNSUPPORTED],
            Self::Adapter => &["adapter", NO_CHAT],
            Self::Embedding | Self::Encoder => &["embedding", NO_CHAT],
        }
    }

    /// Whether the file's description can be read, so that more is known of it than this.
    pub fn is_readable(self) -> bool {
        self != Self::StorageType
    }

    /// The file before it is encoded.
    pub fn gguf(self) -> Gguf {
        let llama = TinyModel::llama();
        let model = match self {
            Self::Architecture => llama.architecture("qwen99"),
            Self::RenamedTensor => {
                llama.rename_tensor("blk.0.ffn_up.weight", "blk.0.ffn_upper.weight")
            }
            Self::Experts => return with_experts(llama.gguf()),
            Self::StorageType => {
                let mut file = llama.gguf();
                let tensor = file.tensors.iter_mut();
                let tensor = tensor.filter(|tensor| tensor.name == "blk.1.attn_k.weight");
                tensor.for_each(|tensor| tensor.type_id = 77);
                return file;
            }
            Self::Adapter => return adapter(),
            Self::Embedding => TinyModel::qwen2().metadata("qwen2.pooling_type", Value::U32(3)),
            Self::Encoder => llama.architecture("nomic-bert"),
        };
        model.gguf()
    }

    /// Writes the file into a folder.
    ///
    /// # Errors
    /// The system cannot write it.
    pub fn write(self, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join("unfit.gguf");
        std::fs::write(&path, self.gguf().encode().bytes)?;
        Ok(path)
    }
}

/// The same model with its feed-forwards as stacks of two experts.
fn with_experts(mut file: Gguf) -> Gguf {
    for tensor in &mut file.tensors {
        for part in ["ffn_gate", "ffn_up", "ffn_down"] {
            if tensor.name.contains(&format!(".{part}.")) {
                tensor.name = tensor.name.replace(part, &format!("{part}_exps"));
                tensor.dims.insert(0, 2);
                tensor.bytes = tensor.bytes.repeat(2);
            }
        }
    }
    file
}

/// Two small matrices for each of two weights, as fine-tuning writes them.
fn adapter() -> Gguf {
    let text = |key: &str, text: &str| (key.to_owned(), Value::from(text));
    let mut file = Gguf {
        metadata: vec![
            text("general.architecture", "llama"),
            text("general.type", "adapter"),
            text("adapter.type", "lora"),
            ("adapter.lora.alpha".to_owned(), Value::F32(16.0)),
        ],
        ..Gguf::default()
    };
    for (name, dims) in [("lora_a", [8, 64]), ("lora_b", [64, 8])] {
        for weight in ["blk.0.attn_q.weight", "blk.1.attn_q.weight"] {
            file.tensors.push(crate::gguf::Tensor {
                name: format!("{weight}.{name}"),
                dims: dims.to_vec(),
                type_id: 0,
                bytes: vec![0; 8 * 64 * 4],
            });
        }
    }
    file
}
