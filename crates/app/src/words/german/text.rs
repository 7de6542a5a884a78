//! Vocabularies, chat templates and stop strings.

use candor_text::{
    Builtin, Fallback, STOP_BYTES_MAX, STOP_STRINGS_MAX, StopError, TemplateError, TokenizerError,
};

use super::German;
use crate::words::Phrase;

impl German for TokenizerError {
    fn german(&self) -> String {
        match self {
            Self::UnknownModel { found } => {
                format!("die Art {found:?} des Tokenizers kennt diese Version nicht")
            }
            Self::UnknownPreTokenizer { found } => {
                format!("den Pre-Tokenizer {found:?} kennt diese Version nicht")
            }
            Self::Empty => String::from("das Vokabular ist leer"),
            Self::TypeCount { expected, found } => {
                format!("das Vokabular hat {expected} Tokens, aber {found} Arten von Tokens")
            }
            Self::ScoreCount { expected, found } => {
                format!("das Vokabular hat {expected} Tokens, aber {found} Wertungen")
            }
            Self::BadMerge { index, found } => {
                format!("die Verbindung {index} besteht nicht aus zwei Teilen: {found:?}")
            }
            Self::TooManySpecials { count } => format!(
                "das Vokabular hat zu viele besondere Tokens, um nach ihnen zu suchen: {count}"
            ),
            Self::NoTokenForByte { byte } => {
                format!("das Vokabular hat kein Token für das Byte {byte:#04x}")
            }
            Self::TextTooLong { found } => format!(
                "der Text hat {found} Byte; höchstens {} lassen sich lesen",
                candor_text::TEXT_BYTES_MAX
            ),
            Self::Absent => String::from("die Datei hat keinen Tokenizer"),
            Self::Library { message } => {
                format!("die Bibliothek für Tokenizer lehnt das Vokabular ab ({message})")
            }
        }
    }
}

impl German for TemplateError {
    fn german(&self) -> String {
        match self {
            Self::TooLong { found } => format!(
                "die Gesprächsvorlage hat {found} Byte; höchstens {} werden gelesen",
                candor_text::TEMPLATE_BYTES_MAX
            ),
            Self::Syntax { line, message } => {
                format!("die Gesprächsvorlage ist in Zeile {line} nicht gültig ({message})")
            }
            Self::Refused { message } => {
                format!("die Gesprächsvorlage lehnt dieses Gespräch ab ({message})")
            }
            Self::Failed { line, message } => {
                format!("die Gesprächsvorlage scheitert in Zeile {line} ({message})")
            }
            Self::Endless => String::from("die Gesprächsvorlage kommt zu keinem Ende"),
            Self::RenderedTooLong { found } => format!(
                "die Gesprächsvorlage ergab {found} Byte; höchstens {} lassen sich lesen",
                candor_text::RENDER_BYTES_MAX
            ),
            Self::NoFreeMark => String::from(
                "das Gespräch enthält jedes Zeichen, das für Markierungen frei bleiben muss",
            ),
        }
    }
}

impl German for StopError {
    fn german(&self) -> String {
        match self {
            Self::TooMany { found } => {
                format!("{found} Stoppwörter sind angegeben; höchstens {STOP_STRINGS_MAX} gehen")
            }
            Self::TooLong { index, found } => {
                format!("das Stoppwort {index} hat {found} Byte; höchstens {STOP_BYTES_MAX} gehen")
            }
            Self::Empty { index } => format!("das Stoppwort {index} ist leer"),
        }
    }
}

/// What was done instead of rendering a template as it is.
pub(crate) fn fallback(fallback: &Fallback) -> Phrase {
    Phrase::of(fallback)
}

impl German for Fallback {
    fn german(&self) -> String {
        match self {
            Self::NoTemplate { used } => format!(
                "dieses Modell bringt keine Gesprächsvorlage mit, deshalb gilt {}",
                builtin(*used)
            ),
            Self::InvalidTemplate { error, used } | Self::TemplateFailed { error, used } => {
                format!("{}; es gilt {}", error.german(), builtin(*used))
            }
            Self::SystemInUserTurn { error } => format!(
                "{}; die Vorgabe an das Modell kam in die erste Frage",
                error.german()
            ),
            Self::TurnsMerged { error } => format!(
                "{}; aufeinanderfolgende Beiträge einer Seite wurden verbunden",
                error.german()
            ),
            Self::SystemInUserTurnAndTurnsMerged { error } => format!(
                "{}; die Vorgabe an das Modell kam in die erste Frage, und aufeinanderfolgende \
                 Beiträge einer Seite wurden verbunden",
                error.german()
            ),
        }
    }
}

fn builtin(format: Builtin) -> &'static str {
    match format {
        Builtin::ChatMl => "das eingebaute ChatML-Format",
        Builtin::Plain => "ein einfaches Format mit „User: / Assistant:“",
    }
}
