//! The vocabulary and the chat template inside the metadata.

use crate::error::ParseError;
use crate::index::Note;
use crate::metadata::{Metadata, MetadataError, Value};
use crate::tokenizer_spec::{TokenType, TokenizerSpec};

use super::model::Model;

/// The name of the split rule of a byte-level vocabulary whose file does not say it. No rule has
/// this name, so text is refused in words and not split by a wrong rule.
pub(super) const UNNAMED: &str = "(not named in this file)";

/// Reads the vocabulary; `None` if there is none.
pub(super) fn read(
    raw: &mut Metadata,
    model: &mut Model,
) -> Result<Option<TokenizerSpec>, ParseError> {
    if raw.value("tokenizer.vocabulary").is_none() {
        return Ok(None);
    }
    let id = |name: &str| raw.find_u32(&format!("tokenizer.{name}_token_id"));
    let mut spec = TokenizerSpec {
        bos: id("bos")?,
        eos: id("eos")?,
        pad: id("padding")?,
        add_bos: raw.find_bool("tokenizer.add_bos_token")?,
        pre: raw.find_str("tokenizer.pre_type")?.map(str::to_owned),
        ..TokenizerSpec::default()
    };
    let kind = raw
        .find_str("tokenizer.model")?
        .or(raw.find_str("tokenizer.model_type")?);
    spec.model = match kind {
        Some("BPE") | None => "gpt2",
        Some("Unigram") => "llama",
        Some(other) => other,
    }
    .to_owned();
    spec.tokens = texts(raw, "tokenizer.vocabulary")?;
    spec.merges = texts(raw, "tokenizer.merges")?;
    spec.scores = match raw.take("tokenizer.scores") {
        Some(Value::Floats(scores)) => scores,
        Some(Value::Integers(scores)) => scores.into_iter().map(|score| score as f32).collect(),
        _ => Vec::new(),
    };
    spec.types = types(raw, &spec)?;
    complete(&mut spec, &model.architecture, &mut model.notes);
    for (what, found) in [
        ("scores", spec.scores.len()),
        ("token_type", spec.types.len()),
    ] {
        if found != 0 && found != spec.tokens.len() {
            let (key, expected) = (format!("tokenizer.{what}"), spec.tokens.len());
            return Err(MetadataError::WrongLength {
                key,
                expected,
                found,
            }
            .into());
        }
    }
    Ok(Some(spec))
}

/// The template: of the model, else of its tokenizer.
pub(super) fn chat_template(raw: &Metadata) -> Result<Option<String>, MetadataError> {
    let own = raw.find_str("chat_template")?;
    let template = own.or(raw.find_str("tokenizer.chat_template")?);
    Ok(template.map(str::to_owned))
}

fn texts(raw: &mut Metadata, key: &str) -> Result<Vec<String>, MetadataError> {
    raw.find_texts(key)?;
    match raw.take(key) {
        Some(Value::Texts(texts)) => Ok(texts),
        _ => Ok(Vec::new()),
    }
}

fn types(raw: &mut Metadata, spec: &TokenizerSpec) -> Result<Vec<TokenType>, MetadataError> {
    let key = "tokenizer.token_type";
    let Some(numbers) = raw.find_integers(key)? else {
        let ends = [spec.bos, spec.eos];
        let tokens = spec.tokens.iter().enumerate();
        let kind = |(id, token): (usize, &String)| match guess_type(token) {
            TokenType::Byte if spec.model != "llama" => TokenType::Normal,
            _ if ends.contains(&Some(id as u32)) => TokenType::Control,
            found => found,
        };
        return Ok(tokens.map(kind).collect());
    };
    let known = |number: &i64| {
        let found = i128::from(*number);
        let wrong = MetadataError::OutOfRange {
            key: key.to_owned(),
            found,
            limit: 6,
        };
        TokenType::from_number(*number).ok_or(wrong)
    };
    numbers.iter().map(known).collect()
}

/// Bytes of the longest tag that counts as a special token.
const TAG_BYTES_MAX: usize = 20;

/// Tags that steer the model; others, such as `<think>`, are text in one token.
const CONTROL_TAGS: [&str; 7] = ["<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "<mask>"];

/// What a token is, by its spelling.
fn guess_type(token: &str) -> TokenType {
    let inside = token
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    let Some(inside) = inside else {
        return TokenType::Normal;
    };
    if inside.len() > 1 && inside.starts_with('|') && inside.ends_with('|') {
        return TokenType::Control;
    }
    let byte = inside.strip_prefix("0x").filter(|digits| digits.len() == 2);
    if byte.is_some_and(|digits| u8::from_str_radix(digits, 16).is_ok()) {
        return TokenType::Byte;
    }
    if token == "<unk>" {
        return TokenType::Unknown;
    }
    if CONTROL_TAGS.contains(&token) {
        return TokenType::Control;
    }
    let word = inside.strip_prefix('/').unwrap_or(inside);
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_word && token.len() <= TAG_BYTES_MAX {
        return TokenType::UserDefined;
    }
    TokenType::Normal
}

/// What the writers leave out and the family or the vocabulary tells.
fn complete(spec: &mut TokenizerSpec, architecture: &str, notes: &mut Vec<Note>) {
    if spec.model == "gpt2" && spec.pre.is_none() {
        // All vocabularies of these families are cut by one rule.
        spec.pre = Some(match architecture {
            "qwen2" | "qwen3" | "qwen3moe" => "qwen2".to_owned(),
            _ => {
                notes.push(Note::NoSplitRule);
                UNNAMED.to_owned()
            }
        });
    }
    if spec.model == "llama" {
        if spec.scores.is_empty() {
            // The pieces of these vocabularies stand in the order of their scores.
            spec.scores = (0..spec.tokens.len()).map(|id| -(id as f32)).collect();
            notes.push(Note::NoScores);
        }
        let unknown = spec.tokens.iter().position(|token| token == "<unk>");
        spec.unk = spec.unk.or(unknown.map(|id| id as u32));
    }
}
