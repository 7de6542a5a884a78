//! What a test of the window needs, and how it says that it lacks it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use crate::window::Window;

/// There is one screen and one keyboard focus: the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The program under test, the driver, the folder with real models, and the test's turn.
pub struct Requirements {
    /// The program under test.
    pub app: PathBuf,
    models: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// Real models to test with; tiny ones are made on the spot.
#[derive(Clone, Copy, Debug)]
pub enum Model {
    /// SmolLM2, 98 MB.
    SmolLm2,
}

impl Requirements {
    /// Finds them and waits for the test's turn, or says for lack of which the test did not run.
    /// A test that failed does not stop the others.
    pub fn find(test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("the workspace's folder");
        let folder = |name: &str, usual: &str| {
            env::var_os(name).map_or_else(|| root.join(usual), PathBuf::from)
        };
        let found = Self {
            app: folder("CANDOR_APP", "target/debug/candor-desktop"),
            models: folder("CANDOR_TEST_MODELS", "target/models"),
            _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let missing = if !found.app.is_file() {
            "the program is not built: cargo build --package candor-desktop"
        } else if env::var_os("DISPLAY").is_none() && env::var_os("WAYLAND_DISPLAY").is_none() {
            "there is no screen: cargo xtask test window brings one"
        } else if !is_on_path("WebKitWebDriver") {
            "WebKitWebDriver is missing: the package webkit2gtk-driver has it"
        } else {
            return Some(found);
        };
        eprintln!("NOT RUN: {test}: {missing}");
        None
    }

    /// The same with the file of a model.
    pub fn with(model: Model, test: &str) -> Option<(Self, PathBuf)> {
        let found = Self::find(test)?;
        let path = found.model(model, test)?;
        Some((found, path))
    }

    /// The file of a model, or a word that the test did not run for lack of it.
    fn model(&self, model: Model, test: &str) -> Option<PathBuf> {
        let path = match model {
            Model::SmolLm2 => self.models.join("smollm2-135m-instruct-q4_1.gguf"),
        };
        if path.is_file() {
            return Some(path);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        eprintln!(
            "NOT RUN: {test}: the model {name} is missing: cargo xtask test setup fetches it"
        );
        None
    }

    /// A small disk with nothing on it but the test's home, for which `TMPDIR` has to be on it as
    /// well; or a word that the test did not run for lack of it.
    pub fn small_disk(test: &str) -> Option<PathBuf> {
        let disk = env::var_os("CANDOR_SMALL_DISK").map(PathBuf::from);
        if disk.is_none() {
            eprintln!("NOT RUN: {test}: cargo xtask soak full-disk makes the small disk for it");
        }
        disk
    }

    /// How often a test repeats itself: as the environment asks, or as usual.
    pub fn repeats(&self, variable: &str, usual: usize) -> usize {
        env::var(variable)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(usual)
    }

    /// Keeps a picture of the window, in a run that wants pictures.
    ///
    /// # Errors
    /// If it cannot be taken or written.
    pub fn picture(&self, window: &Window, name: &str) -> Result<()> {
        match env::var_os("CANDOR_SCREENSHOTS") {
            Some(folder) => window.picture(&PathBuf::from(folder).join(format!("{name}.png"))),
            None => Ok(()),
        }
    }
}

fn is_on_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
