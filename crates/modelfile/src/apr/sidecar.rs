//! The tokenizer beside a file that has none: `<stem>.tokenizer.json` or `tokenizer.json`, and
//! likewise `tokenizer_config.json` for the template and the ends.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use crate::index::{Index, Note};
use crate::shown::sizes;
use crate::tokenizer_spec::{CHARACTER_MERGES, TokenType, TokenizerSpec};

use super::tokenizer::UNNAMED;

/// Bytes of a tokenizer file. The largest real ones have 35 MB.
const FILE_BYTES_MAX: u64 = 1 << 26;

/// Adds what lies beside the file. What cannot be used is a note: ids still work without it.
pub(super) fn complete(index: &mut Index, path: &Path) {
    if index.tokenizer.is_some() {
        return;
    }
    let text = match beside(path, "tokenizer.json") {
        Ok(Some((_, text))) => text,
        Ok(None) => return index.notes.push(Note::NoTokenizer),
        Err(note) => return index.notes.push(note),
    };
    let config = config(path).unwrap_or_else(|note| {
        index.notes.push(note);
        Config::default()
    });
    match spec(&text, &config) {
        Ok(spec) => index.tokenizer = Some(spec),
        Err(note) => index.notes.push(note),
    }
    if index.chat_template.is_none() {
        index.chat_template = config.template();
    }
}

/// The template and the ends, nothing if there is no such file.
fn config(path: &Path) -> Result<Config, Note> {
    let Some((file, text)) = beside(path, "tokenizer_config.json")? else {
        return Ok(Config::default());
    };
    serde_json::from_str(&text).map_err(|error| Note::SidecarUnread {
        file,
        reason: error.to_string(),
    })
}

/// The vocabulary of a tokenizer file, or why it cannot be used.
fn spec(text: &str, config: &Config) -> Result<TokenizerSpec, Note> {
    if let Ok(file) = serde_json::from_str::<File>(text)
        && file.model.kind == "BPE"
    {
        return file.spec(config).ok_or(Note::SidecarUnusable);
    }
    Err(match serde_json::from_str::<OtherFile>(text) {
        Ok(OtherFile { model }) if model.kind != "BPE" => Note::SidecarKind { found: model.kind },
        Ok(_) | Err(_) => Note::SidecarUnusable,
    })
}

/// A tokenizer of a kind that is only told by its name.
#[derive(Deserialize)]
struct OtherFile {
    model: OtherModel,
}

#[derive(Deserialize)]
struct OtherModel {
    #[serde(rename = "type")]
    kind: String,
}

/// The name and text of the file beside the model, its own one or the folder's; a note if the one
/// that is there cannot be read.
fn beside(path: &Path, name: &str) -> Result<Option<(String, String)>, Note> {
    let mut own = path.file_stem().unwrap_or_default().to_owned();
    own.push(".");
    own.push(name);
    for path in [path.with_file_name(&own), path.with_file_name(name)] {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        match read(&path) {
            Ok(None) => {}
            Ok(Some(text)) => return Ok(Some((file.into_owned(), text))),
            Err(reason) => {
                let file = file.into_owned();
                return Err(Note::SidecarUnread { file, reason });
            }
        }
    }
    Ok(None)
}

