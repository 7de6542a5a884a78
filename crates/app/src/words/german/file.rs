//! Model files.

use std::error::Error as _;

use candor_modelfile::shown::{Shown, size, sizes};
use candor_modelfile::{
    AprError, AssumedError, LooksLike, MetadataError, Needed, Note, OpenError, ParseError,
    PartsDifference, Refusal, ValueKind,
};

use super::{German, bounds, capital, number};
use crate::words::Phrase;

impl German for OpenError {
    fn german(&self) -> String {
        format!("{}: {}", self.file_name(), capital(&self.reason.german()))
    }
}

impl German for Refusal {
    fn german(&self) -> String {
        match self {
            Self::NotFound => String::from("diese Datei gibt es nicht"),
            Self::IsDirectory => String::from("das ist ein Ordner und keine Modelldatei"),
            Self::NotAFile => String::from("das ist keine gewöhnliche Datei"),
            Self::NoPermission => String::from("es fehlt das Recht, sie zu lesen"),
            Self::Empty => String::from(
                "die Datei ist leer (0 Byte), wahrscheinlich ein unvollständiger Download",
            ),
            Self::Shrunk { found, needed } => {
                let (found, needed) = sizes(*found, *needed);
                format!(
                    "die Datei wurde kürzer, während sie geöffnet war: Sie hat {} von {}",
                    number(found),
                    number(needed)
                )
            }
            Self::PartMissing { part, parts } => format!(
                "dieser Teil ({part} von {parts}) des geteilten Modells fehlt; alle {parts} Teile \
                 müssen in einem Ordner liegen"
            ),
            Self::PartsDiffer { part, why } => format!(
                "die Teile dieses geteilten Modells gehören nicht zusammen: `{}`, {}",
                Shown(part),
                why.german()
            ),
            Self::PartName { part, parts } => format!(
                "das ist Teil {part} von {parts} eines geteilten Modells, aber sein Name endet \
                 nicht auf `-{part:05}-of-{parts:05}.gguf`, und so sind die anderen Teile nicht zu \
                 finden"
            ),
            Self::Piece { command } => format!(
                "das ist ein Stück einer zerschnittenen Datei; füge die Stücke in ihrer \
                 Reihenfolge zusammen, zum Beispiel mit `{command}`"
            ),
            Self::Io(source) => format!("die Datei ließ sich nicht lesen: {source}"),
            Self::Assumed(error) => error.german(),
            Self::Parse(error) => error.german(),
        }
    }
}

impl German for PartsDifference {
    fn german(&self) -> String {
        match self {
            Self::Whole => String::from("das ist ein ganzes Modell"),
            Self::Number { part, parts } => {
                format!("nach eigener Angabe Teil {part} von {parts}")
            }
            Self::Tensors => String::from("mit einer anderen Zahl von Tensoren"),
            Self::Entry { key } => format!("mit einem anderen Eintrag `{}`", Shown(key)),
            Self::Count { found, expected } => {
                format!("zusammen sind es {found} Tensoren statt {expected}")
            }
            Self::Repeats { tensor } => format!("der Tensor `{}` kommt noch einmal", Shown(tensor)),
        }
    }
}

impl German for ParseError {
    fn german(&self) -> String {
        match self {
            Self::NotAModel { looks_like } => format!(
                "das ist keine Modelldatei im Format GGUF oder APR: {}",
                capital(&looks_like.german())
            ),
            Self::Truncated { found, needed } => truncated(*found, *needed),
            Self::BigEndian => String::from(
                "das ist eine GGUF-Datei in Big-Endian, für eine andere Art von Rechner; gelesen \
                 wird nur Little-Endian",
            ),
            Self::UnsupportedVersion { found } => {
                format!("das ist GGUF in Version {found}; gelesen werden die Versionen 2 und 3")
            }
            Self::Split { part, parts } => {
                format!("das ist nur Teil {part} von {parts} eines geteilten Modells")
            }
            Self::Apr(error) => error.german(),
            Self::Metadata(error) => {
                format!(
                    "ihre Beschreibung ist nicht zu gebrauchen: {}",
                    capital(&error.german())
                )
            }
            Self::NestedArray { key } => format!(
                "der Eintrag `{}` ist eine Liste von Listen, und die wird nicht gelesen",
                Shown(key)
            ),
            Self::UnsupportedType { tensor, id, name } => format!(
                "der Tensor `{}` ist als {} gespeichert, das kann diese Version nicht",
                Shown(tensor),
                match name {
                    Some(name) => format!("{name} (Typ {id})"),
                    None => format!("unbekannter Typ ({id})"),
                }
            ),
            damaged => format!("die Datei ist beschädigt: {}", capital(&damage(damaged))),
        }
    }
}

