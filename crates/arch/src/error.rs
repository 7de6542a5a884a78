//! Why a file's architecture cannot be built.

/// Why there is no graph for a file.
#[derive(Debug, thiserror::Error)]
pub enum ArchError {
    /// No row of the table has that name.
    #[error("architecture {name:?} is not supported by this version")]
    Unknown {
        /// As in the file.
        name: String,
    },
    /// The file says that it is made for something else.
    #[error("{purpose}")]
    NotChat {
        /// For what.
        purpose: candor_modelfile::Purpose,
    },
    /// The file speaks of something that this version does not compute.
    #[error("{key} is {found}, which is not supported by this version")]
    Unsupported {
        /// The metadata key.
        key: String,
        /// As in the file.
        found: String,
    },
    /// A needed number is absent or of another type.
    #[error(transparent)]
    Metadata(#[from] candor_modelfile::MetadataError),
    /// A number outside its bounds.
    #[error("{key} is {found}, expected {expected}")]
    OutOfBounds {
        /// The metadata key.
        key: String,
        /// What would do.
        expected: String,
        /// As in the file.
        found: String,
    },
    /// The file has no tensor that says how large the vocabulary is.
    #[error("the tensor token_embd.weight is missing or is no matrix")]
    NoEmbedding,
}
