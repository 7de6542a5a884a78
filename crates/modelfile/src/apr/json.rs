//! The metadata object, kept as far as a model's description needs it.
//!
//! Writers give keys twice and null beside a value: the last value that is not null counts.
//! Objects within it are left out, but for `special_tokens`, whose entries get dotted keys.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use thiserror::Error;

use crate::limits;
use crate::metadata::{Metadata, Value};

/// The metadata is not what it has to be.
#[derive(Debug, Error)]
#[error("the metadata is not a JSON object: {0}")]
pub struct JsonError(#[from] serde_json::Error);

/// Memory of a text in a list beside its characters: the three words of its handle, and what an
/// allocator adds to a short one.
const TEXT_BYTES: usize = 24 + 32;

/// The only object whose entries count.
const FLATTENED: &str = "special_tokens";

/// Reads all entries.
pub(super) fn read(bytes: &[u8]) -> Result<Metadata, JsonError> {
    let budget = Cell::new(
        bytes
            .len()
            .saturating_add(limits::LIST_SPARE_BYTES_MAX as usize),
    );
    let mut metadata = Metadata::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let object = Object {
        prefix: "",
        budget: &budget,
        into: &mut metadata,
    };
    object.deserialize(&mut reader)?;
    // Zeros may follow, up to the alignment.
    Ok(metadata)
}

/// An object whose entries go into a list.
struct Object<'a> {
    prefix: &'static str,
    budget: &'a Cell<usize>,
    into: &'a mut Metadata,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            charge(self.budget, key.len() + ENTRY_BYTES)?;
            if self.prefix.is_empty() && key == FLATTENED {
                let (budget, into) = (self.budget, &mut *self.into);
                map.next_value_seed(Maybe(Object {
                    prefix: FLATTENED,
                    budget,
                    into,
                }))?;
                continue;
            }
            let Some(value) = map.next_value_seed(Item(self.budget))? else {
                continue;
            };
            let key = if self.prefix.is_empty() {
                key
            } else {
                format!("{}.{key}", self.prefix)
            };
            self.into.set(key, value);
            if self.into.iter().len() as u64 > limits::METADATA_ENTRIES_MAX {
                return Err(A::Error::custom("it has too many entries"));
            }
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // The inner object may be null, the outer one may not.
        if self.prefix.is_empty() {
            Err(E::custom("it is null"))
        } else {
            Ok(())
        }
    }
}

/// An inner object, or something else in its place, which is left out.
struct Maybe<'a>(Object<'a>);

impl<'de> DeserializeSeed<'de> for Maybe<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self.0)
    }
}

/// Memory of an entry beside its text.
const ENTRY_BYTES: usize = 128;

fn charge<E: Error>(budget: &Cell<usize>, bytes: usize) -> Result<(), E> {
    let left = budget.get().checked_sub(bytes);
    budget.set(left.ok_or_else(|| E::custom("its lists are too long"))?);
    Ok(())
}

/// A value of an entry; `None` for null and what is left out.
#[derive(Clone, Copy)]
struct Item<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(Value::Integer(i128::from(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(Value::Integer(i128::from(value))))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(Value::Float(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        charge(self.0, value.len())?;
        Ok(Some(Value::Text(value.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = List::default();
        while let Some(element) = list.next_element_seed(self)? {
            let is_text = matches!(element, Some(Value::Text(_)));
            charge(
                self.0,
                if is_text {
                    TEXT_BYTES
                } else {
                    size_of::<i64>()
                },
            )?;
            found.push(element);
        }
        Ok(found.finish())
    }
}

/// A list of one kind; anything else empties it for good.
#[derive(Default)]
struct List {
    texts: Vec<String>,
    integers: Vec<i64>,
    floats: Vec<f32>,
    is_mixed: bool,
}

impl List {
    fn push(&mut self, element: Option<Value>) {
        match element {
            _ if self.is_mixed => {}
            Some(Value::Text(text)) => self.texts.push(text),
            Some(Value::Integer(number)) if self.floats.is_empty() => {
                self.integers
                    .push(i64::try_from(number).unwrap_or(i64::MAX));
            }
            Some(Value::Integer(number)) => self.floats.push(number as f32),
            Some(Value::Float(number)) => {
                let before = std::mem::take(&mut self.integers);
                self.floats
                    .extend(before.into_iter().map(|integer| integer as f32));
                self.floats.push(number as f32);
            }
            _ => {
                *self = Self {
                    is_mixed: true,
                    ..Self::default()
                }
            }
        }
    }

    fn finish(self) -> Option<Value> {
        match (
            self.texts.is_empty(),
            self.integers.is_empty(),
            self.floats.is_empty(),
        ) {
            (false, true, true) => Some(Value::Texts(self.texts)),
            (true, false, true) => Some(Value::Integers(self.integers)),
            (true, true, false) => Some(Value::Floats(self.floats)),
            _ => None,
        }
    }
}
