//! `cargo xtask bundle`: packages for Debian's and Fedora's families.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::{command, models, node, packages, project, ui};

/// The bundler, run by npm and kept nowhere.
const BUNDLER: &str = "@tauri-apps/cli@2.12.5";

/// Where a package puts the command line program.
const PROGRAM: &str = "/usr/bin/candor";

/// What desktops know of the window: its name, and that it opens model files.
const DESKTOP: &str = "packaging/candor.desktop";

/// What desktops know of model files, and where they look for it.
const FILE_TYPES: (&str, &str) = (
    "packaging/candor-mime.xml",
    "/usr/share/mime/packages/org.candor.Candor.xml",
);

/// What may be done with it, and where a package says so.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
const DOCUMENTS: &str = "/usr/share/doc/candor";

/// What Debian's packages need beside the libraries that the bundler finds: the desktop's lists of
/// programs and of file types are made anew, and a link opens in the person's browser.
const DEPENDS: [&str; 3] = ["desktop-file-utils", "shared-mime-info", "xdg-utils"];

/// Where the installed window looks for the starter model.
const MODELS: &str = "/usr/share/candor/models";

/// What a package holds beside the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Nothing.
    None,
    /// The starter model.
    Starter,
}

/// Makes a .deb and a .rpm.
///
/// # Errors
/// If something that it needs can be neither found nor installed, or does not build.
pub(crate) fn bundle(extra: Extra) -> Result<()> {
    packages::ensure(&[packages::BUILD])?;
    let path = node::path()?;
    ui::build(&path)?;
    let starter = match extra {
        Extra::Starter => Some(models::STARTER.ensure(&project::models())?),
        Extra::None => None,
    };
    // The bundler builds the window alone; the packages hold both programs.
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let release = project::target()?.join("release");
    let packed = release.join("packed");
    fs::create_dir_all(&packed).context("a folder for what is packed")?;
    strip(&release.join("candor"), &packed.join("candor"))?;
    let config = config(&release, starter.as_deref())?;
    let words = [
        "--yes",
        BUNDLER,
        "build",
        "--bundles",
        "deb,rpm",
        "--config",
    ];
    command::program("npx", &words)
        .argument(config.to_string())
        .within(&project::root().join("src-tauri"))
        .with("PATH", path)
        .run()?;
    println!("The packages are in {}", release.join("bundle").display());
    Ok(())
}

/// What is taken out of the programs: tables of lines, four fifths of each. The names of functions
/// stay, so that a report of a fault still says where it was.
const STRIP: [&str; 2] = ["strip", "--strip-debug"];

fn strip(from: &Path, to: &Path) -> Result<()> {
    let [program, word] = STRIP;
    command::program(program, &[word, "-o"])
        .argument(to)
        .argument(from)
        .run()
}

/// What the bundler is told beside its own file: which other files go where, and what it does to the
/// window's program between building and packing it.
fn config(release: &Path, starter: Option<&Path>) -> Result<Value> {
    let mut files = Map::new();
    let mut put = |place: String, file: &Path| -> Result<()> {
        let file = file.to_str().context("the project's path is no text")?;
        files.insert(place, json!(file));
        Ok(())
    };
    let root = project::root();
    put(PROGRAM.to_owned(), &release.join("packed/candor"))?;
    put(FILE_TYPES.1.to_owned(), &root.join(FILE_TYPES.0))?;
    for licence in LICENCES {
        put(format!("{DOCUMENTS}/{licence}"), &root.join(licence))?;
    }
    if let Some(starter) = starter {
        put(format!("{MODELS}/{}", models::STARTER.file), starter)?;
    }
    let package = json!({ "files": files, "desktopTemplate": root.join(DESKTOP) });
    let mut deb = package.clone();
    deb["depends"] = json!(DEPENDS);
    let window = release.join("candor-desktop");
    let window = window.to_str().context("the project's path is no text")?;
    // For a shell, which takes what stands between these as it is.
    let quoted = format!("'{}'", window.replace('\'', r"'\''"));
    Ok(json!({
        "build": { "beforeBundleCommand": format!("{} {quoted}", STRIP.join(" ")) },
        "bundle": { "linux": { "deb": deb, "rpm": package } },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_package_hold_the_same() {
        let (release, starter) = (Path::new("/it's/release"), Path::new("/m/s.gguf"));
        for (starter, places) in [(None, 4), (Some(starter), 5)] {
            let config = config(release, starter).expect("the paths are text");
            // The window's program too is packed without its tables of lines.
            assert_eq!(
                config["build"]["beforeBundleCommand"],
                r"strip --strip-debug '/it'\''s/release/candor-desktop'"
            );
            for kind in ["deb", "rpm"] {
                let files = config["bundle"]["linux"][kind]["files"].as_object();
                let files = files.expect("a map of files");
                assert_eq!(files.len(), places, "{kind}");
                assert_eq!(files[PROGRAM], "/it's/release/packed/candor", "{kind}");
                let placed = files.values().any(|file| file == "/m/s.gguf");
                assert_eq!(placed, starter.is_some(), "{kind}");
                let types = files[FILE_TYPES.1].as_str().expect("the file types");
                assert!(Path::new(types).is_file(), "{types}");
                let desktop = config["bundle"]["linux"][kind]["desktopTemplate"].as_str();
                let entry = std::fs::read_to_string(desktop.expect("a path")).expect("the entry");
                // A file that is opened with it is handed over, and only what it can open is.
                assert!(entry.contains("Exec={{exec}} %f\n"), "{entry}");
                assert!(entry.contains("application/x-gguf;application/x-apr-model;"));
            }
        }
    }
}
