//! The dialog in which a person picks a file.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use candor_app::{Phrase, Tongue};
use tauri::WebviewWindow;

/// The file that was picked, when it has been; none if the person thought better of it.
pub(crate) type Picked = Pin<Box<dyn Future<Output = Option<PathBuf>> + Send>>;

/// The name that is proposed for a report.
const REPORT: &str = "candor-report.txt";

/// What is to be picked.
pub(crate) enum Wanted {
    /// A model file.
    Model,
    /// A text that goes with a message.
    TextFile,
    /// Conversations to take in.
    Conversations,
    /// A place for a new file of this name.
    NewFile(String),
    /// A place for the report on the program and the machine.
    Report,
}

impl Wanted {
    /// What the system's dialog is called.
    fn title(&self) -> Phrase {
        match self {
            Self::Model => Phrase::new("Open a model file", "Modelldatei öffnen"),
            Self::TextFile => Phrase::new(
                "Add a text file to the message",
                "Der Nachricht eine Textdatei hinzufügen",
            ),
            Self::Conversations => Phrase::new("Import conversations", "Gespräche importieren"),
            Self::NewFile(_) => Phrase::new("Export conversations", "Gespräche exportieren"),
            Self::Report => Phrase::new("Save the report", "Bericht speichern"),
        }
    }
}

/// Lets a person pick a file.
pub(crate) trait FilePicker: Send + Sync {
    /// Asks; the window stays usable meanwhile.
    fn pick(&self, parent: &WebviewWindow, wanted: Wanted, tongue: Tongue) -> Picked;

    /// Asks for a folder.
    fn pick_folder(&self, parent: &WebviewWindow, tongue: Tongue) -> Picked;
}

/// GTK's own dialog: it needs neither a portal nor a session bus, which bare window managers
/// often lack.
pub(crate) struct NativePicker;

impl FilePicker for NativePicker {
    fn pick(&self, parent: &WebviewWindow, wanted: Wanted, tongue: Tongue) -> Picked {
        let dialog = rfd::AsyncFileDialog::new()
            .set_parent(parent)
            .set_title(wanted.title().in_tongue(tongue));
        let all = Phrase::new("All files", "Alle Dateien").to(tongue);
        let dialog = match &wanted {
            Wanted::Model => dialog
                .add_filter(
                    Phrase::new("Model files", "Modelldateien").in_tongue(tongue),
                    &["gguf", "GGUF", "apr", "APR"],
                )
                // A file that has lost its extension is still a model: the content decides.
                .add_filter(all, &["*"]),
            Wanted::TextFile => dialog,
            Wanted::Conversations => dialog
                .add_filter(
                    Phrase::new("Exported conversations", "Exportierte Gespräche")
                        .in_tongue(tongue),
                    &["json", "JSON"],
                )
                .add_filter(all, &["*"]),
            Wanted::NewFile(name) => dialog.set_file_name(name),
            Wanted::Report => dialog.set_file_name(REPORT),
        };
        Box::pin(async move {
            let file = match wanted {
                Wanted::NewFile(_) | Wanted::Report => dialog.save_file().await,
                Wanted::Model | Wanted::TextFile | Wanted::Conversations => {
                    dialog.pick_file().await
                }
            };
            file.map(|file| file.path().to_owned())
        })
    }

    fn pick_folder(&self, parent: &WebviewWindow, tongue: Tongue) -> Picked {
        let title = Phrase::new(
            "Choose a folder with models",
            "Einen Ordner mit Modellen wählen",
        );
        let asked = rfd::AsyncFileDialog::new()
            .set_parent(parent)
            .set_title(title.in_tongue(tongue))
            .pick_folder();
        Box::pin(async move { asked.await.map(|folder| folder.path().to_owned()) })
    }
}

/// Answers in a person's place, for the tests of the whole window.
#[cfg(any(debug_assertions, feature = "test-hooks"))]
pub(crate) struct ScriptedPicker {
    /// A file that holds the path to answer with; without it the answer is "cancelled".
    pub(crate) answer: PathBuf,
}

#[cfg(any(debug_assertions, feature = "test-hooks"))]
impl FilePicker for ScriptedPicker {
    fn pick(&self, _parent: &WebviewWindow, _wanted: Wanted, _tongue: Tongue) -> Picked {
        use std::os::unix::ffi::OsStringExt;
        let read = std::fs::read(&self.answer)
            .ok()
            .filter(|bytes| !bytes.is_empty());
        let path = read.map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)));
        Box::pin(async move { path })
    }

    fn pick_folder(&self, parent: &WebviewWindow, tongue: Tongue) -> Picked {
        self.pick(parent, Wanted::TextFile, tongue)
    }
}
