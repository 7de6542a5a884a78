//! What a file is made for, as far as it says so. Files of one format hold more than chat models.

use std::fmt;

use crate::index::Index;

/// What a file is if it is no model that writes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Changes to another model's weights.
    Adapter,
    /// A model whose result is a vector or a score.
    Embedding,
    /// The part of a model that turns pictures or sound into its rows.
    Projector,
    /// Measurements that help to store another model in fewer bits.
    Importance,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adapter => {
                "this is an adapter, which changes another model, and not a chat model"
            }
            Self::Embedding => {
                "this is an embedding model, whose results are vectors or scores, \
                 and not a chat model"
            }
            Self::Projector => {
                "this is the part of a model that reads pictures or sound, and not a chat model"
            }
            Self::Importance => {
                "these are measurements for the making of other files, and not a chat model"
            }
        })
    }
}

/// What `general.type` says in files that are no whole models: names of the GGUF specification and
/// of the converters of llama.cpp.
const TYPES: &[(&str, Purpose)] = &[
    ("adapter", Purpose::Adapter),
    ("mmproj", Purpose::Projector),
    ("imatrix", Purpose::Importance),
];

/// Architectures that write no text: encoders, as llama.cpp names them, and what reads pictures.
const ARCHITECTURES: &[(&str, Purpose)] = &[
    ("bert", Purpose::Embedding),
    ("eurobert", Purpose::Embedding),
    ("gemma-embedding", Purpose::Embedding),
    ("jina-bert-v2", Purpose::Embedding),
    ("jina-bert-v3", Purpose::Embedding),
    ("modern-bert", Purpose::Embedding),
    ("neo-bert", Purpose::Embedding),
    ("nomic-bert", Purpose::Embedding),
    ("nomic-bert-moe", Purpose::Embedding),
    ("t5encoder", Purpose::Embedding),
    ("clip", Purpose::Projector),
];

impl Purpose {
    /// What a file says; none if it can be a chat model. Entries of a wrong type say nothing.
    pub fn of(index: &Index) -> Option<Self> {
        let look_up = |table: &[(&str, Self)], name: &str| {
            let row = table.iter().find(|(known, _)| *known == name);
            row.map(|(_, purpose)| *purpose)
        };
        let text = |key: &str| index.metadata.find_str(key).ok().flatten();
        if let Some(purpose) = text("general.type").and_then(|name| look_up(TYPES, name)) {
            return Some(purpose);
        }
        if text("adapter.type").is_some() {
            return Some(Self::Adapter);
        }
        if let Some(purpose) = look_up(ARCHITECTURES, &index.architecture) {
            return Some(purpose);
        }
        // How rows are summed up to one vector, or to a score; 0 is "not".
        let pooling = format!("{}.pooling_type", index.architecture);
        let causal = format!("{}.attention.causal", index.architecture);
        let pools = matches!(index.metadata.find_u64(&pooling), Ok(Some(1..)));
        let sees_all = matches!(index.metadata.find_bool(&causal), Ok(Some(false)));
        (pools || sees_all).then_some(Self::Embedding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Metadata, Value};

    #[test]
    fn files_that_are_no_chat_models_are_told_apart() {
        let text = |text: &str| Value::Text(text.to_owned());
        let check = |architecture: &str, key: &str, value: Value, want: Option<Purpose>| {
            let mut metadata = Metadata::new();
            metadata.set(key.to_owned(), value);
            let index = Index::new(architecture.to_owned(), metadata, Vec::new());
            let found = Purpose::of(&index.expect("no tensor is there twice"));
            assert_eq!(found, want, "{architecture} {key}");
        };
        check("llama", "general.type", text("model"), None);
        check("llama", "general.type", Value::Integer(3), None);
        check(
            "llama",
            "general.type",
            text("adapter"),
            Some(Purpose::Adapter),
        );
        check(
            "llama",
            "adapter.type",
            text("lora"),
            Some(Purpose::Adapter),
        );
        check(
            "clip",
            "general.type",
            text("mmproj"),
            Some(Purpose::Projector),
        );
        check(
            "imatrix",
            "general.type",
            text("imatrix"),
            Some(Purpose::Importance),
        );
        check("bert", "general.name", text("x"), Some(Purpose::Embedding));
        check("qwen3", "qwen3.pooling_type", Value::Integer(0), None);
        check(
            "qwen3",
            "qwen3.pooling_type",
            Value::Integer(3),
            Some(Purpose::Embedding),
        );
        check("qwen3", "llama.pooling_type", Value::Integer(3), None);
        check(
            "llama",
            "llama.attention.causal",
            Value::Bool(false),
            Some(Purpose::Embedding),
        );
        check("llama", "llama.attention.causal", Value::Bool(true), None);
    }
}
