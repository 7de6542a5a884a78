//! The engine: loads, requests, checks of a card, turns.

use std::path::Path;

use candor_engine::{LoadFailure, NotJudged, RequestError, TurnCode};

use super::{German, capital, first, model, name};

impl German for LoadFailure {
    fn german(&self) -> String {
        match self {
            Self::File(error) => error.german(),
            Self::NoTokenizer { path } => format!(
                "{}: Die Datei hat keinen Tokenizer, mit ihr lässt sich nicht chatten",
                name(path)
            ),
            Self::Tokenizer { path, source } => about(path, &source.german()),
            Self::Architecture { path, source } => about(path, &source.german()),
            Self::Problems { path, problems } => about(path, &first(problems, NAMELESS)),
            Self::Unsupported { path, missing } => format!(
                "{}: Das kann diese Version nicht: {}",
                name(path),
                first(missing, NAMELESS)
            ),
            Self::NoDevice(why) => {
                format!("auf diesem Rechner kann nichts rechnen ({why:?})")
            }
            Self::NoBackend => String::from("keine Berechnung ist eingerichtet"),
            Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => format!(
                "das Modell braucht {needed_bytes} Byte Speicher, frei sind {available_bytes}"
            ),
            Self::Option(error) => error.german(),
            Self::Stopped => String::from("das Laden wurde angehalten"),
            Self::Broken { reason } => format!("das Laden ist zusammengebrochen ({reason})"),
            Self::NotOnDevice { .. } => {
                String::from("das gewünschte Gerät kann dieses Modell nicht rechnen")
            }
            Self::Closed => String::from("die Engine ist beendet"),
        }
    }
}

/// What is said of a file.
fn about(path: &Path, german: &str) -> String {
    format!("{}: {}", name(path), capital(german))
}

const NAMELESS: &str = "etwas, das sie nicht nennt";

impl German for NotJudged {
    fn german(&self) -> String {
        match self {
            Self::Stopped => String::from("die Prüfung wurde angehalten"),
            Self::Reference { reason } => format!("die CPU ist gescheitert: {reason}"),
            Self::Candidate { reason } => format!("die Karte ist gescheitert: {reason}"),
            Self::TooShort { found, needed } => {
                format!("die Prüfung braucht {needed} Tokens, der Kontext fasst {found}")
            }
        }
    }
}

impl German for RequestError {
    fn german(&self) -> String {
        match self {
            Self::EmptyPrompt => String::from("es gibt nichts, was das Modell lesen könnte"),
            Self::UnknownToken {
                index,
                token,
                vocabulary,
            } => format!(
                "das Token {token} an Stelle {index} liegt außerhalb des Vokabulars von \
                 {vocabulary}"
            ),
            Self::PromptTooLong { tokens, ctx_len } => {
                format!("es sind {tokens} Tokens; der Kontext fasst {ctx_len}")
            }
            Self::MaxTokens { found, max } => format!(
                "die längste Antwort ist auf {found} Tokens gesetzt; möglich ist 1 bis {max}"
            ),
            Self::Sampling(error) => error.german(),
            Self::Bias(error) => error.german(),
            Self::TopLogprobs { found, max } => {
                format!("{found} wahrscheinliche Tokens sind verlangt; höchstens {max} gehen")
            }
            Self::Constraint(error) => error.german(),
            Self::NoEmbedding(error) => error.german(),
            Self::Stop(error) => error.german(),
        }
    }
}

impl German for candor_engine::SamplingError {
    fn german(&self) -> String {
        let Self {
            what,
            found,
            min,
            max,
        } = self;
        format!(
            "{} ist {found}; möglich ist {min} bis {max}",
            sampling(what)
        )
    }
}

fn sampling(what: &'static str) -> &'static str {
    match what {
        "temperature" => "die Temperatur",
        "top-p" => "Top-p",
        "min-p" => "Min-p",
        "repeat penalty" => "die Strafe für Wiederholung",
        "presence penalty" => "die Strafe für Vorkommen",
        "frequency penalty" => "die Strafe für Häufigkeit",
        "DRY multiplier" => "die DRY-Stärke",
        "DRY base" => "der DRY-Zuwachs",
        "DRY allowed length" => "die freie Länge von DRY",
        "DRY window" => "das Fenster von DRY",
        "XTC probability" => "der XTC-Anteil",
        "XTC threshold" => "die XTC-Schwelle",
        "logit bias" => "der Zuschlag eines Tokens",
        other => model::option(other),
    }
}

impl German for candor_engine::BiasError {
    fn german(&self) -> String {
        match self {
            Self::TooMany { found, max } => {
                format!("{found} Tokens haben einen Zuschlag; höchstens {max} dürfen es")
            }
            Self::UnknownToken { token, vocabulary } => format!(
                "der Zuschlag gilt dem Token {token} außerhalb des Vokabulars von {vocabulary}"
            ),
            Self::Value(error) => error.german(),
        }
    }
}

impl German for candor_engine::ConstraintError {
    fn german(&self) -> String {
        match self {
            Self::TooLong { what, found } => format!(
                "{} hat {found} Byte; höchstens {} werden angenommen",
                form(what),
                candor_engine::CONSTRAINT_BYTES_MAX
            ),
            Self::TooDeep { what, max } => {
                format!("{} ist tiefer als {max} Ebenen verschachtelt", form(what))
            }
            Self::Refused { what, reason } => {
                format!("{} lässt sich nicht befolgen ({reason})", form(what))
            }
            Self::NoVocabulary => String::from(
                "dieses Modell hat kein Vokabular, mit dem sich eine Form einhalten ließe",
            ),
        }
    }
}

fn form(what: &'static str) -> &'static str {
    match what {
        "JSON schema" => "das JSON-Schema",
        "regular expression" => "der reguläre Ausdruck",
        "grammar" => "die Grammatik",
        other => other,
    }
}

impl German for candor_engine::NoEmbedding {
    fn german(&self) -> String {
        match self {
            Self::Pooling { found } => format!(
                "die Art, wie dieses Modell aus einem Text einen Vektor macht (pooling type \
                 {found}), kann diese Version nicht"
            ),
        }
    }
}

/// Why a turn failed.
pub(crate) fn turn_code(code: TurnCode) -> &'static str {
    match code {
        TurnCode::NoModel => "kein Modell ist geladen",
        TurnCode::ModelChanged => "inzwischen wurde ein anderes Modell geladen",
        TurnCode::Unloaded => "das Modell wurde entladen",
        TurnCode::Busy => "die Engine hat zu viel zu tun",
        TurnCode::Closed => "die Engine ist beendet",
        TurnCode::NotFinite => "die Berechnung ergab einen Wert, der keine Zahl ist",
        TurnCode::NotOffered => "was dieses Modell berechnet, gibt keine Vektoren von Texten",
        TurnCode::Stuck => "die Antwort konnte nicht so weitergehen, wie sie muss",
        TurnCode::NothingAllowed => "was verlangt ist, verbietet jedes Token",
        TurnCode::DeviceLost => "das Gerät hat aufgehört zu arbeiten",
        TurnCode::DeviceRejected => "das Gerät rechnet etwas anderes, als es soll",
        TurnCode::DeviceNotJudged => "das Gerät ließ sich nicht prüfen",
        TurnCode::Broken => "die Berechnung ist zusammengebrochen",
        TurnCode::Internal => "die Berechnung hat einen Auftrag dieses Programms abgelehnt",
    }
}
