//! The entries of a model file, with getters that say what they expected.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::shown::Shown;

/// The kind of a value, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Float,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A list of whole numbers.
    Integers,
    /// A list of numbers with fractions.
    Floats,
    /// A list of true and false.
    Bools,
    /// A list of texts.
    Texts,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "a whole number",
            Self::Float => "a number",
            Self::Bool => "true or false",
            Self::Text => "a text",
            Self::Integers => "a list of whole numbers",
            Self::Floats => "a list of numbers",
            Self::Bools => "a list of true and false",
            Self::Texts => "a list of texts",
        })
    }
}

/// A metadata value. The many number widths of a file become one each: their
/// difference means nothing to a reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction. `f64` holds each `f32` exactly.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String),
    /// A list of whole numbers. An unsigned 64-bit number is kept by its bits.
    Integers(Vec<i64>),
    /// A list of numbers with fractions.
    Floats(Vec<f32>),
    /// A list of true and false.
    Bools(Vec<bool>),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list that was moved into [`crate::TokenizerSpec`], so that it is in memory once.
    Moved {
        /// What its elements are.
        kind: ValueKind,
        /// How many it has.
        len: usize,
    },
}

impl Value {
    /// What kind of value it is.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Integer(_) => ValueKind::Integer,
            Self::Float(_) => ValueKind::Float,
            Self::Bool(_) => ValueKind::Bool,
            Self::Text(_) => ValueKind::Text,
            Self::Integers(_) => ValueKind::Integers,
            Self::Floats(_) => ValueKind::Floats,
            Self::Bools(_) => ValueKind::Bools,
            Self::Texts(_) => ValueKind::Texts,
            Self::Moved { kind, .. } => *kind,
        }
    }

    /// How many elements a list has; `None` for a single value.
    pub fn list_len(&self) -> Option<usize> {
        match self {
            Self::Integers(list) => Some(list.len()),
            Self::Floats(list) => Some(list.len()),
            Self::Bools(list) => Some(list.len()),
            Self::Texts(list) => Some(list.len()),
            Self::Moved { len, .. } => Some(*len),
            Self::Integer(_) | Self::Float(_) | Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

/// A metadata entry that is missing, or not what it has to be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MetadataError {
    /// There is no such entry.
    #[error("the entry `{}` is missing", Shown(.key))]
    Missing {
        /// The entry.
        key: String,
    },
    /// It is of another kind.
    #[error("the entry `{}` is {found}, not {expected}", Shown(.key))]
    WrongKind {
        /// The entry.
        key: String,
        /// What is asked for.
        expected: ValueKind,
        /// What the file has.
        found: ValueKind,
    },
    /// A whole number that does not fit, such as a negative count.
    #[error("the entry `{}` is {found}; a number from 0 to {limit} is needed", Shown(.key))]
    OutOfRange {
        /// The entry.
        key: String,
        /// The number in the file.
        found: i128,
        /// The largest number that fits.
        limit: u64,
    },
    /// A list of another length than the one it belongs to.
    #[error("the entry `{}` has {found} elements, not {expected}", Shown(.key))]
    WrongLength {
        /// The entry.
        key: String,
        /// The length that is needed.
        expected: usize,
        /// The length in the file.
        found: usize,
    },
}

/// The metadata entries of a file, in file order.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    by_key: HashMap<String, usize>,
}

impl Metadata {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry at the end; gives it back if its key is there already.
    pub fn insert(&mut self, key: String, value: Value) -> Result<(), (String, Value)> {
        if self.by_key.contains_key(&key) {
            return Err((key, value));
        }
        self.by_key.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        Ok(())
    }

    /// Adds an entry, or gives one another value.
    pub(crate) fn set(&mut self, key: String, value: Value) {
        match self.by_key.get(&key) {
            Some(at) => self.entries[*at].1 = value,
            None => drop(self.insert(key, value)),
        }
    }

