//! The window of Candor: a thin shell around `candor-app`.
//!
//! It turns the window's calls into calls of the app, and the app's news into messages to the
//! window. It deliberately does not decide anything about models or conversations, and nothing
//! else in the workspace knows Tauri. As a composition root it reads the command line, the
//! environment and the clock. Start reading in `commands/`.

#![deny(unsafe_code)]
// A person who starts it in a terminal reads the answers to `--help` and `--version` there.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod bridge;
mod commands;
mod graphics;
mod links;
mod panic_log;
mod picker;
mod root;
mod signals;
mod surroundings;
mod watchdog;
mod window;

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use arguments::{Rendering, Task, Wishes};
use candor_app::AppPaths;
use candor_server::Switch;
use picker::{FilePicker, NativePicker};
use root::Opened;
use tauri::plugin::TauriPlugin;
use tauri::{AppHandle, DragDropEvent, Emitter, Manager, RunEvent, WindowEvent};
use watchdog::{Drawing, Watchdog};

fn main() -> ExitCode {
    match arguments::read(std::env::args_os().skip(1)) {
        Task::Window(wishes) => match show(wishes) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("The window could not be opened: {error}");
                ExitCode::FAILURE
            }
        },
        Task::CudaProbeChild => {
            println!("{}", candor_app::probe_child());
            ExitCode::SUCCESS
        }
        Task::Help => {
            println!("{}", arguments::USAGE);
            ExitCode::SUCCESS
        }
        Task::Version => {
            println!("candor-desktop {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Task::Misunderstood(sentence) => {
            eprintln!("{sentence}\n\n{}", arguments::USAGE);
            ExitCode::from(2)
        }
    }
}

/// Shows the window until it is closed.
fn show(wishes: Wishes) -> Result<(), Box<dyn Error>> {
    let display = surroundings::display().ok_or(
        "there is no display here. Start it in a desktop session, or say one with DISPLAY=:0",
    )?;
    let machine = surroundings::machine();
    let drawing = Drawing {
        wish: wishes.rendering,
        switch: graphics::choose(machine, wishes.rendering),
        user_has_chosen: machine.user_has_chosen,
    };
    if let Some(switch) = drawing.switch {
        eprintln!("Drawing with {}=1: {}", switch.name, switch.why);
        // SAFETY: no other thread has been started yet, so nobody reads the environment now.
        #[allow(unsafe_code)]
        unsafe {
            std::env::set_var(switch.name, "1");
        };
    }
    start_again_in_ascii(&wishes)?;
    let data_dir = root::data_dir(wishes.data_dir);
    let paths = root::paths(data_dir.clone())?;
    panic_log::install(paths.logs_dir());
    let broken = format!(
        "is the display {} there? {} says what happened",
        display.display(),
        panic_log::file(&paths.logs_dir()).display()
    );
    let mut context = tauri::generate_context!();
    // GTK ends a second program of the same name, also one with another folder.
    context.config_mut().app.enable_gtk_app_id &= data_dir.is_none();
    let builder = tauri::Builder::default()
        // First, so that a second start ends before it opens anything.
        .plugin(single_instance(data_dir.as_deref()))
        .manage(picker())
        .manage(Watchdog::new(drawing))
        .invoke_handler(commands::handler())
        .setup(move |app| Ok(set_up(app.handle(), paths, wishes.model.as_deref())?));
    // GTK gives up where the display does not answer. Nothing of what it left is used again.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        builder.build(context).map(|app| app.run(when_it_happens))
    }));
    Ok(ran.map_err(|_| broken)??)
}

/// Opens what the user has kept, then the window on it.
fn set_up(app: &AppHandle, paths: AppPaths, model: Option<&Path>) -> tauri::Result<()> {
    let opened = Opened::open(paths);
    if let Ok(inner) = opened.app() {
        inner.listen(bridge::listener(app.clone()));
    }
    match model {
        Some(path) => opened.open_model(path),
        None => opened.open_last_model(),
    }
    let server = root::server();
    if let Ok(inner) = opened.app() {
        // How it is stands in the settings, and a port that is taken keeps nobody from chatting.
        server.set(&inner.settings().server, inner);
    }
    app.manage(server);
    app.manage(opened);
    if let Err(error) = signals::listen(app.clone()) {
        eprintln!("Signals cannot be listened for: {error}");
    }
    window::open(app)?;
    watchdog::watch(app.clone());
    Ok(())
}

