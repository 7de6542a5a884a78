//! Metadata entries: a key, a type number, a value.

use crate::error::ParseError;
use crate::limits;
use crate::metadata::{Metadata, Value};

use super::cursor::{Cursor, KEY, TEXT};

/// A value type of GGUF that is not an array.
struct Scalar {
    id: u32,
    /// Bytes of one value, or the least that one takes (a text: its length).
    bytes_min: u64,
    /// Bytes that a value of a list takes in memory beyond those in the file.
    expands_by: u64,
    read: fn(&mut Cursor<'_>) -> Result<Value, ParseError>,
    read_list: fn(&mut Cursor<'_>, u64) -> Result<Value, ParseError>,
}

const ARRAY_ID: u32 = 9;

/// A text in memory: the three words of its handle, and what an allocator adds to a short one,
/// less the length in the file.
const TEXT_EXPANDS_BY: u64 = 24 + 32 - 8;

macro_rules! integer {
    ($id:literal, $type:ty) => {
        Scalar {
            id: $id,
            bytes_min: size_of::<$type>() as u64,
            expands_by: (size_of::<i64>() - size_of::<$type>()) as u64,
            read: |c| {
                Ok(Value::Integer(i128::from(<$type>::from_le_bytes(
                    c.array()?,
                ))))
            },
            read_list: |c, len| {
                let bytes = c.take(len * size_of::<$type>() as u64)?;
                let numbers = bytes.as_chunks().0.iter();
                // A list keeps unsigned 64-bit numbers by their bits.
                Ok(Value::Integers(
                    numbers.map(|b| <$type>::from_le_bytes(*b) as i64).collect(),
                ))
            },
        }
    };
}

macro_rules! float {
    ($id:literal, $type:ty) => {
        Scalar {
            id: $id,
            bytes_min: size_of::<$type>() as u64,
            expands_by: 0,
            read: |c| Ok(Value::Float(f64::from(<$type>::from_le_bytes(c.array()?)))),
            read_list: |c, len| {
                let bytes = c.take(len * size_of::<$type>() as u64)?;
                let numbers = bytes.as_chunks().0.iter();
                Ok(Value::Floats(
                    numbers.map(|b| <$type>::from_le_bytes(*b) as f32).collect(),
                ))
            },
        }
    };
}

/// All value types but the array, by their numbers.
const SCALARS: &[Scalar] = &[
    integer!(0, u8),
    integer!(1, i8),
    integer!(2, u16),
    integer!(3, i16),
    integer!(4, u32),
    integer!(5, i32),
    float!(6, f32),
    Scalar {
        id: 7,
        bytes_min: 1,
        expands_by: 0,
        read: |c| Ok(Value::Bool(c.array::<1>()? != [0])),
        read_list: |c, len| Ok(Value::Bools(c.take(len)?.iter().map(|b| *b != 0).collect())),
    },
    Scalar {
        id: 8,
        bytes_min: size_of::<u64>() as u64,
        expands_by: TEXT_EXPANDS_BY,
        read: |c| c.text(TEXT, limits::STRING_BYTES_MAX).map(Value::Text),
        read_list: |c, len| {
            (0..len)
                .map(|_| c.text(TEXT, limits::STRING_BYTES_MAX))
                .collect::<Result<_, _>>()
                .map(Value::Texts)
        },
    },
    integer!(10, u64),
    integer!(11, i64),
    float!(12, f64),
];

/// Reads all entries.
pub(super) fn read_metadata(cursor: &mut Cursor<'_>, count: u64) -> Result<Metadata, ParseError> {
    let mut metadata = Metadata::new();
    for _ in 0..count {
        let key = cursor.text(KEY, limits::KEY_BYTES_MAX)?;
        let value = read_value(cursor, &key)?;
        metadata
            .insert(key, value)
            .map_err(|(key, _)| ParseError::DuplicateKey { key })?;
    }
    Ok(metadata)
}

fn read_value(cursor: &mut Cursor<'_>, key: &str) -> Result<Value, ParseError> {
    let id = cursor.u32()?;
    if id != ARRAY_ID {
        return (scalar(id, key)?.read)(cursor);
    }
    let id = cursor.u32()?;
    if id == ARRAY_ID {
        return Err(ParseError::NestedArray {
            key: key.to_owned(),
        });
    }
    let scalar = scalar(id, key)?;
    let len = cursor.count("elements in a list", limits::ARRAY_ELEMS_MAX)?;
    // Before a list is allocated, at least this much has to be there.
    cursor.need(len * scalar.bytes_min)?;
    cursor.expand(len * scalar.expands_by)?;
    (scalar.read_list)(cursor, len)
}

fn scalar(id: u32, key: &str) -> Result<&'static Scalar, ParseError> {
    let unknown = || ParseError::UnknownValueType {
        key: key.to_owned(),
        found: id,
    };
    SCALARS
        .iter()
        .find(|scalar| scalar.id == id)
        .ok_or_else(unknown)
}