    /// All entries, in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// The value of an entry, whatever it is.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.by_key.get(key).map(|i| &self.entries[*i].1)
    }

    /// A whole number.
    ///
    /// # Errors
    /// The entry is missing, of another kind, or does not fit.
    pub fn u32(&self, key: &str) -> Result<u32, MetadataError> {
        required(key, self.find_u32(key)?)
    }

    /// A whole number.
    ///
    /// # Errors
    /// The entry is missing, of another kind, or does not fit.
    pub fn u64(&self, key: &str) -> Result<u64, MetadataError> {
        required(key, self.find_u64(key)?)
    }

    /// A number, whole or not.
    ///
    /// # Errors
    /// The entry is missing or of another kind.
    pub fn f32(&self, key: &str) -> Result<f32, MetadataError> {
        required(key, self.find_f32(key)?)
    }

    /// True or false.
    ///
    /// # Errors
    /// The entry is missing or of another kind.
    pub fn bool(&self, key: &str) -> Result<bool, MetadataError> {
        required(key, self.find_bool(key)?)
    }

    /// A text.
    ///
    /// # Errors
    /// The entry is missing or of another kind.
    pub fn str(&self, key: &str) -> Result<&str, MetadataError> {
        required(key, self.find_str(key)?)
    }

    /// A whole number; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind, or does not fit.
    pub fn find_u32(&self, key: &str) -> Result<Option<u32>, MetadataError> {
        let limit = u32::MAX;
        self.find_integer(key, u64::from(limit))
            .map(|found| found.map(|n| n as u32))
    }

    /// A whole number; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind, or does not fit.
    pub fn find_u64(&self, key: &str) -> Result<Option<u64>, MetadataError> {
        self.find_integer(key, u64::MAX)
    }

    /// A number, whole or not; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_f32(&self, key: &str) -> Result<Option<f32>, MetadataError> {
        self.find(key, ValueKind::Float, |value| match value {
            Value::Float(number) => Some(*number as f32),
            Value::Integer(number) => Some(*number as f32),
            _ => None,
        })
    }

    /// True or false; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_bool(&self, key: &str) -> Result<Option<bool>, MetadataError> {
        self.find(key, ValueKind::Bool, |value| match value {
            Value::Bool(answer) => Some(*answer),
            _ => None,
        })
    }

    /// A text; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_str(&self, key: &str) -> Result<Option<&str>, MetadataError> {
        self.find(key, ValueKind::Text, |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// A list of whole numbers; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_integers(&self, key: &str) -> Result<Option<&[i64]>, MetadataError> {
        self.find(key, ValueKind::Integers, |value| match value {
            Value::Integers(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// A list of numbers; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_floats(&self, key: &str) -> Result<Option<&[f32]>, MetadataError> {
        self.find(key, ValueKind::Floats, |value| match value {
            Value::Floats(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// A list of texts; `None` if there is no such entry.
    ///
    /// # Errors
    /// The entry is of another kind.
    pub fn find_texts(&self, key: &str) -> Result<Option<&[String]>, MetadataError> {
        self.find(key, ValueKind::Texts, |value| match value {
            Value::Texts(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// Takes a list out and leaves a note of it, so that it is in memory once.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        let value = &mut self.entries[*self.by_key.get(key)?].1;
        let len = value.list_len()?;
        let note = Value::Moved {
            kind: value.kind(),
            len,
        };
        Some(std::mem::replace(value, note))
    }

    fn find_integer(&self, key: &str, limit: u64) -> Result<Option<u64>, MetadataError> {
        let found = self.find(key, ValueKind::Integer, |value| match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        })?;
        let Some(found) = found else { return Ok(None) };
        match u64::try_from(found) {
            Ok(number) if number <= limit => Ok(Some(number)),
            _ => Err(MetadataError::OutOfRange {
                key: key.to_owned(),
                found,
                limit,
            }),
        }
    }

    fn find<'a, T>(
        &'a self,
        key: &str,
        expected: ValueKind,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let wrong = || MetadataError::WrongKind {
            key: key.to_owned(),
            expected,
            found: value.kind(),
        };
        read(value).map(Some).ok_or_else(wrong)
    }
}

fn required<T>(key: &str, found: Option<T>) -> Result<T, MetadataError> {
    found.ok_or_else(|| MetadataError::Missing {
        key: key.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let mut metadata = Metadata::new();
        let entries = [
            ("layers", Value::Integer(2)),
            ("less", Value::Integer(-1)),
            ("epsilon", Value::Float(0.5)),
            ("name", Value::Text("tiny".into())),
            ("tokens", Value::Texts(vec!["a".into(), "b".into()])),
        ];
        for (key, value) in entries {
            metadata.insert(key.into(), value).unwrap();
        }
        metadata
    }

    #[test]
    fn getters_convert_and_say_what_is_wrong() {
        let m = metadata();
        assert_eq!(m.u32("layers"), Ok(2));
        assert_eq!(m.f32("layers"), Ok(2.0));
        assert_eq!(m.f32("epsilon"), Ok(0.5));
        assert_eq!(m.str("name"), Ok("tiny"));
        assert_eq!(m.find_bool("absent"), Ok(None));
        let words = |error: MetadataError| error.to_string();
        assert_eq!(
            words(m.u32("absent").unwrap_err()),
            "the entry `absent` is missing"
        );
        assert_eq!(
            words(m.u64("name").unwrap_err()),
            "the entry `name` is a text, not a whole number"
        );
        assert_eq!(
            words(m.u32("less").unwrap_err()),
            "the entry `less` is -1; a number from 0 to 4294967295 is needed"
        );
    }

    #[test]
    fn an_entry_is_kept_once_and_a_taken_list_leaves_a_note() {
        let mut m = metadata();
        assert!(m.insert("name".into(), Value::Bool(true)).is_err());
        assert_eq!(m.str("name"), Ok("tiny"));
        assert_eq!(m.take("tokens").unwrap().list_len(), Some(2));
        assert_eq!(
            m.value("tokens"),
            Some(&Value::Moved {
                kind: ValueKind::Texts,
                len: 2
            })
        );
        assert!(m.take("name").is_none(), "only lists are taken");
        let keys: Vec<&str> = m.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["layers", "less", "epsilon", "name", "tokens"]);
    }
}
