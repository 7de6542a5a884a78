//! The dialog in which a person picks a model file.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use tauri::WebviewWindow;

/// The file that was picked, when it has been; none if the person thought better of it.
pub(crate) type Picked = Pin<Box<dyn Future<Output = Option<PathBuf>> + Send>>;

/// Lets a person pick a model file.
pub(crate) trait FilePicker: Send + Sync {
    /// Asks; the window stays usable meanwhile.
    fn pick(&self, parent: &WebviewWindow) -> Picked;

    /// Asks for a folder.
    fn pick_folder(&self, parent: &WebviewWindow) -> Picked;
}

/// GTK's own dialog: it needs neither a portal nor a session bus, which bare window managers
/// often lack.
pub(crate) struct NativePicker;

impl FilePicker for NativePicker {
    fn pick(&self, parent: &WebviewWindow) -> Picked {
        let asked = rfd::AsyncFileDialog::new()
            .set_parent(parent)
            .set_title("Open a model file")
            .add_filter("Model files", &["gguf", "GGUF", "apr", "APR"])
            // A file that has lost its extension is still a model: the content decides.
            .add_filter("All files", &["*"])
            .pick_file();
        Box::pin(async move { asked.await.map(|file| file.path().to_owned()) })
    }

    fn pick_folder(&self, parent: &WebviewWindow) -> Picked {
        let asked = rfd::AsyncFileDialog::new()
            .set_parent(parent)
            .set_title("Choose a folder with models")
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
    fn pick(&self, _parent: &WebviewWindow) -> Picked {
        use std::os::unix::ffi::OsStringExt;
        let read = std::fs::read(&self.answer)
            .ok()
            .filter(|bytes| !bytes.is_empty());
        let path = read.map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)));
        Box::pin(async move { path })
    }

    fn pick_folder(&self, parent: &WebviewWindow) -> Picked {
        self.pick(parent)
    }
}
