//! `cargo xtask test`: every check and every test, each share with its time.

use anyhow::{Result, bail};

use crate::shares::Shares;
use crate::{
    bindings, clients, command, kernels, models, node, packages, project, ui, vocabularies,
};

/// A window of a laptop's size, in true colour.
const SCREEN: &str = "-screen 0 1280x800x24";

/// Packages that are no default members, because they need the window's libraries.
const WINDOW_PACKAGES: [&str; 2] = ["candor-desktop", "candor-window-tests"];

/// Runs the shares that are named, or all.
///
/// # Errors
/// If a name is unknown, or if anything failed.
pub(crate) fn test(names: &[&str]) -> Result<()> {
    const ALL: [&str; 6] = ["setup", "ui", "style", "rust", "docs", "window"];
    // Only when it is named: it installs from registries and runs a real model.
    const CLIENTS: &str = "clients";
    let unknown = |name: &&&str| !ALL.contains(name) && **name != CLIENTS;
    if let Some(unknown) = names.iter().find(unknown) {
        bail!(
            "{unknown} is not a share; there are: {} {CLIENTS}",
            ALL.join(" ")
        );
    }
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    let mut shares = Shares::default();
    if wanted("setup") {
        setup(&mut shares);
    }
    if wanted("ui") {
        pages(&mut shares);
    }
    if wanted("style") {
        style(&mut shares);
    }
    if wanted("rust") {
        rust(&mut shares);
    }
    if wanted("docs") {
        shares.check("documentation builds without a warning", documentation);
    }
    if wanted("window") {
        window(&mut shares);
    }
    if names.contains(&CLIENTS) {
        clients::clients(&mut shares);
    }
    if !shares.conclude() {
        bail!("not everything passed");
    }
    Ok(())
}

fn setup(shares: &mut Shares) {
    shares.check("system packages", || {
        packages::ensure(&[packages::BUILD, packages::FETCH, packages::DRIVE])
    });
    // A model that cannot be had is no failure of ours: the tests that need it say NOT RUN.
    let mut missing = Vec::new();
    shares.check("test models", || {
        for model in models::FOR_TESTS {
            if let Err(error) = model.ensure(&project::models()) {
                missing.push(format!("what needs {}: {error:#}", model.name));
            }
        }
        if let Err(error) = vocabularies::ensure(&project::models()) {
            missing.push(format!("what needs {}: {error:#}", vocabularies::NAME));
        }
        Ok(())
    });
    missing
        .into_iter()
        .for_each(|what| shares.say_not_run(what));
}

fn pages(shares: &mut Shares) {
    let path = match node::path() {
        Ok(path) => path,
        Err(error) => return shares.check("Node.js", || Err(error)),
    };
    shares.check("packages of the window's pages", || ui::install(&path));
    shares.check("types of the window's pages", || {
        ui::npm(&["run", "check"], &path).run()
    });
    shares.tests("tests of the window's pages", || {
        ui::npm(&["test"], &path)
            .with("CI", "1")
            .with("NO_COLOR", "1")
            .run_and_keep()
    });
    shares.check("build of the window's pages", || ui::build(&path));
}

fn style(shares: &mut Shares) {
    shares.check("formatting", || {
        command::cargo(&["fmt", "--all", "--check"]).run()
    });
    shares.check("lints", || {
        command::cargo(&["clippy", "--all-targets", "--", "-D", "warnings"]).run()
    });
    shares.check("lints of xtask and of the window", || {
        let mut words = vec!["clippy", "--all-targets", "--package", "xtask"];
        for package in WINDOW_PACKAGES {
            words.extend(["--package", package]);
        }
        words.extend(["--", "-D", "warnings"]);
        command::cargo(&words).run()
    });
    shares.check(
        "the window's types are generated from the program's",
        bindings::check,
    );
    // The tests of crates/cuda find stale PTX without a compiler; this makes it again with one.
    match kernels::ensure_compilers() {
        Ok(()) => shares.check("the kernels' PTX is what their sources give", || {
            kernels::kernels(&["--check"])
        }),
        Err(error) => {
            shares.say_not_run(format!("the kernels' compilation, no compiler: {error:#}"))
        }
    }
}

fn rust(shares: &mut Shares) {
    shares.tests("tests of the crates and of the command line", || {
        cargo_test(&[]).run_and_keep()
    });
    shares.tests("tests of xtask", || {
        cargo_test(&["--package", "xtask"]).run_and_keep()
    });
}

fn documentation() -> Result<()> {
    command::cargo(&["doc", "--no-deps"])
        .with("RUSTDOCFLAGS", "-D warnings")
        .run()
}

fn window(shares: &mut Shares) {
    shares.check("build of the window", || {
        command::cargo(&["build", "--package", "candor-desktop"]).run()
    });
    shares.tests("tests of the window's own code", || {
        cargo_test(&["--package", "candor-desktop"]).run_and_keep()
    });
    // Compiled before the screen is started, so that the shares' times mean what they say.
    shares.check("build of the window's tests", || {
        command::cargo(&["test", "--no-run", "--package", "candor-window-tests"]).run()
    });
    shares.tests("tests of the whole window", || {
        whole_window(&[])?.run_and_keep()
    });
}

/// The tests of the whole window, or those whose names hold one of these words; on a screen and
/// a bus of their own: with a shared bus a second start would hand over to a window of the
/// user's.
///
/// # Errors
/// If cargo does not say where it builds.
pub(crate) fn whole_window(words: &[&str]) -> Result<command::Run> {
    driven_window("debug", words)
}

/// The same over the program as it is shipped, which answers no dialog by itself.
///
/// # Errors
/// If cargo does not say where it builds.
pub(crate) fn shipped_window(words: &[&str]) -> Result<command::Run> {
    driven_window("release", words)
}

fn driven_window(profile: &str, words: &[&str]) -> Result<command::Run> {
    let app = project::target()?.join(profile).join("candor-desktop");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let before = ["-a", "-s", SCREEN, "dbus-run-session", "--", &cargo, "test"];
    let mut run = command::program("xvfb-run", &before);
    for word in [
        "--package",
        "candor-window-tests",
        "--no-fail-fast",
        "--",
        "--show-output",
    ] {
        run = run.argument(word);
    }
    for word in words {
        run = run.argument(word);
    }
    Ok(run
        .with("CANDOR_APP", app)
        .with("CANDOR_TEST_MODELS", project::models())
        .with("NO_AT_BRIDGE", "1")
        // A test says what it waited for; where it stood in the harness tells nobody anything.
        .with("RUST_LIB_BACKTRACE", "0"))
}

/// Plain `cargo test`, with what passing tests print: that is where NOT RUN stands.
fn cargo_test(packages: &[&str]) -> command::Run {
    let mut words = vec!["test", "--no-fail-fast"];
    words.extend(packages);
    words.extend(["--", "--show-output"]);
    command::cargo(&words)
        .with("CANDOR_TEST_MODELS", project::models())
        // Many tests provoke a panic; the frames below it would drown those that were not meant.
        .with("RUST_BACKTRACE", "0")
}
