//! What a file is that is not a model file: the usual mix-ups, by their first bytes.

use std::fmt;

/// Bytes that are looked at.
const SNIFF_BYTES: usize = 4096;

/// What a foreign file seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksLike {
    /// An APR model.
    Apr,
    /// A safetensors model.
    SafeTensors,
    /// A PyTorch checkpoint.
    PyTorch,
    /// A model of the formats before GGUF.
    OldGgml,
    /// The stand-in for a file that Git LFS keeps elsewhere.
    GitLfsPointer,
    /// A web page.
    Html,
    /// An XML document, such as a storage service's error message.
    Xml,
    /// A JSON document.
    Json,
    /// A ZIP archive.
    Zip,
    /// A gzip archive.
    Gzip,
    /// A picture.
    Png,
    /// A picture.
    Jpeg,
    /// A PDF document.
    Pdf,
    /// A program.
    Elf,
    /// Space reserved by a download that never wrote into it.
    Zeros,
    /// Readable text.
    Text,
    /// None of these; the first four bytes.
    Unknown([u8; 4]),
}

impl fmt::Display for LooksLike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Apr => "it begins like an APR file, but of no version that is known",
            Self::SafeTensors => "it is a safetensors model",
            Self::PyTorch => "it is a PyTorch checkpoint",
            Self::OldGgml => "it is a model in a GGML format from before GGUF",
            Self::GitLfsPointer => "it is a Git LFS pointer, which only names the real file",
            Self::Html => "it is a web page (HTML)",
            Self::Xml => "it is an XML document",
            Self::Json => "it is a JSON document",
            Self::Zip => "it is a ZIP archive",
            Self::Gzip => "it is a gzip archive",
            Self::Png => "it is a PNG picture",
            Self::Jpeg => "it is a JPEG picture",
            Self::Pdf => "it is a PDF document",
            Self::Elf => "it is a program",
            Self::Zeros => "it begins with zeros only, as an unfinished download does",
            Self::Text => "it is a plain text file",
            Self::Unknown([a, b, c, d]) => {
                return write!(
                    f,
                    "it begins with the bytes {a:02x} {b:02x} {c:02x} {d:02x}"
                );
            }
        };
        f.write_str(words)
    }
}

impl LooksLike {
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Apr | Self::SafeTensors | Self::PyTorch | Self::OldGgml => {
                "get the model as a GGUF file"
            }
            Self::GitLfsPointer => "fetch the real file with `git lfs pull`, or download it",
            Self::Html | Self::Xml | Self::Json => {
                "the server sent a page instead of the model; download the file again"
            }
            Self::Zip | Self::Gzip => "unpack it and open the .gguf file inside",
            Self::Zeros => "download the file again",
            _ => "choose the model's own file, which ends in .gguf or .apr",
        }
    }
}

/// Beginnings that tell a kind at once.
const MAGICS: &[(&[u8], LooksLike)] = &[
    (b"APR", LooksLike::Apr),
    (b"\x89PNG\r\n\x1a\n", LooksLike::Png),
    (b"\xff\xd8\xff", LooksLike::Jpeg),
    (b"%PDF-", LooksLike::Pdf),
    (b"\x7fELF", LooksLike::Elf),
    (b"\x1f\x8b", LooksLike::Gzip),
    // The little-endian magics of ggml, ggmf, ggjt and ggla files.
    (b"lmgg", LooksLike::OldGgml),
    (b"fmgg", LooksLike::OldGgml),
    (b"tjgg", LooksLike::OldGgml),
    (b"algg", LooksLike::OldGgml),
    (b"version https://git-lfs", LooksLike::GitLfsPointer),
];

/// What the beginning of a file seems to be.
pub(crate) fn looks_like(bytes: &[u8]) -> LooksLike {
    let head = &bytes[..bytes.len().min(SNIFF_BYTES)];
    if let Some((_, kind)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return *kind;
    }
    if head.starts_with(b"PK\x03\x04") {
        return if contains(head, b"data.pkl") {
            LooksLike::PyTorch
        } else {
            LooksLike::Zip
        };
    }
    if is_safetensors(head) {
        return LooksLike::SafeTensors;
    }
    if matches!(head, [0x80, 2..=5, ..]) {
        return LooksLike::PyTorch;
    }
    if head.len() >= 4 && head.iter().all(|b| *b == 0) {
        return LooksLike::Zeros;
    }
    if let Some(kind) = text_kind(head) {
        return kind;
    }
    let mut first = [0; 4];
    for (to, from) in first.iter_mut().zip(head) {
        *to = *from;
    }
    LooksLike::Unknown(first)
}

/// Eight bytes of length, then a JSON object.
fn is_safetensors(head: &[u8]) -> bool {
    // The format's own limit for its header is 100 MB.
    const HEADER_BYTES_MAX: u64 = 100_000_000;
    let Some((len, rest)) = head.split_first_chunk::<8>() else {
        return false;
    };
    (2..=HEADER_BYTES_MAX).contains(&u64::from_le_bytes(*len)) && rest.starts_with(b"{\"")
}

fn text_kind(head: &[u8]) -> Option<LooksLike> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The head may end within a character.
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let start: String = text
        .chars()
        .take(16)
        .collect::<String>()
        .to_ascii_lowercase();
    let html = ["<!doctype html", "<html", "<head", "<body", "<script"];
    if html.iter().any(|tag| start.starts_with(tag)) {
        return Some(LooksLike::Html);
    }
    if start.starts_with("<?xml") {
        return Some(LooksLike::Xml);
    }
    if start.starts_with('{') || start.starts_with('[') {
        return Some(LooksLike::Json);
    }
    let printable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    (!text.is_empty() && text.chars().all(printable)).then_some(LooksLike::Text)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_are_told_apart() {
        let check = |bytes: &[u8], kind: LooksLike| {
            assert_eq!(
                looks_like(bytes),
                kind,
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        };
        check(b"APR\0\x02\0", LooksLike::Apr);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", LooksLike::Png);
        check(b"\xef\xbb\xbf\n <!DOCTYPE html><html>", LooksLike::Html);
        check(b"<HTML><body>", LooksLike::Html);
        check(b"<?xml version=\"1.0\"?><Error>", LooksLike::Xml);
        check(b"{\"error\":\"gated\"}", LooksLike::Json);
        check(b"PK\x03\x04model.gguf", LooksLike::Zip);
        check(b"PK\x03\x04....archive/data.pkl", LooksLike::PyTorch);
        check(b"\x80\x02}q\x00", LooksLike::PyTorch);
        check(
            b"\x10\0\0\0\0\0\0\0{\"__metadata__\"",
            LooksLike::SafeTensors,
        );
        check(
            b"version https://git-lfs.github.com/spec/v1\n",
            LooksLike::GitLfsPointer,
        );
        check(b"tjgg\x03\0\0\0", LooksLike::OldGgml);
        check(&[0; 64], LooksLike::Zeros);
        check("Entry not found, сейчас".as_bytes(), LooksLike::Text);
        check(b"\x01\x02\x03", LooksLike::Unknown([1, 2, 3, 0]));
    }
}
