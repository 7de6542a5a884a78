//! What a reply may look like: a JSON schema, a regular expression or a grammar, checked and
//! compiled before anything runs, and followed token by token.
//!
//! The work is done by llguidance. The vocabulary is made into a trie once for each model; a
//! grammar says which of its paths go on, which gives one bit for each token.

use std::fmt;
use std::sync::{Arc, OnceLock};

use candor_text::{Show, Tokenizer};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};

use crate::guarded::guarded;

/// Bytes of a schema, an expression or a grammar: larger than any that is written by hand, and
/// compiled within a second.
pub const CONSTRAINT_BYTES_MAX: usize = 256 << 10;

/// Levels of a schema's braces: it is read by functions that call themselves.
const SCHEMA_DEPTH_MAX: usize = 64;

/// Levels of brackets of an expression or a grammar, for the same reason. What stands in quotes
/// does not count.
const BRACKETS_DEPTH_MAX: usize = 128;

/// States that the lexer of one reply may have, of 1 to 2 kB each; usual schemas have some hundreds.
const LEXER_STATES_MAX: usize = 20_000;

/// What a reply has to look like.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// Any JSON object.
    JsonObject,
    /// JSON by a schema.
    JsonSchema(Value),
    /// A text that the whole expression matches.
    Regex(String),
    /// A grammar in llguidance's form of Lark, from `start`.
    Lark(String),
}

/// Why a constraint cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// It is too long.
    #[error("the {what} has {found} bytes; at most {CONSTRAINT_BYTES_MAX} are taken")]
    TooLong {
        /// Which kind it is.
        what: &'static str,
        /// As given.
        found: usize,
    },
    /// It is nested too deeply.
    #[error("the {what} is nested deeper than {max} levels")]
    TooDeep {
        /// Which kind it is.
        what: &'static str,
        /// The most allowed.
        max: usize,
    },
    /// It is wrong, or says something that cannot be followed.
    #[error("the {what} cannot be followed: {reason}")]
    Refused {
        /// Which kind it is.
        what: &'static str,
        /// In the library's words.
        reason: String,
    },
    /// The model's file has no vocabulary.
    #[error("this model has no vocabulary by which a reply could be held to something")]
    NoVocabulary,
}

impl Constraint {
    fn what(&self) -> &'static str {
        match self {
            Self::JsonObject | Self::JsonSchema(_) => "JSON schema",
            Self::Regex(_) => "regular expression",
            Self::Lark(_) => "grammar",
        }
    }

    fn check(&self) -> Result<(), ConstraintError> {
        let what = self.what();
        // The length first: the depth is counted along it.
        let (found, depth, max) = match self {
            Self::JsonObject => return Ok(()),
            Self::JsonSchema(schema) => {
                let depth = depth(schema);
                let found = match depth > SCHEMA_DEPTH_MAX {
                    // Writing it down calls itself too.
                    true => 0,
                    false => schema.to_string().len(),
                };
                (found, depth, SCHEMA_DEPTH_MAX)
            }
            Self::Regex(text) | Self::Lark(text) => {
                (text.len(), brackets(text), BRACKETS_DEPTH_MAX)
            }
        };
        if found > CONSTRAINT_BYTES_MAX {
            return Err(ConstraintError::TooLong { what, found });
        }
        if depth > max {
            return Err(ConstraintError::TooDeep { what, max });
        }
        Ok(())
    }

    fn grammar(&self) -> TopLevelGrammar {
        match self {
            Self::JsonObject => {
                TopLevelGrammar::from_json_schema(compact(json!({"type": "object"})))
            }
            Self::JsonSchema(schema) => {
                TopLevelGrammar::from_json_schema(compact(closed(schema.clone())))
            }
            Self::Regex(expression) => TopLevelGrammar::from_regex(expression),
            Self::Lark(grammar) => TopLevelGrammar::from_lark(grammar.clone()),
        }
    }
}

/// Levels of arrays and objects.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if depth > SCHEMA_DEPTH_MAX {
            break;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    deepest
}

/// Levels of brackets outside quotes.
fn brackets(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The schema with objects closed where they name their fields and say nothing of others. Generators
/// of schemas leave that out, and small models go on inventing fields to the limit. Parts of an
/// `allOf` stay open: each would forbid the fields of the others.
fn closed(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else {
        return schema;
    };
    let is_whole = !fields.contains_key("allOf");
    for (name, value) in &mut fields {
        let part = std::mem::take(value);
        *value = match name.as_str() {
            "properties" | "$defs" | "definitions" => each(part),
            "items" | "additionalProperties" => closed(part),
            "prefixItems" | "anyOf" | "oneOf" => each(part),
            _ => part,
        };
    }
    let says = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
    ];
    let is_silent = !says.iter().any(|name| fields.contains_key(*name));
    if is_whole && is_silent && fields.get("properties").is_some_and(Value::is_object) {
        fields.insert(String::from("additionalProperties"), json!(false));
    }
    Value::Object(fields)
}

