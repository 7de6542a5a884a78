//! A place in the description, moved forward only by what is really there.

use crate::error::{Needed, ParseError};
use crate::limits;

/// Reads little-endian values from the start of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: u64,
    file_len: u64,
    /// Memory that lists may still take beyond their bytes in the file.
    spare: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], file_len: u64) -> Self {
        Self {
            bytes,
            at: 0,
            file_len,
            spare: limits::LIST_SPARE_BYTES_MAX,
        }
    }

    /// Notes that something in memory takes so many bytes more than in the file; refuses where
    /// a file asks for more than any real one does.
    pub(super) fn expand(&mut self, bytes: u64) -> Result<(), ParseError> {
        let Some(left) = self.spare.checked_sub(bytes) else {
            return Err(ParseError::LimitExceeded {
                what: "bytes of memory for lists of short values",
                found: limits::LIST_SPARE_BYTES_MAX - self.spare + bytes,
                limit: limits::LIST_SPARE_BYTES_MAX,
            });
        };
        self.spare = left;
        Ok(())
    }

    /// The place of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes of the whole file.
    pub(super) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The next bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], ParseError> {
        let end = self.need(len)?;
        let bytes = self.bytes.get(self.at as usize..end as usize);
        let truncated = || ParseError::Truncated {
            found: self.file_len,
            needed: Needed::AtLeast(end),
        };
        let bytes = bytes.ok_or_else(truncated)?;
        self.at = end;
        Ok(bytes)
    }

    /// Refuses unless so many bytes follow; says where they end.
    ///
    /// Asked before anything is allocated for them.
    pub(super) fn need(&self, len: u64) -> Result<u64, ParseError> {
        let end = self.at.saturating_add(len);
        if end > limits::DESCRIPTION_BYTES_MAX {
            return Err(ParseError::LimitExceeded {
                what: "bytes of description",
                found: end,
                limit: limits::DESCRIPTION_BYTES_MAX,
            });
        }
        if end > self.file_len {
            let needed = Needed::AtLeast(end);
            return Err(ParseError::Truncated {
                found: self.file_len,
                needed,
            });
        }
        Ok(end)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ParseError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things, held against its limit.
    pub(super) fn count(&mut self, what: &'static str, limit: u64) -> Result<u64, ParseError> {
        let found = self.u64()?;
        if found > limit {
            return Err(ParseError::LimitExceeded { what, found, limit });
        }
        Ok(found)
    }

    /// A text with its length in front; `what` names it in messages.
    pub(super) fn text(&mut self, what: &'static str, limit: u64) -> Result<String, ParseError> {
        let len = self.u64()?;
        if len > limit {
            return Err(ParseError::LimitExceeded {
                what: too_long(what),
                found: len,
                limit,
            });
        }
        let at = self.at;
        let text = std::str::from_utf8(self.take(len)?);
        text.map(str::to_owned)
            .map_err(|_| ParseError::NotText { what, at })
    }
}

fn too_long(what: &'static str) -> &'static str {
    match what {
        KEY => "bytes in a metadata key",
        TENSOR_NAME => "bytes in a tensor name",
        _ => "bytes in a text",
    }
}

/// Names for messages.
pub(super) const KEY: &str = "a metadata key";
pub(super) const TENSOR_NAME: &str = "a tensor name";
pub(super) const TEXT: &str = "a metadata text";
