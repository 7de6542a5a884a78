//! The headless program: model files inspected, texts tokenized, replies written, speeds measured,
//! from the command line and for scripts.
//!
//! Each subcommand is a file in `commands/`; it maps its arguments to calls of `candor_app` and the
//! results to words or JSON, and decides nothing else. `failure.rs` holds the exit codes.
//!
//! What it deliberately does not do: it opens no store of conversations and knows no window.
//!
//! Start reading at [`args::Cli`], then `commands/generate.rs`.
#![forbid(unsafe_code)]

mod args;
mod bounds;
mod commands;
mod environment;
mod failure;
mod input;
mod interrupt;
mod output;
mod reply;
mod sampling;
mod session;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::Cli;
use failure::{Exit, Failure};
use interrupt::Interrupts;
use output::{Form, Output};

fn main() -> ExitCode {
    // Before anything else: this process may be the child that asks the driver.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == candor_app::PROBE_ARGUMENT)
    {
        let written = writeln!(io::stdout(), "{}", candor_app::probe_child());
        return if written.is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    let mut output = Output::new(cli.common.form());
    let interrupts = Interrupts::new();
    let ended = commands::run(cli, &interrupts, &mut output).and_then(|exit| {
        output.flush()?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => interrupts.name(exit).into(),
        // Whoever read the output has what they wanted.
        Err(Failure::BrokenPipe) => Exit::Done.into(),
        Err(Failure::Report(report)) => {
            output.report(&report);
            interrupts.name(report.exit).into()
        }
    }
}

/// Help and version are results; anything else is wrong usage.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe has read enough.
        let _ = error.print();
        return Exit::Done.into();
    }
    let is_json = std::env::args_os().any(|arg| arg == "--json");
    if error.kind() == ErrorKind::InvalidUtf8 {
        let report = failure::Report::usage("an argument that is no path is not UTF-8 text");
        Output::new(if is_json { Form::Json } else { Form::Text }).report(&report);
        return Exit::Usage.into();
    }
    let _ = error.print();
    if is_json {
        let report = failure::Report::usage(sentence(&error.to_string()));
        Output::new(Form::Json).report(&report);
    }
    Exit::Usage.into()
}

/// What is wrong, out of a text that goes on with how the program is used. What is missing stands
/// on lines of its own.
fn sentence(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let words = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    words.strip_prefix("error: ").unwrap_or(&words).to_owned()
}