/// What is damaged.
fn damage(error: &ParseError) -> String {
    match error {
        ParseError::LimitExceeded { what, found, limit } => format!(
            "sie nennt {found} {}, mehr als die Grenze von {limit}",
            counted(what)
        ),
        ParseError::UnknownValueType { key, found } => format!(
            "der Eintrag `{}` hat den unbekannten Werttyp {found}",
            Shown(key)
        ),
        ParseError::NotText { what, at } => {
            format!("{} ist kein gültiger Text (bei Byte {at})", named(what))
        }
        ParseError::DuplicateKey { key } => {
            format!("den Eintrag `{}` gibt es zweimal", Shown(key))
        }
        ParseError::DuplicateTensor { tensor } => {
            format!("den Tensor `{}` gibt es zweimal", Shown(tensor))
        }
        ParseError::BadAlignment { found } => {
            format!("sie nennt eine Ausrichtung von {found}, das ist keine sinnvolle Zweierpotenz")
        }
        ParseError::BadShape { tensor, dims } => {
            format!("der Tensor `{}` hat die Form {dims:?}", Shown(tensor))
        }
        ParseError::PartialBlock {
            tensor,
            quant,
            row,
            block_elems,
        } => format!(
            "die Zeilen des Tensors `{}` haben {row} Werte, das ist kein Vielfaches der \
             {block_elems} eines {quant}-Blocks",
            Shown(tensor)
        ),
        ParseError::Misaligned {
            tensor,
            offset,
            alignment,
        } => format!(
            "der Tensor `{}` beginnt bei {offset}, neben der Ausrichtung von {alignment}",
            Shown(tensor)
        ),
        ParseError::Overlap { first, second } => format!(
            "die Tensoren `{}` und `{}` überschneiden sich",
            Shown(first),
            Shown(second)
        ),
        ParseError::OutOfRange { tensor, end, found } => format!(
            "der Tensor `{}` würde bei Byte {end} enden, hinter dem Ende der Datei ({})",
            Shown(tensor),
            number(size(*found))
        ),
        ParseError::NotAModel { .. }
        | ParseError::Truncated { .. }
        | ParseError::BigEndian
        | ParseError::UnsupportedVersion { .. }
        | ParseError::Split { .. }
        | ParseError::Apr(_)
        | ParseError::Metadata(_)
        | ParseError::NestedArray { .. }
        | ParseError::UnsupportedType { .. } => error.german(),
    }
}

