//! What a person can do about a file that was refused.

use candor_modelfile::{AprError, LooksLike, OpenError, ParseError, Refusal};

use crate::words::Phrase;

/// What a person can do about a refused file.
pub(crate) fn advice(error: &OpenError) -> Option<Phrase> {
    let english = error.advice()?;
    Some(Phrase::new(english, of_refusal(&error.reason)?))
}

fn of_refusal(reason: &Refusal) -> Option<&'static str> {
    match reason {
        Refusal::NotFound => {
            Some("sieh nach, ob die Datei verschoben wurde und ihr Laufwerk angeschlossen ist")
        }
        Refusal::IsDirectory => Some("öffne die .gguf-Datei in dem Ordner"),
        Refusal::NoPermission => Some("erlaube deinem Benutzer, die Datei zu lesen"),
        Refusal::Empty | Refusal::Shrunk { .. } => Some(AGAIN),
        Refusal::Parse(error) => Some(of_content(error)),
        Refusal::PartMissing { .. } => Some("lade den fehlenden Teil in denselben Ordner herunter"),
        Refusal::PartsDiffer { .. } => {
            Some("lade alle Teile eines Modells in einen Ordner herunter")
        }
        Refusal::PartName { .. } => Some("gib den Teilen wieder ihre ursprünglichen Namen"),
        Refusal::Piece { .. } => Some("füge die Stücke zusammen und öffne die ganze Datei"),
        Refusal::NotAFile | Refusal::Io(_) | Refusal::Assumed(_) => None,
    }
}

const AGAIN: &str = "lade die Datei noch einmal herunter";
const AS_GGUF: &str = "hole das Modell als GGUF-Datei";

fn of_content(error: &ParseError) -> &'static str {
    match error {
        ParseError::NotAModel { looks_like } => of_looks(*looks_like),
        ParseError::Truncated { .. }
        | ParseError::Apr(AprError::HeaderChecksum | AprError::Json(_) | AprError::Sections) => {
            AGAIN
        }
        ParseError::Apr(_) => AS_GGUF,
        ParseError::BigEndian | ParseError::UnsupportedVersion { found: 0..=1 } => {
            "hole eine neu konvertierte GGUF-Datei des Modells"
        }
        ParseError::UnsupportedVersion { .. } => "sieh nach einer neueren Version von Candor",
        ParseError::Split { .. } => "öffne das Modell mit allen Teilen in einem Ordner",
        ParseError::UnsupportedType { .. } => {
            "hole das Modell in einem anderen Speichertyp, etwa Q4_K_M oder Q8_0"
        }
        ParseError::LimitExceeded { .. }
        | ParseError::Metadata(_)
        | ParseError::UnknownValueType { .. }
        | ParseError::NestedArray { .. }
        | ParseError::NotText { .. }
        | ParseError::DuplicateKey { .. }
        | ParseError::DuplicateTensor { .. }
        | ParseError::BadAlignment { .. }
        | ParseError::BadShape { .. }
        | ParseError::PartialBlock { .. }
        | ParseError::Misaligned { .. }
        | ParseError::Overlap { .. }
        | ParseError::OutOfRange { .. } => {
            "die Datei ist nicht, was sie sein soll; lade sie noch einmal herunter oder hole eine \
             andere"
        }
    }
}

fn of_looks(looks_like: LooksLike) -> &'static str {
    match looks_like {
        LooksLike::Apr | LooksLike::SafeTensors | LooksLike::PyTorch | LooksLike::OldGgml => {
            AS_GGUF
        }
        LooksLike::GitLfsPointer => {
            "hole die eigentliche Datei mit `git lfs pull` oder lade sie herunter"
        }
        LooksLike::Html | LooksLike::Xml | LooksLike::Json => {
            "der Server hat eine Seite statt des Modells geschickt; lade die Datei noch einmal \
             herunter"
        }
        LooksLike::Zip | LooksLike::Gzip => "packe es aus und öffne die .gguf-Datei darin",
        LooksLike::Zeros => AGAIN,
        LooksLike::Png
        | LooksLike::Jpeg
        | LooksLike::Pdf
        | LooksLike::Elf
        | LooksLike::Text
        | LooksLike::Unknown(_) => {
            "wähle die Datei des Modells selbst, sie endet auf .gguf oder .apr"
        }
    }
}
