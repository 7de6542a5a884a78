//! The 64 bytes at the start, and what they rule out.

use crate::error::{AprError, Needed, ParseError};
use crate::limits;

use super::checksum::crc32;
use super::{HEADER_BYTES, MAGIC};

const LZ4: u16 = 0x0001;
const ZSTD: u16 = 0x0002;
const ENCRYPTED: u16 = 0x0004;
const COLUMN_MAJOR: u16 = 0x0800;

/// Where the parts of the file are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    flags: u16,
    pub(super) n_tensors: u64,
    metadata_at: u64,
    metadata_len: u64,
    pub(super) index_at: u64,
    pub(super) data_at: u64,
}

impl Header {
    pub(super) fn read(bytes: &[u8], file_len: u64) -> Result<Self, ParseError> {
        let truncated = ParseError::Truncated {
            found: file_len,
            needed: Needed::AtLeast(HEADER_BYTES),
        };
        let stranger = || ParseError::NotAModel {
            looks_like: crate::sniff::looks_like(bytes),
        };
        if bytes.len() >= MAGIC.len() && !bytes.starts_with(MAGIC) {
            return Err(stranger());
        }
        // The fourth byte alone tells the versions that have no common header.
        match bytes.get(MAGIC.len()) {
            Some(b'N' | b'1') => return Err(AprError::Version { found: 1 }.into()),
            Some(0 | b'2') => {}
            Some(_) => return Err(stranger()),
            None => return Err(truncated),
        }
        let Some(head) = bytes.first_chunk::<{ HEADER_BYTES as usize }>() else {
            return Err(truncated);
        };
        if head[4] != 2 {
            return Err(AprError::Version { found: head[4] }.into());
        }
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let eight = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if crc32(&[&head[..40], &head[44..]]) != four(40) {
            return Err(AprError::HeaderChecksum.into());
        }
        let header = Self {
            flags: u16::from_le_bytes([head[6], head[7]]),
            n_tensors: u64::from(four(8)),
            metadata_at: eight(12),
            metadata_len: u64::from(four(20)),
            index_at: eight(24),
            data_at: eight(32),
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), ParseError> {
        if self.flags & ENCRYPTED != 0 {
            return Err(AprError::Encrypted.into());
        }
        if self.flags & COLUMN_MAJOR != 0 {
            return Err(AprError::ColumnMajor.into());
        }
        limits::check("tensors", self.n_tensors, limits::TENSORS_MAX)?;
        let description = [self.metadata_len, self.index_at, self.data_at];
        for bytes in description {
            limits::check("bytes of description", bytes, limits::DESCRIPTION_BYTES_MAX)?;
        }
        let metadata_end = self.metadata_at.saturating_add(self.metadata_len);
        let in_order = self.metadata_at >= HEADER_BYTES
            && metadata_end <= self.index_at
            && self.index_at <= self.data_at;
        if in_order {
            Ok(())
        } else {
            Err(AprError::Sections.into())
        }
    }

    /// The bytes of the metadata.
    pub(super) fn metadata<'a>(
        &self,
        bytes: &'a [u8],
        file_len: u64,
    ) -> Result<&'a [u8], ParseError> {
        let end = self.metadata_at + self.metadata_len;
        let found = bytes.get(self.metadata_at as usize..end as usize);
        let found = found.ok_or(ParseError::Truncated {
            found: file_len,
            needed: Needed::AtLeast(self.data_at),
        })?;
        // A packed file has no object here.
        if self.is_compressed() && !found.trim_ascii_start().starts_with(b"{") {
            return Err(AprError::Compressed.into());
        }
        Ok(found)
    }

    fn is_compressed(&self) -> bool {
        self.flags & (LZ4 | ZSTD) != 0
    }

    /// Writers set the flag of LZ4 and leave the content plain, so a file whose metadata could
    /// be read is plain. Nobody sets the flag of zstd so.
    pub(super) fn refuse_compressed(&self) -> Result<(), ParseError> {
        if self.flags & ZSTD != 0 {
            return Err(AprError::Compressed.into());
        }
        Ok(())
    }
}