/// What concerns the program as a whole.
fn when_it_happens(app: &AppHandle, event: RunEvent) {
    match event {
        RunEvent::WindowEvent {
            event: WindowEvent::DragDrop(DragDropEvent::Drop { paths, .. }),
            ..
        } => {
            take_in(app, paths);
        }
        RunEvent::WindowEvent {
            event: WindowEvent::CloseRequested { api, .. },
            ..
        } => {
            api.prevent_close();
            window::close(app);
        }
        // The window is gone already; nobody waits in front of it.
        RunEvent::Exit => {
            app.state::<Switch>().stop();
            app.state::<Opened>().close();
        }
        _ => {}
    }
}

/// Hands a second start's file to the first one's window.
fn single_instance(data_dir: Option<&Path>) -> TauriPlugin<tauri::Wry> {
    let plugin = tauri_plugin_single_instance::Builder::new().callback(|app, words, folder| {
        if let Some(window) = app.get_webview_window(window::LABEL) {
            // Whether a window may come to the front is the desktop's decision.
            let _ = window.unminimize().and_then(|()| window.set_focus());
        }
        if let Some(path) = arguments::handed_over(&words, &folder) {
            open_model(app, path);
        }
    });
    // Another folder is another library, and deserves a window of its own.
    match data_dir {
        Some(folder) => plugin
            .dbus_id(format!("org.candor.Candor.At{}", mark_of(folder)))
            .build(),
        None => plugin.build(),
    }
}

/// Takes dropped files: of models one can be open, so the first is; every text goes with the
/// message that is being written.
fn take_in(app: &AppHandle, paths: Vec<PathBuf>) {
    let (models, texts): (Vec<PathBuf>, Vec<PathBuf>) = paths
        .into_iter()
        .partition(|path| candor_app::looks_like_model(path));
    if let Some(model) = models.into_iter().next() {
        open_model(app, model);
    }
    let app = app.clone();
    // In their order, so on one thread.
    std::thread::spawn(move || {
        let opened = app.state::<Opened>();
        for path in texts {
            let added = opened.answer(|app| app.add_file_card(&path));
            // It fails only while the windows are being closed.
            let _ = match added {
                Ok(card) => app.emit("card", card),
                Err(error) => app.emit("card-refused", error),
            };
        }
    });
}

/// Looks at the disk, so not on the thread that draws.
fn open_model(app: &AppHandle, path: PathBuf) {
    let app = app.clone();
    std::thread::spawn(move || app.state::<Opened>().open_model(&path));
}

/// A short name for a folder, the same in every run of this build.
fn mark_of(folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Replaces this process by one whose model is named by an address in ASCII, if its name is no
/// text: only so can a second start hand it to the first.
fn start_again_in_ascii(wishes: &Wishes) -> std::io::Result<()> {
    // The process that takes this one's place has only words that are text.
    if std::env::args_os().all(|word| word.to_str().is_some()) {
        return Ok(());
    }
    let folder = surroundings::current_folder();
    let model = wishes
        .model
        .as_deref()
        .and_then(|model| arguments::in_ascii(model, &folder));
    let Some(model) = model else { return Ok(()) };
    let mut command = Command::new(surroundings::own_program());
    if let Some(folder) = &wishes.data_dir {
        command.arg("--data-dir").arg(folder);
    }
    match wishes.rendering {
        Rendering::Usual => {}
        Rendering::Safe => {
            command.arg("--safe-rendering");
        }
        Rendering::AfterSilence => {
            command.arg(arguments::AFTER_SILENCE);
        }
    }
    become_it(command.arg(model))
}

/// Puts another program in this one's place; returns only if that fails.
#[cfg(unix)]
fn become_it(command: &mut Command) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs another program instead of this one; returns only if it cannot be started.
#[cfg(not(unix))]
fn become_it(command: &mut Command) -> std::io::Result<()> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(1))
}

fn picker() -> Box<dyn FilePicker> {
    #[cfg(any(debug_assertions, feature = "test-hooks"))]
    if let Some(answer) = surroundings::variable("CANDOR_TEST_PICK") {
        return Box::new(picker::ScriptedPicker {
            answer: answer.into(),
        });
    }
    Box::new(NativePicker)
}
