//! Architectures, and what backends say of a model.

use candor_arch::{ArchError, Problem};
use candor_backend::{LoadError, OpenError, Unsupported};
use candor_modelfile::Purpose;

use super::{German, bounds, first};

impl German for ArchError {
    fn german(&self) -> String {
        match self {
            Self::Unknown { name } => {
                format!("die Architektur {name:?} kennt diese Version nicht")
            }
            Self::NotChat { purpose } => purpose.german(),
            Self::Unsupported { key, found } => {
                format!("{key} ist {found}, das kann diese Version nicht")
            }
            Self::Metadata(error) => error.german(),
            Self::OutOfBounds {
                key,
                expected,
                found,
            } => format!("{key} ist {found}, erwartet wird {}", bounds(expected)),
            Self::NoEmbedding => {
                String::from("der Tensor token_embd.weight fehlt oder ist keine Matrix")
            }
        }
    }
}

impl German for Purpose {
    fn german(&self) -> String {
        String::from(match self {
            Self::Adapter => {
                "das ist ein Adapter, der ein anderes Modell verändert, und kein Modell zum Chatten"
            }
            Self::Embedding => {
                "das ist ein Embedding-Modell, dessen Ergebnisse Vektoren oder Wertungen sind, und \
                 kein Modell zum Chatten"
            }
            Self::Projector => {
                "das ist der Teil eines Modells, der Bilder oder Ton liest, und kein Modell zum \
                 Chatten"
            }
            Self::Importance => {
                "das sind Messungen zur Herstellung anderer Dateien und kein Modell zum Chatten"
            }
        })
    }
}

impl German for Problem {
    fn german(&self) -> String {
        match self {
            Self::Missing {
                name,
                perhaps: None,
            } => format!("der Tensor {name} fehlt"),
            Self::Missing {
                name,
                perhaps: Some(other),
            } => format!(
                "der Tensor {name} fehlt (die Datei hat {other} von derselben Form), das kann \
                 diese Version nicht"
            ),
            Self::Experts { name, found } => format!(
                "der Tensor {name} fehlt, denn die Datei hat dort Experten ({found}): Mit ihnen \
                 kann diese Version die Architektur nicht"
            ),
            Self::Unused { name } => format!(
                "die Datei hat den Tensor {name}, der die Ergebnisse verändert und den diese \
                 Version nicht kennt"
            ),
            Self::Shape {
                name,
                expected,
                found,
            } => format!(
                "der Tensor {name} hat die Form {}, erwartet wird {}",
                shape(found),
                shape(expected)
            ),
            Self::Type {
                name,
                expected,
                found,
            } => format!(
                "der Tensor {name} ist als {found} gespeichert, erwartet wird {}",
                bounds(expected)
            ),
        }
    }
}

fn shape(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(" × ")
}

impl German for Unsupported {
    fn german(&self) -> String {
        match self {
            Self::Op("attention with heads of this size") => {
                String::from("die Operation Attention mit Köpfen dieser Größe")
            }
            Self::Op(name) => format!("die Operation {name}"),
            Self::Type(name) => format!("Gewichte vom Typ {name}"),
            Self::State(name) => format!("Zustand der Art {name}"),
            Self::Option(name) => String::from(option(name)),
        }
    }
}

/// What a session is asked for.
pub(crate) fn option(name: &'static str) -> &'static str {
    match name {
        "float32 arithmetic on the GPU" => "Rechnung mit float32 auf der GPU",
        "8-bit keys and values on the GPU" => "Schlüssel und Werte mit 8 Bit auf der GPU",
        "float32 keys and values on the GPU" => "Schlüssel und Werte in float32 auf der GPU",
        "the context length" => "die Länge des Kontexts",
        "the number of slots" => "die Zahl der Plätze",
        "the tokens of the state" => "die Zahl der Tokens im Zustand",
        other => other,
    }
}

impl German for OpenError {
    fn german(&self) -> String {
        match self {
            Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => format!(
                "der Kontext braucht {needed_bytes} Byte Speicher, frei sind {available_bytes}"
            ),
            Self::Option {
                what,
                found,
                min,
                max,
            } => format!("{} ist {found}; möglich ist {min} bis {max}", option(what)),
            Self::Unsupported(missing) => format!(
                "diese Berechnung kann es nicht: {}",
                first(missing, "kein Grund genannt")
            ),
            Self::Device { reason } => format!("das Gerät arbeitet nicht ({reason})"),
        }
    }
}

impl German for LoadError {
    fn german(&self) -> String {
        match self {
            Self::Stopped => String::from("das Laden wurde angehalten"),
            Self::Problems(problems) => format!(
                "die Datei passt nicht zu ihrer Architektur: {}",
                first(problems, "kein Grund genannt")
            ),
            Self::Unsupported(missing) => format!(
                "diese Berechnung kann das Modell nicht: {}",
                first(missing, "kein Grund genannt")
            ),
            Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => format!(
                "das Modell braucht {needed_bytes} Byte Speicher, frei sind {available_bytes}"
            ),
            Self::Device { reason } => format!("das Gerät arbeitet nicht ({reason})"),
        }
    }
}
