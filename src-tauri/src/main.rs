//! The window of Candor: a thin shell around `candor-app`.
//!
//! It turns the window's calls into calls of the app, and the app's news into messages to the
//! window. It deliberately does not decide anything about models or conversations, and nothing else
//! in the workspace knows Tauri. As a composition root it reads the command line, the environment and the clock.
//! Start reading at `commands.rs`.

#![deny(unsafe_code)]
// A person who starts it in a terminal reads the answers to `--help` and `--version` there.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod graphics;
mod links;
mod panic_log;
mod picker;
mod surroundings;
mod window;

use std::process::ExitCode;

use arguments::{Task, Wishes};

fn main() -> ExitCode {
    match arguments::read(std::env::args_os().skip(1)) {
        Task::Window(wishes) => show(wishes),
        Task::CudaProbeChild => ExitCode::SUCCESS,
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

fn show(wishes: Wishes) -> ExitCode {
    if let Some(switch) = graphics::choose(surroundings::machine(), wishes.rendering) {
        // SAFETY: no other thread has been started yet, so nobody reads the environment now.
        #[allow(unsafe_code)]
        unsafe {
            std::env::set_var(switch.name, "1");
        }
    }
    let built = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|_, _, _| {}))
        .setup(|app| window::open(app.handle()).map(drop).map_err(Into::into))
        .run(tauri::generate_context!());
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The window could not be opened: {error}");
            ExitCode::FAILURE
        }
    }
}
