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
mod commands;
mod environment;
mod failure;
mod input;
mod interrupt;
mod output;
mod reply;
mod session;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use failure::{Exit, Failure};
use output::Output;

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
    let ended = commands::run(cli, &mut output).and_then(|exit| {
        output.flush()?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => exit.into(),
        // Whoever read the output has what they wanted.
        Err(Failure::BrokenPipe) => Exit::Done.into(),
        Err(Failure::Report(report)) => {
            output.report(&report);
            report.exit.into()
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
    let _ = error.print();
    if std::env::args_os().any(|arg| arg == "--json") {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let message = line.strip_prefix("error: ").unwrap_or(line);
        let report = failure::Report::usage(message);
        Output::new(output::Form::Json).report(&report);
    }
    Exit::Usage.into()
}
