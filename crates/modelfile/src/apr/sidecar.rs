//! The tokenizer beside a file that has none: `<stem>.tokenizer.json` or `tokenizer.json`, and
//! likewise `tokenizer_config.json` for the template and the ends.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::index::{Index, Note};
use crate::tokenizer_spec::{TokenType, TokenizerSpec};

use super::tokenizer::UNNAMED;

/// Bytes of a tokenizer file. The largest real ones have 35 MB.
const FILE_BYTES_MAX: u64 = 1 << 26;

/// Adds what lies beside the file. What cannot be used is a note: ids still work without it.
pub(super) fn complete(index: &mut Index, path: &Path) {
    if index.tokenizer.is_some() {
        return;
    }
    let Some(text) = beside(path, "tokenizer.json") else {
        index.notes.push(Note::NoTokenizer);
        return;
    };
    let config = beside(path, "tokenizer_config.json");
    let config = config.and_then(|text| serde_json::from_str::<Config>(&text).ok());
    let config = config.unwrap_or_default();
    match serde_json::from_str::<File>(&text).map(|file| file.spec(&config)) {
        Ok(Some(spec)) => index.tokenizer = Some(spec),
        Ok(None) | Err(_) => index.notes.push(Note::SidecarUnusable),
    }
    if index.chat_template.is_none() {
        index.chat_template = config.template();
    }
}

fn beside(path: &Path, name: &str) -> Option<String> {
    let mut own = path.file_stem()?.to_owned();
    own.push(".");
    own.push(name);
    [path.with_file_name(own), path.with_file_name(name)]
        .iter()
        .find_map(|path| {
            let size = std::fs::metadata(path)
                .ok()
                .filter(std::fs::Metadata::is_file)?
                .len();
            if size > FILE_BYTES_MAX {
                return None;
            }
            std::fs::read_to_string(path).ok()
        })
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    pre_tokenizer: Option<PreTokenizer>,
    model: Bpe,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct PreTokenizer {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    pretokenizers: Vec<PreTokenizer>,
    #[serde(default)]
    pattern: Option<Pattern>,
}

#[derive(Deserialize)]
struct Pattern {
    #[serde(rename = "Regex", default)]
    regex: Option<String>,
}

#[derive(Deserialize)]
struct Bpe {
    #[serde(rename = "type", default)]
    kind: String,
    vocab: HashMap<String, u32>,
    merges: Vec<Merge>,
}

/// Both forms that the library has written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

/// The expressions of the split rules, and the names that they have in GGUF files. Facts of the
/// published tokenizers of Llama 3 and Qwen2.
const RULES: &[(&str, &str)] = &[
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "llama-bpe",
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "qwen2",
    ),
];

impl File {
    /// `None` if it is no byte-level BPE, or its ids have holes.
    fn spec(self, config: &Config) -> Option<TokenizerSpec> {
        if self.model.kind != "BPE" || !self.is_byte_level() {
            return None;
        }
        let pre = self.rule().unwrap_or(UNNAMED).to_owned();
        let added = self.added_tokens.iter().map(|added| added.id);
        let last = self.model.vocab.values().copied().chain(added).max()?;
        // Every id has a spelling of at least a few bytes, so there are fewer ids than that.
        let len = usize::try_from(last).ok()?.checked_add(1)?;
        if len > self.model.vocab.len() + self.added_tokens.len() {
            return None;
        }
        let mut spec = TokenizerSpec {
            model: "gpt2".to_owned(),
            pre: Some(pre),
            tokens: vec![String::new(); len],
            types: vec![TokenType::Normal; len],
            add_bos: config.add_bos_token,
            ..TokenizerSpec::default()
        };
        for (token, id) in self.model.vocab {
            spec.tokens[id as usize] = token;
        }
        for added in self.added_tokens {
            let at = added.id as usize;
            spec.types[at] = if added.special {
                TokenType::Control
            } else {
                TokenType::UserDefined
            };
            spec.tokens[at] = added.content;
        }
        let merge = |merge: Merge| match merge {
            Merge::Text(text) => text,
            Merge::Pair(left, right) => format!("{left} {right}"),
        };
        spec.merges = self.model.merges.into_iter().map(merge).collect();
        let id = |token: &Option<Token>| {
            let text = token.as_ref()?.text();
            spec.tokens
                .iter()
                .position(|token| token == text)
                .map(|id| id as u32)
        };
        (spec.bos, spec.eos, spec.pad) = (
            id(&config.bos_token),
            id(&config.eos_token),
            id(&config.pad_token),
        );
        Some(spec)
    }

    fn stages(&self) -> impl Iterator<Item = &PreTokenizer> {
        let whole = self.pre_tokenizer.iter();
        whole.flat_map(|stage| std::iter::once(stage).chain(&stage.pretokenizers))
    }

    fn is_byte_level(&self) -> bool {
        self.stages().any(|stage| stage.kind == "ByteLevel")
    }

    /// The name of the split rule, if it is a known one.
    fn rule(&self) -> Option<&'static str> {
        let splits: Vec<_> = self
            .stages()
            .filter(|s| s.kind != "Sequence" && s.kind != "ByteLevel")
            .collect();
        match splits[..] {
            [] => Some("gpt-2"),
            [digits] if digits.kind == "Digits" => Some("smollm"),
            [split] => {
                let regex = split.pattern.as_ref()?.regex.as_ref()?;
                RULES
                    .iter()
                    .find(|(known, _)| known == regex)
                    .map(|(_, name)| *name)
            }
            _ => None,
        }
    }
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    bos_token: Option<Token>,
    #[serde(default)]
    eos_token: Option<Token>,
    #[serde(default)]
    pad_token: Option<Token>,
    #[serde(default)]
    add_bos_token: Option<bool>,
    #[serde(default)]
    chat_template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Text(String),
    Object { content: String },
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Object { content: text } => text,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Template {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

impl Config {
    fn template(self) -> Option<String> {
        match self.chat_template? {
            Template::One(text) => Some(text),
            Template::Named(all) => all
                .into_iter()
                .find(|named| named.name == "default")
                .map(|named| named.template),
        }
    }
}