/// A file's text, nothing if there is no such file, or why it cannot be read.
fn read(path: &Path) -> Result<Option<String>, String> {
    let found = match std::fs::metadata(path) {
        Ok(found) if found.is_file() => found,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if found.len() > FILE_BYTES_MAX {
        let (found, most) = sizes(found.len(), FILE_BYTES_MAX);
        return Err(format!("it has {found}, at most {most} are read"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err("its text is not UTF-8".to_owned()),
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Option<Stage>,
    #[serde(default)]
    pre_tokenizer: Option<Stage>,
    #[serde(default)]
    post_processor: Option<Stage>,
    model: Bpe,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
    /// Takes the white space before or behind it, which no field of ours says.
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

/// A step of any part of the library's chain, or several in a row.
#[derive(Deserialize)]
struct Stage {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, alias = "normalizers", alias = "processors")]
    pretokenizers: Vec<Stage>,
    #[serde(default)]
    pattern: Option<Pattern>,
    /// What a pattern is replaced by.
    #[serde(default)]
    content: Option<String>,
    /// What is put in front.
    #[serde(default)]
    prepend: Option<String>,
    /// How a text gets its begin token.
    #[serde(default)]
    single: Vec<Piece>,
}

#[derive(Deserialize)]
struct Pattern {
    #[serde(rename = "Regex", default)]
    regex: Option<String>,
    #[serde(rename = "String", default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(rename = "SpecialToken", default)]
    special_token: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Bpe {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    unk_token: Option<String>,
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

/// How the words of a BPE vocabulary are spelled and cut.
enum Spelling {
    /// By bytes, under this rule.
    Bytes(&'static str),
    /// By characters; whether a text gets a space in front.
    Characters { space_prefix: bool },
}

/// What stands for a space where words are spelled by characters.
const SPACE: &str = "\u{2581}";

impl File {
    /// `None` if its chain is not one of the known ones, or its ids have holes.
    fn spec(self, config: &Config) -> Option<TokenizerSpec> {
        let spelling = self.spelling()?;
        let added = self.added_tokens.iter().map(|added| added.id);
        let last = self.model.vocab.values().copied().chain(added).max()?;
        // Every id has a spelling of at least a few bytes, so there are fewer ids than that.
        let len = usize::try_from(last).ok()?.checked_add(1)?;
        if len > self.model.vocab.len() + self.added_tokens.len() {
            return None;
        }
        let mut spec = TokenizerSpec {
            tokens: vec![String::new(); len],
            types: vec![TokenType::Normal; len],
            add_bos: config.add_bos_token.or(self.adds_bos()),
            ..TokenizerSpec::default()
        };
        match spelling {
            Spelling::Bytes(rule) => {
                (spec.model, spec.pre) = ("gpt2".to_owned(), Some(rule.to_owned()));
            }
            Spelling::Characters { space_prefix } => {
                spec.model = CHARACTER_MERGES.to_owned();
                spec.add_space_prefix = Some(space_prefix);
            }
        }
        for (token, id) in self.model.vocab {
            if self.model.byte_fallback && is_byte(&token) {
                spec.types[id as usize] = TokenType::Byte;
            }
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
        let find = |text: &str| spec.tokens.iter().position(|token| token == text);
        let id = |token: &Option<Token>| find(token.as_ref()?.text()).map(|id| id as u32);
        (spec.bos, spec.eos, spec.pad) = (
            id(&config.bos_token),
            id(&config.eos_token),
            id(&config.pad_token),
        );
        spec.unk = self
            .model
            .unk_token
            .and_then(|text| find(&text))
            .map(|id| id as u32);
        Some(spec)
    }

    fn spelling(&self) -> Option<Spelling> {
        if stages(self.pre_tokenizer.as_ref()).any(|stage| stage.kind == "ByteLevel") {
            return Some(Spelling::Bytes(self.rule().unwrap_or(UNNAMED)));
        }
        let takes_space = self.added_tokens.iter().any(|t| t.lstrip || t.rstrip);
        if !self.model.byte_fallback || takes_space || !self.is_cut_nowhere() {
            return None;
        }
        let mut is_marked = false;
        let mut space_prefix = false;
        for stage in stages(self.normalizer.as_ref()) {
            match stage.kind.as_str() {
                "Sequence" => {}
                "Prepend" if stage.prepend.as_deref() == Some(SPACE) && !is_marked => {
                    space_prefix = true;
                }
                "Replace" if stage.matches(" ") && stage.content.as_deref() == Some(SPACE) => {
                    is_marked = true;
                }
                _ => return None,
            }
        }
        is_marked.then_some(Spelling::Characters { space_prefix })
    }

    /// Whether merges go over the whole text, and would do so too if it were cut at newlines.
    fn is_cut_nowhere(&self) -> bool {
        let is_idle = |stage: &Stage| stage.kind == "Split" && stage.matches(" ");
        let crosses = |token: &String| {
            let newlines = token.bytes().filter(|byte| *byte == b'\n').count();
            newlines > 0 && newlines < token.len()
        };
        stages(self.pre_tokenizer.as_ref()).all(is_idle) && !self.model.vocab.keys().any(crosses)
    }

    /// Whether a text gets a begin token, if the chain says so.
    fn adds_bos(&self) -> Option<bool> {
        let template =
            stages(self.post_processor.as_ref()).find(|stage| !stage.single.is_empty())?;
        let first = template.single.first()?;
        Some(first.special_token.is_some())
    }

    /// The name of the split rule, if it is a known one.
    fn rule(&self) -> Option<&'static str> {
        let splits: Vec<_> = stages(self.pre_tokenizer.as_ref())
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

/// A part of the chain, and what it consists of.
fn stages(whole: Option<&Stage>) -> impl Iterator<Item = &Stage> {
    whole
        .into_iter()
        .flat_map(|stage| std::iter::once(stage).chain(&stage.pretokenizers))
}

impl Stage {
    fn matches(&self, text: &str) -> bool {
        let pattern = self.pattern.as_ref().and_then(|p| p.text.as_deref());
        pattern == Some(text)
    }
}

/// Whether a token stands for one byte, such as `<0x0A>`.
fn is_byte(token: &str) -> bool {
    let digits = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
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