/// What is counted, in the plural.
fn counted(what: &'static str) -> &'static str {
    match what {
        "parts" => "Teile",
        "tensors" => "Tensoren",
        "tensors in this index" => "Tensoren in diesem Verzeichnis",
        "metadata entries" => "Einträge in den Metadaten",
        "dimensions of a tensor" => "Dimensionen eines Tensors",
        "elements in a list" => "Elemente einer Liste",
        "bytes of description" => "Byte Beschreibung",
        "bytes of memory for lists of short values" => "Byte Speicher für Listen kurzer Werte",
        "bytes in a metadata key" => "Byte eines Schlüssels",
        "bytes in a tensor name" => "Byte im Namen eines Tensors",
        "bytes in a text" => "Byte eines Textes",
        other => other,
    }
}

/// What bytes belong to.
fn named(what: &'static str) -> &'static str {
    match what {
        "a metadata key" => "ein Schlüssel der Metadaten",
        "a tensor name" => "der Name eines Tensors",
        "a metadata text" => "ein Text der Metadaten",
        other => other,
    }
}

fn truncated(found: u64, needed: Needed) -> String {
    let (least, needed) = match needed {
        Needed::Exactly(bytes) => ("", bytes),
        Needed::AtLeast(bytes) => ("mindestens ", bytes),
    };
    let (has, of) = sizes(found, needed);
    format!(
        "die Datei ist unvollständig: Sie hat {} von {least}{}, wahrscheinlich ein abgebrochener \
         Download",
        number(has),
        number(of)
    )
}

impl German for LooksLike {
    fn german(&self) -> String {
        String::from(match self {
            Self::Apr => "sie beginnt wie eine APR-Datei, aber in keiner bekannten Version",
            Self::SafeTensors => "es ist ein safetensors-Modell",
            Self::PyTorch => "es ist ein PyTorch-Checkpoint",
            Self::OldGgml => "es ist ein Modell in einem GGML-Format aus der Zeit vor GGUF",
            Self::GitLfsPointer => {
                "es ist ein Verweis von Git LFS, der die eigentliche Datei nur nennt"
            }
            Self::Html => "es ist eine Webseite (HTML)",
            Self::Xml => "es ist ein XML-Dokument",
            Self::Json => "es ist ein JSON-Dokument",
            Self::Zip => "es ist ein ZIP-Archiv",
            Self::Gzip => "es ist ein gzip-Archiv",
            Self::Png => "es ist ein PNG-Bild",
            Self::Jpeg => "es ist ein JPEG-Bild",
            Self::Pdf => "es ist ein PDF-Dokument",
            Self::Elf => "es ist ein Programm",
            Self::Zeros => "sie beginnt nur mit Nullen, wie ein abgebrochener Download",
            Self::Text => "es ist eine einfache Textdatei",
            Self::Unknown([a, b, c, d]) => {
                return format!("sie beginnt mit den Bytes {a:02x} {b:02x} {c:02x} {d:02x}");
            }
        })
    }
}

impl German for AprError {
    fn german(&self) -> String {
        match self {
            Self::Version { found } => {
                format!("das ist eine APR-Datei in Version {found}; gelesen wird Version 2")
            }
            Self::Compressed => {
                String::from("diese APR-Datei ist komprimiert, das wird nicht gelesen")
            }
            Self::Encrypted => String::from("diese APR-Datei ist verschlüsselt"),
            Self::ColumnMajor => String::from(
                "die Matrizen dieser APR-Datei sind spaltenweise gespeichert, das wird nicht \
                 gelesen",
            ),
            Self::HeaderChecksum => String::from(
                "die Datei ist beschädigt: Ihr Kopf hat nicht die Prüfsumme, die er nennt",
            ),
            Self::Sections => String::from(
                "die Datei ist beschädigt: Die Teile, die ihr Kopf nennt, passen nicht zusammen",
            ),
            Self::Json(error) => {
                let cause = error.source().map(ToString::to_string);
                format!(
                    "die Datei ist beschädigt: Ihre Metadaten sind kein JSON-Objekt ({})",
                    cause.unwrap_or_default()
                )
            }
            Self::Storage {
                tensor,
                code,
                size,
                elems,
            } => format!(
                "der Tensor `{}` hat {size} Byte für {elems} Werte, das passt zu keinem \
                 Speichertyp mit dem Code {code}, den die Datei nennt",
                Shown(tensor)
            ),
            Self::Family { name } => format!(
                "es ist ein Modell der Familie {}, von der APR-Dateien nicht alles sagen, was \
                 nötig ist",
                Shown(name)
            ),
            Self::Missing { what } => {
                format!("die Datei sagt nichts über `{what}`, und nichts anderes in ihr verrät es")
            }
            Self::Shapes { what, stated } => {
                format!("nach der Datei ist `{what}` {stated}, das passt nicht zu ihren Tensoren")
            }
            Self::NotQwen2 => String::from(
                "die Datei nennt sich qwen2, aber ein qwen2 hat Biases an Q, K und V, und diese \
                 hat keine; auch ihren anderen Angaben ist nicht zu trauen",
            ),
            Self::Stamped => String::from(
                "der Konverter dieser Datei hat die Zahl der Köpfe und andere Zahlen \
                 hineingeschrieben, ohne sie zu kennen, und nichts in der Datei verrät die wahren",
            ),
            Self::LooseExperts { tensor } => format!(
                "die Experten von `{}` sind nicht alle da oder nicht alle gleich",
                Shown(tensor)
            ),
            Self::Halves { tensor } => format!(
                "die Zeilen des Tensors `{}` stehen in einer Reihenfolge, die nicht gelesen wird",
                Shown(tensor)
            ),
        }
    }
}

impl German for MetadataError {
    fn german(&self) -> String {
        match self {
            Self::Missing { key } => format!("der Eintrag `{}` fehlt", Shown(key)),
            Self::WrongKind {
                key,
                expected,
                found,
            } => format!(
                "der Eintrag `{}` ist {} statt {}",
                Shown(key),
                kind(*found),
                kind(*expected)
            ),
            Self::OutOfRange { key, found, limit } => format!(
                "der Eintrag `{}` ist {found}; nötig ist eine Zahl von 0 bis {limit}",
                Shown(key)
            ),
            Self::WrongLength {
                key,
                expected,
                found,
            } => format!(
                "der Eintrag `{}` hat {found} Elemente statt {expected}",
                Shown(key)
            ),
        }
    }
}

fn kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Integer => "eine ganze Zahl",
        ValueKind::Float => "eine Zahl",
        ValueKind::Bool => "wahr oder falsch",
        ValueKind::Text => "ein Text",
        ValueKind::Integers => "eine Liste ganzer Zahlen",
        ValueKind::Floats => "eine Liste von Zahlen",
        ValueKind::Bools => "eine Liste von wahr und falsch",
        ValueKind::Texts => "eine Liste von Texten",
    }
}

