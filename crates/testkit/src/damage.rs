//! Damaged and false model files: what people really open by mistake.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::TinyModel;

/// A way in which a file is not the model that its name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Cut behind 3 bytes, within the magic.
    Cut3Bytes,
    /// Cut behind 20 bytes, within the header.
    Cut20Bytes,
    /// Cut halfway through the metadata.
    CutInMetadata,
    /// Cut halfway through the tensor table.
    CutInTensorTable,
    /// Cut at 60 % of the tensor data.
    CutAt60Percent,
    /// The last byte is missing.
    OneByteShort,
    /// No bytes at all.
    Empty,
    /// A web page.
    HtmlPage,
    /// A ZIP archive.
    ZipArchive,
    /// A PNG picture.
    PngPicture,
    /// An APR model, cut short.
    AprTruncated,
    /// A file of another kind with the ending of APR models.
    AprForeign,
    /// A folder.
    Directory,
}

impl Damage {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Cut3Bytes,
        Self::Cut20Bytes,
        Self::CutInMetadata,
        Self::CutInTensorTable,
        Self::CutAt60Percent,
        Self::OneByteShort,
        Self::Empty,
        Self::HtmlPage,
        Self::ZipArchive,
        Self::PngPicture,
        Self::AprTruncated,
        Self::AprForeign,
        Self::Directory,
    ];

    /// The name of the file that [`Damage::write`] makes.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Cut3Bytes => "cut-3-bytes.gguf",
            Self::Cut20Bytes => "cut-20-bytes.gguf",
            Self::CutInMetadata => "cut-in-metadata.gguf",
            Self::CutInTensorTable => "cut-in-tensor-table.gguf",
            Self::CutAt60Percent => "cut-at-60-percent.gguf",
            Self::OneByteShort => "one-byte-short.gguf",
            Self::Empty => "empty.gguf",
            Self::HtmlPage => "page.gguf",
            Self::ZipArchive => "archive.gguf",
            Self::PngPicture => "picture.gguf",
            Self::AprTruncated => "cut.apr",
            Self::AprForeign => "foreign.apr",
            Self::Directory => "x.gguf",
        }
    }

    /// Whether it is a model that was cut, so that sizes have to be named.
    pub fn is_cut(self) -> bool {
        matches!(
            self,
            Self::Cut3Bytes
                | Self::Cut20Bytes
                | Self::CutInMetadata
                | Self::CutInTensorTable
                | Self::CutAt60Percent
                | Self::OneByteShort
        )
    }

    /// The bytes of the damaged file; `None` for a folder.
    pub fn bytes(self, model: &TinyModel) -> Option<Vec<u8>> {
        let whole = model.encode();
        let len = whole.bytes.len();
        let between = |from: usize, to: usize| from + (to - from) / 2;
        let cut = |at: usize| Some(whole.bytes[..at].to_vec());
        match self {
            Self::Cut3Bytes => cut(3),
            Self::Cut20Bytes => cut(20),
            Self::CutInMetadata => cut(between(24, whole.metadata_end)),
            Self::CutInTensorTable => cut(between(whole.metadata_end, whole.table_end)),
            Self::CutAt60Percent => cut(whole.data_start + (len - whole.data_start) * 6 / 10),
            Self::OneByteShort => cut(len - 1),
            Self::Empty => Some(Vec::new()),
            Self::HtmlPage => Some(
                b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>You need to \
                  sign in to download this model.</body></html>\n"
                    .to_vec(),
            ),
            Self::ZipArchive => Some(stored_zip()),
            Self::PngPicture => Some(PNG.to_vec()),
            Self::AprTruncated => Some(b"APR\0\x02\0\0\0\x15\0\0\0".to_vec()),
            Self::AprForeign => Some(b"This is a shopping list: apples, pears, rice.\n".to_vec()),
            Self::Directory => None,
        }
    }

    /// Writes the damaged file into a folder and says where it is.
    ///
    /// # Errors
    /// The system cannot write it.
    pub fn write(self, folder: &Path, model: &TinyModel) -> io::Result<PathBuf> {
        let path = folder.join(self.file_name());
        match self.bytes(model) {
            Some(bytes) => std::fs::write(&path, bytes)?,
            None => std::fs::create_dir(&path)?,
        }
        Ok(path)
    }
}

/// The beginning of a ZIP archive: a local header, a stored file, the end record.
fn stored_zip() -> Vec<u8> {
    let name = b"model.gguf";
    let mut zip = b"PK\x03\x04\x14\0".to_vec();
    zip.extend([0; 20]);
    zip.extend((name.len() as u16).to_le_bytes());
    zip.extend([0; 2]);
    zip.extend(name);
    zip.extend(b"PK\x05\x06");
    zip.extend([0; 18]);
    zip
}

/// A picture of one black pixel.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\
\0\0\0\x0aIDAT\x78\x9c\x63\x60\0\0\0\x02\0\x01\x48\xaf\xa4\x71\0\0\0\0IEND\xae\x42\x60\x82";
