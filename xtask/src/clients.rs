//! `cargo xtask test clients`: the official clients of the protocols against the server, unmodified,
//! installed from their registries. Not among the quick tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{self, Kept};
use crate::server::Server;
use crate::shares::Shares;
use crate::{models, node, project};

/// Where the checks are.
const FOLDER: &str = "tests/server/clients";

/// Runs them. A registry that cannot be reached, or a model that cannot be had, is said.
pub(crate) fn clients(shares: &mut Shares) {
    let server = match start() {
        Ok(server) => server,
        Err(error) => return shares.say_not_run(format!("the server's clients: {error:#}")),
    };
    let (address, model) = (format!("http://{}", server.address), server.model.clone());
    match python() {
        Ok(python) => shares.tests("OpenAI, Anthropic, Ollama and LangChain in Python", || {
            let script = format!("{FOLDER}/clients.py");
            command::program(python, &[&script, &address, &model]).run_and_keep()
        }),
        Err(error) => shares.say_not_run(format!("the clients in Python: {error:#}")),
    }
    match packages_of_node() {
        Ok(folder) => shares.tests("the Vercel AI SDK in Node.js", || {
            vercel(&folder, &address, &model)
        }),
        Err(error) => shares.say_not_run(format!("the clients in Node.js: {error:#}")),
    }
}

fn start() -> Result<Server> {
    let model = models::STARTER.ensure(&project::models())?;
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let candor = project::target()?.join("release").join("candor");
    Server::start(&candor, &model, &["--context", "4096"])
}

/// A Python with the packages, in a folder of its own.
fn python() -> Result<PathBuf> {
    let folder = project::target()?.join("clients").join("python");
    let python = folder.join("bin").join("python");
    if !python.exists() {
        let place = folder.to_str().context("a folder whose name is no text")?;
        command::program("python3", &["-m", "venv", place]).run()?;
    }
    let list = format!("{FOLDER}/requirements.txt");
    let words = ["-m", "pip", "install", "--quiet", "-r", &list];
    command::program(&python, &words).run()?;
    Ok(python)
}

/// A folder with the packages and the script: Node.js looks for them beside it.
fn packages_of_node() -> Result<PathBuf> {
    let folder = project::target()?.join("clients").join("node");
    fs::create_dir_all(&folder)?;
    for file in ["package.json", "vercel.mjs"] {
        let from = project::root().join(FOLDER).join(file);
        fs::copy(from, folder.join(file)).with_context(|| file.to_owned())?;
    }
    command::program("npm", &["install", "--silent", "--no-audit", "--no-fund"])
        .with("PATH", node::path()?)
        .within(&folder)
        .run()?;
    Ok(folder)
}

fn vercel(folder: &Path, address: &str, model: &str) -> Result<Kept> {
    command::program("node", &["vercel.mjs", address, model])
        .with("PATH", node::path()?)
        .within(folder)
        .run_and_keep()
}