impl German for AssumedError {
    fn german(&self) -> String {
        match self {
            Self::Form { found } => format!("{found:?} hat nicht die Form KEY=VALUE"),
            Self::Key { found } => format!("{found:?} lässt sich nicht angeben"),
            Self::Stated { key } => {
                format!("{key} lässt sich für eine GGUF-Datei nicht angeben, sie sagt es selbst")
            }
            Self::Value {
                key,
                found,
                expected,
            } => format!(
                "{key} kann nicht {found:?} sein; nötig ist {}",
                bounds(expected)
            ),
        }
    }
}

/// Something doubtful or costly about a file.
pub(crate) fn note(note: &Note) -> Phrase {
    Phrase::of(note)
}

impl German for Note {
    fn german(&self) -> String {
        match self {
            Self::RopeType { stated } => format!(
                "der rope_type {stated} der Datei ist für ihre Tensoren falsch und wird nicht \
                 beachtet"
            ),
            Self::Family { stated, read_as } => format!(
                "die Datei sagt {}, aber ihre Tensoren sind die von {read_as}",
                Shown(stated)
            ),
            Self::Context { assumed } => format!(
                "die trainierte Länge des Kontexts steht nicht in der Datei; angenommen wird \
                 {assumed}"
            ),
            Self::Unpacked { tensors, bytes } => format!(
                "{tensors} Tensoren werden neu angeordnet und brauchen dafür {} Speicher",
                number(size(*bytes))
            ),
            Self::NoSplitRule => String::from(
                "die Datei nennt nicht die Regel, die Text in Wörter teilt, und kann so keinen \
                 Text lesen",
            ),
            Self::NoScores => String::from(
                "die Wertungen des Vokabulars stehen nicht in der Datei; es gilt die Reihenfolge \
                 der Tokens",
            ),
            Self::Stamped => String::from(
                "der Konverter dieser Datei hat Zahlen hineingeschrieben, ohne sie zu kennen; \
                 die du nicht angegeben hast, können falsch sein",
            ),
            Self::Told { key, value } => format!("{key} ist {value}, von dir angegeben"),
            Self::NoTokenizer => {
                String::from("es gibt kein Vokabular, und so lässt sich kein Text lesen")
            }
            Self::SidecarUnusable => String::from(
                "die tokenizer.json neben der Datei ist von keiner Art, die gelesen wird",
            ),
            Self::SidecarKind { found } => format!(
                "die tokenizer.json neben der Datei enthält ein {}-Vokabular, das wird nicht \
                 gelesen",
                Shown(found)
            ),
            Self::SidecarUnread { file, reason } => format!(
                "{} neben der Datei blieb unbeachtet ({})",
                Shown(file),
                Shown(reason)
            ),
        }
    }
}
