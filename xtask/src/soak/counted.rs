//! The share of a report that tests count: they are run, and each that passed is one run of a figure.

use anyhow::Result;

use super::figures::Figure;
use crate::{command, project};

/// Tests of one binary.
pub(super) struct Counted {
    /// What they count.
    pub(super) what: &'static str,
    /// The words that find them, after `cargo test`.
    pub(super) words: &'static [&'static str],
}

/// Runs the tests.
pub(super) fn count(all: &[Counted]) -> Result<Vec<Figure>> {
    all.iter().map(|counted| figure(counted, &[])).collect()
}

/// Runs the tests with these variables set.
pub(super) fn figure(counted: &Counted, variables: &[(&str, String)]) -> Result<Figure> {
    let mut figure = Figure::new(counted.what);
    note(&mut figure, &run(counted, variables)?);
    Ok(figure)
}

/// The same, keeping what was printed.
pub(super) fn run(counted: &Counted, variables: &[(&str, String)]) -> Result<command::Kept> {
    let words = [&["test"], counted.words].concat();
    let run = command::cargo(&words)
        .with("CANDOR_TEST_MODELS", project::models())
        .with("RUST_BACKTRACE", "0");
    variables
        .iter()
        .fold(run, |run, (name, value)| run.with(name, value))
        .run_and_keep()
}

/// Notes what passed, and what did not.
pub(super) fn note(figure: &mut Figure, kept: &command::Kept) {
    for line in kept.text.lines().map(str::trim) {
        if line.starts_with("test ") && line.ends_with("... ok") {
            figure.counted();
        }
        if line.starts_with("NOT RUN:") {
            figure.fault(line.to_owned());
        }
    }
    if let Some(failure) = &kept.failure {
        figure.fault(failure.clone());
    }
}

pub(super) const B05: &[Counted] = &[Counted {
    what: "tests of characters cut in every place, at every end",
    words: &[
        "--package",
        "candor-text",
        "--lib",
        "detokenize",
        "--",
        "--show-output",
    ],
}];

pub(super) const B08: &[Counted] = &[
    Counted {
        what: "tests of strict and broken templates, app and window's store",
        words: &[
            "--package",
            "candor-app",
            "--test",
            "templates",
            "--",
            "--show-output",
        ],
    },
    Counted {
        what: "the same on the command line",
        words: &[
            "--package",
            "candor",
            "--test",
            "cli",
            "template",
            "--",
            "--show-output",
        ],
    },
];

pub(super) const B09: &[Counted] = &[
    Counted {
        what: "tests of replies without end: limit, end tokens, repetition",
        words: &[
            "--package",
            "candor",
            "--test",
            "cli",
            "a_reply_",
            "--",
            "--show-output",
        ],
    },
    Counted {
        what: "the notice in the window's store, told once",
        words: &[
            "--package",
            "candor-app",
            "--test",
            "product",
            "repeats_itself",
            "--",
            "--show-output",
        ],
    },
];

pub(super) const B10: &[Counted] = &[
    Counted {
        what: "tests of what is left out, and what is too long",
        words: &[
            "--package",
            "candor-app",
            "--test",
            "product",
            "--",
            "what_does_not_fit",
            "too_long_alone",
            "system_prompt_is_in_every_prompt",
            "two_hundred_turns",
            "--show-output",
        ],
    },
    Counted {
        what: "the same through the server",
        words: &[
            "--package",
            "candor-server",
            "--test",
            "http",
            "what_does_not_fit",
            "--",
            "--show-output",
        ],
    },
];
