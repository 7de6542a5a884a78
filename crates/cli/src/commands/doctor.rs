//! `candor doctor`: the machine, the driver, the window's renderer, the folders.

use std::fs;
use std::path::{Path, PathBuf};

use candor_app::headless::{BackendWish, Choice, CudaDevice, Unavailable, size};
use candor_app::{AppPaths, PROBE_LIMIT, compose, diagnostics};
use serde_json::{Value, json};

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};
use crate::session;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Writes a report to pass on; names of people and folders are left out
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

/// Where Linux keeps the library that draws the window, on the systems that people have.
const WEBVIEW: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/libwebkit2gtk-4.1.so.0",
    "/usr/lib/aarch64-linux-gnu/libwebkit2gtk-4.1.so.0",
    "/usr/lib64/libwebkit2gtk-4.1.so.0",
    "/usr/lib/libwebkit2gtk-4.1.so.0",
];

/// One thing that was looked at.
struct Check {
    name: &'static str,
    /// `ok`, `note` (works, with a remark) or `problem`.
    state: &'static str,
    message: String,
}

impl Check {
    fn json(&self) -> Value {
        json!({ "name": self.name, "state": self.state, "message": self.message })
    }
}

pub(crate) fn run(args: &Args, common: &Common, output: &mut Output) -> Result<Exit, Failure> {
    let mut checks = vec![program(), processor(common), memory()];
    checks.extend(driver(common));
    checks.extend(verdicts(common));
    checks.push(renderer());
    checks.extend(folders(common));
    let rows: Vec<Value> = checks.iter().map(Check::json).collect();
    if let Some(path) = &args.bundle {
        write_bundle(path, &rows)?;
    }
    match output.form() {
        Form::Json => output.json(&json!({ "checks": rows, "bundle": args.bundle.is_some() }))?,
        Form::Text => {
            for Check {
                name,
                state,
                message,
            } in &checks
            {
                output.line(&format!("{state:8} {name:16} {message}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn program() -> Check {
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    Check {
        name: "program",
        state: "ok",
        message: format!("candor {version}, {os} {arch}"),
    }
}

fn processor(common: &Common) -> Check {
    let choice = compose::BackendChoice {
        threads: common.threads(),
        precision: common.precision(),
        card: None,
    };
    let backends = compose::backends()(&choice);
    match backends.last().map(|backend| backend.probe()) {
        Some(Ok(device)) => {
            let message = format!(
                "{} · {} · {} threads",
                device.name, device.isa, device.threads
            );
            Check {
                name: "processor",
                state: "ok",
                message,
            }
        }
        Some(Err(_)) | None => {
            let message = String::from("nothing can compute on this machine");
            Check {
                name: "processor",
                state: "problem",
                message,
            }
        }
    }
}

fn memory() -> Check {
    let (state, message) = match (environment::free_memory(), environment::total_memory()) {
        (Some(free), Some(total)) => ("ok", format!("{} free of {}", size(free), size(total))),
        _ => (
            "note",
            String::from("the system does not say how much memory there is"),
        ),
    };
    Check {
        name: "memory",
        state,
        message,
    }
}

fn driver(common: &Common) -> Vec<Check> {
    let check = |state, message| {
        vec![Check {
            name: "driver",
            state,
            message,
        }]
    };
    if common.wish() == Some(BackendWish::Cpu) {
        return check("note", String::from("not asked: the CPU was chosen"));
    }
    let command = match environment::probe_command() {
        Ok(command) => command,
        Err(error) => {
            return check(
                "problem",
                format!("the program does not find itself: {error}"),
            );
        }
    };
    match compose::find(&command, PROBE_LIMIT) {
        Ok(cards) => cards.iter().map(card).collect(),
        Err(why) => {
            let state = match &why {
                Unavailable::DriverTooOld { .. } | Unavailable::DriverBroken { .. } => "problem",
                _ => "note",
            };
            let choice = Choice {
                wish: common.wish().unwrap_or(BackendWish::Auto),
                card: Err(why),
            };
            check(state, choice.no_card().unwrap_or_default())
        }
    }
}

fn card(card: &CudaDevice) -> Check {
    let (free, total) = (size(card.free_bytes), size(card.total_bytes));
    let (major, minor) = card.capability;
    Check {
        name: "GPU",
        state: "ok",
        message: format!(
            "{}: {} · {free} free of {total} · compute capability {major}.{minor} · driver {}",
            card.ordinal,
            card.name,
            card.driver_branch(),
        ),
    }
}

/// What is kept of earlier checks of a card.
fn verdicts(common: &Common) -> Option<Check> {
    let kept = session::verdicts(common, &environment::clock())?.kept();
    let (state, mut message) = match kept.damaged.len() {
        0 => ("ok", format!("{} kept, {}", kept.whole, size(kept.bytes))),
        some => (
            "note",
            format!(
                "{} kept, {}; {some} cannot be used",
                kept.whole,
                size(kept.bytes)
            ),
        ),
    };
    if let Some(first) = kept.damaged.first() {
        message.push_str(&format!(": {first}"));
    }
    Some(Check {
        name: "verdicts",
        state,
        message,
    })
}

/// What the window would be drawn with. It is looked for, not tried: this program has no window.
fn renderer() -> Check {
    let name = "renderer";
    if !cfg!(target_os = "linux") {
        let message = String::from("the system's own web view");
        return Check {
            name,
            state: "ok",
            message,
        };
    }
    let library = WEBVIEW.iter().any(|path| Path::new(path).exists());
    let display = environment::display();
    let display = display.unwrap_or_else(|| String::from("no display here"));
    match library {
        true => Check {
            name,
            state: "ok",
            message: format!("WebKitGTK 4.1 found; {display}"),
        },
        false => {
            let message = "WebKitGTK 4.1 not found where systems usually keep it; only the window \
                           needs it";
            Check {
                name,
                state: "note",
                message: message.to_owned(),
            }
        }
    }
}

fn folders(common: &Common) -> Vec<Check> {
    let paths: AppPaths = match environment::paths(common.data_dir.clone()) {
        Ok(paths) => paths,
        Err(error) => {
            return vec![Check {
                name: "folders",
                state: "problem",
                message: error.to_string(),
            }];
        }
    };
    let models = paths.models_dir();
    let all = [
        ("data folder", &paths.data),
        ("models folder", &models),
        ("settings folder", &paths.config),
        ("cache folder", &paths.cache),
        ("state folder", &paths.state),
    ];
    all.map(|(name, path)| {
        let (state, message) = diagnostics::folder(path);
        let state = state.word();
        Check {
            name,
            state,
            message,
        }
    })
    .into()
}

/// The report without the name of the user: the home folder becomes `~`.
fn write_bundle(path: &Path, checks: &[Value]) -> Result<(), Failure> {
    let mut text = json!({ "candor": env!("CARGO_PKG_VERSION"), "checks": checks }).to_string();
    if let Some(home) = environment::home() {
        text = diagnostics::redacted(&text, &home);
    }
    text.push('\n');
    fs::write(path, text).map_err(|error| Failure::file(path, &error))
}
