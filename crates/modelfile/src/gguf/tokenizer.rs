//! The vocabulary out of the `tokenizer.ggml.*` entries.

use crate::error::ParseError;
use crate::metadata::{Metadata, MetadataError, Value, ValueKind};
use crate::tokenizer_spec::{TokenType, TokenizerSpec};

/// Reads the vocabulary, and moves its long lists out of the metadata.
/// `None` if the file has no tokens.
pub(super) fn read(metadata: &mut Metadata) -> Result<Option<TokenizerSpec>, ParseError> {
    if metadata.value("tokenizer.ggml.tokens").is_none() {
        return Ok(None);
    }
    let mut spec = read_short(metadata)?;
    spec.tokens = take_texts(metadata, "tokenizer.ggml.tokens")?;
    spec.merges = take_texts(metadata, "tokenizer.ggml.merges")?;
    let n_tokens = spec.tokens.len();
    spec.types = take_types(metadata, "tokenizer.ggml.token_type", n_tokens)?;
    spec.scores = take_scores(metadata, "tokenizer.ggml.scores", n_tokens)?;
    spec.precompiled_charsmap = take_bytes(metadata, "tokenizer.ggml.precompiled_charsmap")?;
    Ok(Some(spec))
}

/// Everything but the lists.
fn read_short(metadata: &Metadata) -> Result<TokenizerSpec, MetadataError> {
    let id = |name: &str| metadata.find_u32(&format!("tokenizer.ggml.{name}_token_id"));
    let switch = |name: &str| metadata.find_bool(&format!("tokenizer.ggml.{name}"));
    Ok(TokenizerSpec {
        model: metadata.str("tokenizer.ggml.model")?.to_owned(),
        pre: metadata.find_str("tokenizer.ggml.pre")?.map(str::to_owned),
        bos: id("bos")?,
        eos: id("eos")?,
        eot: id("eot")?,
        eom: id("eom")?,
        unk: id("unknown")?,
        // The format spells it so.
        sep: id("seperator")?,
        pad: id("padding")?,
        mask: id("mask")?,
        fim_pad: id("fim_pad")?,
        fim_rep: id("fim_rep")?,
        fim_sep: id("fim_sep")?,
        add_bos: switch("add_bos_token")?,
        add_eos: switch("add_eos_token")?,
        add_space_prefix: switch("add_space_prefix")?,
        remove_extra_whitespaces: switch("remove_extra_whitespaces")?,
        ..TokenizerSpec::default()
    })
}

fn take_texts(metadata: &mut Metadata, key: &str) -> Result<Vec<String>, MetadataError> {
    match metadata.take(key) {
        Some(Value::Texts(texts)) => Ok(texts),
        other => absent(metadata, key, other, ValueKind::Texts),
    }
}

fn take_scores(
    metadata: &mut Metadata,
    key: &str,
    n_tokens: usize,
) -> Result<Vec<f32>, MetadataError> {
    match metadata.take(key) {
        Some(Value::Floats(scores)) => one_each(key, scores, n_tokens),
        other => absent(metadata, key, other, ValueKind::Floats),
    }
}

fn take_types(
    metadata: &mut Metadata,
    key: &str,
    n_tokens: usize,
) -> Result<Vec<TokenType>, MetadataError> {
    let numbers = match metadata.take(key) {
        Some(Value::Integers(numbers)) => one_each(key, numbers, n_tokens)?,
        other => return absent(metadata, key, other, ValueKind::Integers),
    };
    let known = |number: i64| {
        let found = i128::from(number);
        let unknown = || MetadataError::OutOfRange {
            key: key.to_owned(),
            found,
            limit: 6,
        };
        TokenType::from_number(number).ok_or_else(unknown)
    };
    numbers.into_iter().map(known).collect()
}

fn take_bytes(metadata: &mut Metadata, key: &str) -> Result<Vec<u8>, MetadataError> {
    match metadata.take(key) {
        // Writers use signed and unsigned bytes; the bits are what counts.
        Some(Value::Integers(numbers)) => Ok(numbers.into_iter().map(|n| n as u8).collect()),
        other => absent(metadata, key, other, ValueKind::Integers),
    }
}

fn one_each<T>(key: &str, list: Vec<T>, expected: usize) -> Result<Vec<T>, MetadataError> {
    let found = list.len();
    if found != expected {
        return Err(MetadataError::WrongLength {
            key: key.to_owned(),
            expected,
            found,
        });
    }
    Ok(list)
}

/// No such list: fine if there is no such entry, wrong if it is something else.
fn absent<T>(
    metadata: &Metadata,
    key: &str,
    taken: Option<Value>,
    expected: ValueKind,
) -> Result<Vec<T>, MetadataError> {
    match taken.as_ref().or(metadata.value(key)) {
        None => Ok(Vec::new()),
        Some(value) => {
            let found = value.kind();
            Err(MetadataError::WrongKind {
                key: key.to_owned(),
                expected,
                found,
            })
        }
    }
}
