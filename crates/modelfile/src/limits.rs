//! Every bound on what a model file may say, each with its reason.
//!
//! They stand far above what real files hold (the largest vocabularies have about
//! 260,000 tokens, the largest models a few thousand tensors), so that a file which
//! passes one is damaged or hostile.

use crate::error::ParseError;

/// Metadata entries. Real files have 20 to 80.
pub const METADATA_ENTRIES_MAX: u64 = 1 << 16;

/// Tensors. Real files have up to a few thousand; one tensor per expert would
/// still stay below.
pub const TENSORS_MAX: u64 = 1 << 17;

/// Bytes of a metadata key. The GGUF description allows 2^16 - 1.
pub const KEY_BYTES_MAX: u64 = (1 << 16) - 1;

/// Bytes of a tensor name. ggml stops at 64; other writers are a little freer.
pub const TENSOR_NAME_BYTES_MAX: u64 = 256;

/// Bytes of one metadata string. The longest in real files is a whole tokenizer
/// file embedded as text, below 40 MB.
pub const STRING_BYTES_MAX: u64 = 1 << 26;

/// Elements of one metadata array. Merge lists of large vocabularies have up to
/// about 500,000.
pub const ARRAY_ELEMS_MAX: u64 = 1 << 22;

/// Bytes of everything before the tensor data. Real ones have up to some 50 MB. It
/// is copied into memory, so this also bounds what a hostile file can make us allocate.
pub const DESCRIPTION_BYTES_MAX: u64 = 1 << 27;

/// Bytes of memory that all lists of a file may take beyond their bytes in the file. The
/// largest real vocabularies, with some 260,000 tokens and 500,000 merges, take 35 MB.
pub const LIST_SPARE_BYTES_MAX: u64 = 48 << 20;

/// Dimensions of a tensor; ggml has four.
pub const DIMENSIONS_MAX: u32 = 4;

/// The alignment of tensor data; 32 is usual, a page sensible.
pub const ALIGNMENT_MAX: u64 = 1 << 20;

/// Parts of a split model, each of which stays open. Real ones have up to some 150; systems
/// allow a process about 1,000 open files.
pub const SPLIT_PARTS_MAX: u64 = 512;

/// Refuses a number beyond its limit.
pub(crate) fn check(what: &'static str, found: u64, limit: u64) -> Result<(), ParseError> {
    if found > limit {
        return Err(ParseError::LimitExceeded { what, found, limit });
    }
    Ok(())
}
