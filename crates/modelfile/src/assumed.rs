//! Facts that a person states because a file lacks them, or has them wrong.

use std::fmt;

use thiserror::Error;

use crate::index::{Index, Note};
use crate::metadata::{Metadata, Value};

/// What a fact may be.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A whole number from 1 to this.
    Count(u32),
    /// A number above 0, at most this.
    Number(f64),
    /// A word.
    Family,
}

/// A fact that can be stated.
struct Fact {
    /// The canonical key; a number's stands behind the architecture's name in the metadata.
    key: &'static str,
    /// The key of APR files.
    apr: &'static str,
    kind: Kind,
}

const fn fact(key: &'static str, apr: &'static str, kind: Kind) -> Fact {
    Fact { key, apr, kind }
}

/// All of them: what writers of APR files leave out or make up, and no shape tells. The bounds are
/// those of architectures.
const FACTS: &[Fact] = &[
    fact("general.architecture", "architecture", Kind::Family),
    fact(
        "context_length",
        "max_position_embeddings",
        Kind::Count(1 << 24),
    ),
    fact("attention.head_count", "num_heads", Kind::Count(1_024)),
    fact(
        "attention.head_count_kv",
        "num_kv_heads",
        Kind::Count(1_024),
    ),
    fact("attention.key_length", "head_dim", Kind::Count(1_024)),
    fact(
        "attention.layer_norm_rms_epsilon",
        "rms_norm_eps",
        Kind::Number(1.0),
    ),
    fact("rope.freq_base", "rope_theta", Kind::Number(1e12)),
    fact(
        "expert_used_count",
        "num_experts_per_tok",
        Kind::Count(4_096),
    ),
];

/// Bytes of the longest name of an architecture.
const FAMILY_BYTES_MAX: usize = 64;

/// Facts that a person stated about one file. They go before what the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumed(Vec<(&'static str, Value)>);

/// Why a statement is none.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AssumedError {
    /// There is no `=`.
    #[error("{found:?} is not KEY=VALUE")]
    Form {
        /// What was given.
        found: String,
    },
    /// Nothing can be stated under this key.
    #[error("{found:?} cannot be stated; these can: {}", keys())]
    Key {
        /// What was given.
        found: String,
    },
    /// Files of this format state it themselves.
    #[error("{key} cannot be stated for a GGUF file, which says it itself")]
    Stated {
        /// The key.
        key: &'static str,
    },
    /// The value is not one of its kind.
    #[error("{key} cannot be {found:?}; it has to be {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was given.
        found: String,
        /// What would do.
        expected: String,
    },
}

fn keys() -> String {
    let keys: Vec<&str> = FACTS.iter().map(|fact| fact.key).collect();
    keys.join(", ")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(max) => write!(f, "a whole number from 1 to {max}"),
            Self::Number(max) => write!(f, "a number above 0, at most {max:e}"),
            Self::Family => f.write_str("the name of an architecture"),
        }
    }
}

impl Kind {
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Count(max) => {
                let count: u32 = text.parse().ok()?;
                (1..=max)
                    .contains(&count)
                    .then_some(Value::Integer(i128::from(count)))
            }
            Self::Number(max) => {
                let number: f64 = text.parse().ok()?;
                (number > 0.0 && number <= max).then_some(Value::Float(number))
            }
            Self::Family => {
                let is_word = text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
                let fits = (1..=FAMILY_BYTES_MAX).contains(&text.len());
                (is_word && fits).then(|| Value::Text(text.to_owned()))
            }
        }
    }
}

impl Assumed {
    /// Adds what `KEY=VALUE` says; a later one goes before an earlier one.
    ///
    /// # Errors
    /// It is not of that form, the key is not one that can be stated, or the value not one of its
    /// kind.
    pub fn add(&mut self, text: &str) -> Result<(), AssumedError> {
        let found = || text.to_owned();
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| AssumedError::Form { found: found() })?;
        let fact = FACTS.iter().find(|fact| fact.key == key);
        let fact = fact.ok_or_else(|| AssumedError::Key {
            found: key.to_owned(),
        })?;
        let value = fact.kind.read(value).ok_or_else(|| AssumedError::Value {
            key: fact.key,
            found: value.to_owned(),
            expected: fact.kind.to_string(),
        })?;
        self.0.retain(|(known, _)| *known != fact.key);
        self.0.push((fact.key, value));
        Ok(())
    }

    /// Whether nothing is stated.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The notes that say what was stated, for whoever reads what the file is.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Note> {
        self.0.iter().map(|(key, value)| Note::Told {
            key,
            value: match value {
                Value::Text(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                other => format!("{other:?}"),
            },
        })
    }

    /// Puts the facts over what an APR file says.
    pub(crate) fn over_apr(&self, raw: &mut Metadata) {
        for (key, value) in &self.0 {
            if let Some(fact) = FACTS.iter().find(|fact| fact.key == *key) {
                raw.set(fact.apr.to_owned(), value.clone());
            }
        }
    }

    /// Puts the facts over what a GGUF file says. Its architecture decides what all else means,
    /// and these files always state it.
    pub(crate) fn over_gguf(&self, index: &mut Index) -> Result<(), AssumedError> {
        for (key, value) in &self.0 {
            if *key == "general.architecture" {
                return Err(AssumedError::Stated { key });
            }
            let key = format!("{}.{key}", index.architecture);
            index.metadata.set(key, value.clone());
        }
        index.notes.extend(self.notes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_facts_within_their_bounds_can_be_stated() {
        let check = |text: &str, want: Result<Value, &str>| {
            let mut assumed = Assumed::default();
            match (assumed.add(text), want) {
                (Ok(()), Ok(value)) => assert_eq!(assumed.0[0].1, value, "{text}"),
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{text}: {error}");
                    assert!(assumed.is_empty());
                }
                (found, want) => panic!("{text}: {found:?} {want:?}"),
            }
        };
        check("attention.head_count=4", Ok(Value::Integer(4)));
        check("rope.freq_base=1e6", Ok(Value::Float(1e6)));
        check(
            "general.architecture=llama",
            Ok(Value::Text("llama".to_owned())),
        );
        check("attention.head_count", Err("is not KEY=VALUE"));
        check(
            "num_heads=4",
            Err("cannot be stated; these can: general.architecture"),
        );
        check("block_count=4", Err("cannot be stated"));
        for value in ["0", "1025", "-1", "x", "", "4.0", "99999999999999999999"] {
            check(
                &format!("attention.head_count={value}"),
                Err("a whole number from 1 to 1024"),
            );
        }
        for value in ["0", "NaN", "inf", "-1", "1e13", ""] {
            check(&format!("rope.freq_base={value}"), Err("a number above 0"));
        }
        for value in ["", "a b", "\u{1b}[31m"] {
            let text = format!("general.architecture={value}");
            check(&text, Err("the name of an architecture"));
        }
    }

    #[test]
    fn what_is_stated_last_counts() {
        let mut assumed = Assumed::default();
        for text in ["attention.head_count=4", "attention.head_count=8"] {
            assumed.add(text).expect("a fact");
        }
        assert_eq!(assumed.0, [("attention.head_count", Value::Integer(8))]);
    }
}