/// All schemas of a list, or under names.
fn each(schemas: Value) -> Value {
    match schemas {
        Value::Array(schemas) => schemas.into_iter().map(closed).collect(),
        Value::Object(schemas) => {
            let named = schemas.into_iter().map(|(name, part)| (name, closed(part)));
            Value::Object(named.collect())
        }
        other => other,
    }
}

/// The schema with no blanks between its signs: where blanks are allowed, small models write them
/// to the limit. What it says about that itself counts for nothing.
fn compact(schema: Value) -> Value {
    let mut fields = match schema {
        Value::Object(fields) => fields,
        // The schemas that allow everything and nothing.
        Value::Bool(true) => Map::new(),
        other => return other,
    };
    let options = json!({
        "whitespace_flexible": false,
        "item_separator": ",",
        "key_separator": ":",
        "coerce_one_of": true,
    });
    fields.insert(String::from("x-guidance"), options);
    Value::Object(fields)
}

/// The grammars of one model. The vocabulary is prepared when the first one is asked for.
#[derive(Default)]
pub(crate) struct Grammars(OnceLock<Option<ParserFactory>>);

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grammars")
    }
}

impl Grammars {
    /// Compiles a constraint, for a model with rows of logits of this length.
    pub(crate) fn compile(
        &self,
        constraint: &Constraint,
        tokenizer: &Tokenizer,
        vocabulary: usize,
    ) -> Result<Follower, ConstraintError> {
        constraint.check()?;
        let what = constraint.what();
        if tokenizer.refusal().is_some() {
            return Err(ConstraintError::NoVocabulary);
        }
        let factory = self.0.get_or_init(|| factory(tokenizer, vocabulary));
        let factory = factory.as_ref().ok_or(ConstraintError::NoVocabulary)?;
        let refused = |reason: String| ConstraintError::Refused { what, reason };
        let made = guarded(|| Matcher::new(factory.create_parser(constraint.grammar())));
        let matcher = made.map_err(|panic| refused(in_a_line(&panic)))?;
        if let Some(reason) = matcher.get_error() {
            return Err(refused(in_a_line(&reason)));
        }
        let mut follower = Follower {
            matcher: Box::new(matcher),
            mask: None,
        };
        // What allows no beginning, such as a schema of nothing but itself, is known now.
        match follower.allowed() {
            Ok(allowed) if allowed.iter().any(|bits| *bits != 0) => Ok(follower),
            Ok(_) | Err(_) => Err(refused(String::from("nothing can begin by it"))),
        }
    }
}

/// The vocabulary as a trie. None where the library will have none of it.
fn factory(tokenizer: &Tokenizer, vocabulary: usize) -> Option<ParserFactory> {
    let words: Vec<Vec<u8>> = (0..vocabulary as u32)
        .map(|id| word(tokenizer, id))
        .collect();
    let ends: Vec<u32> = tokenizer
        .end_ids()
        .iter()
        .copied()
        .filter(|id| (*id as usize) < vocabulary)
        .collect();
    let first_end = *ends.first()?;
    let made = guarded(|| {
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary as u32, first_end), &words);
        let trie = trie.with_eos_tokens(&ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).ok()?;
        factory.quiet();
        // Its bounds of one step and of a grammar stay: a step takes some 20 ms at worst.
        factory.limits_mut().verbose_errors = false;
        factory.limits_mut().max_lexer_states = LEXER_STATES_MAX;
        Some(factory)
    });
    made.ok().flatten()
}

/// What a token adds to the text. Control tokens are none of it: only a grammar that names one
/// lets it through.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let piece = tokenizer.piece(id, Show::Control);
    match tokenizer.is_control(id) {
        true => [&[TokTrie::SPECIAL_TOKEN_MARKER], piece].concat(),
        false => piece.to_vec(),
    }
}

/// Where a reply stands in what it has to look like.
pub(crate) struct Follower {
    matcher: Box<Matcher>,
    /// Of the present place, once it was asked for.
    mask: Option<SimpleVob>,
}

/// Why a reply cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply cannot go on as it has to: {reason}")]
pub(crate) struct Stuck {
    /// In the library's words.
    pub(crate) reason: String,
}

impl Follower {
    /// One bit for each token that may come next, the lowest first.
    pub(crate) fn allowed(&mut self) -> Result<&[u32], Stuck> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => self.matcher.compute_mask_or_eos().map_err(stuck)?,
        };
        Ok(self.mask.insert(mask).as_slice())
    }

    /// Notes the token that was chosen, and says whether the text is complete: nothing more can
    /// come.
    pub(crate) fn push(&mut self, token: u32) -> Result<bool, Stuck> {
        self.mask = None;
        self.matcher.consume_token(token).map_err(stuck)?;
        Ok(self.matcher.is_stopped())
    }
}

fn stuck(error: impl fmt::Display) -> Stuck {
    let reason = in_a_line(&error.to_string());
    Stuck { reason }
}

/// The library's words without what it leaves out, in one line.
fn in_a_line(words: &str) -> String {
    let lines = words.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && *line != LEFT_OUT)
        .collect();
    lines.join("; ")
}

/// What the library writes in the place of its details.
const LEFT_OUT: &str = "<non-verbose/>";

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

#[cfg(test)]
mod tests;
