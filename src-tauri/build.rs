//! Declares the commands that the window may be granted, and looks whether its pages are built.
//!
//! It runs no tools: a build that fetches and runs other programs on its own surprises people.
//! It says what to run instead.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Every command of `src/commands/`. One that is missing here cannot be granted; one that is
/// missing in `capabilities/main.json` is refused.
const COMMANDS: &[&str] = &[
    "add_card",
    "add_model",
    "add_model_folder",
    "attach",
    "bootstrap",
    "card_text",
    "chat_settings",
    "check_again",
    "close_window",
    "continue_reply",
    "count_tokens",
    "delete_conversation",
    "diagnostics",
    "download_starter",
    "duplicate",
    "edit_question",
    "edit_reply",
    "export_conversations",
    "forget_model",
    "hub_files",
    "hub_search",
    "import_conversations",
    "keep_chat_settings",
    "keep_unsent",
    "load_model",
    "model_details",
    "model_fits",
    "open_conversation",
    "open_link",
    "pause_download",
    "pick_card",
    "pick_folder",
    "pick_model",
    "place_conversation",
    "preview_template",
    "regenerate",
    "remove_download",
    "remove_model_folder",
    "rename_conversation",
    "rename_folder",
    "replay",
    "reply_file_hash",
    "restore_conversation",
    "resume_download",
    "save_report",
    "save_settings",
    "search",
    "search_folders",
    "send",
    "server_state",
    "show_message",
    "start_download",
    "stop",
    "stop_loading",
    "stop_replay",
    "stop_writing",
    "switch_server",
    "use_cpu",
    "use_gpu",
];

/// What the pages are built from; xtask looks at the same.
const SOURCES: [&str; 5] = [
    "src",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
];

fn main() {
    look_at_the_pages();
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    let attributes = tauri_build::Attributes::new().app_manifest(manifest);
    if let Err(error) = tauri_build::try_build(attributes) {
        panic!("{error:#}");
    }
    date_back(Path::new("permissions"));
}

/// Gives what was made of the list of commands the date of the list.
///
/// The first build writes their permissions into a folder that cargo then watches: with dates of
/// their own the second build would be made anew, for nothing.
fn date_back(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        date_back(&entry.path());
    }
    let then = fs::metadata("build.rs").and_then(|list| list.modified());
    // Where it fails, a build takes longer.
    if let (Ok(file), Ok(then)) = (fs::File::open(path), then) {
        let _ = file.set_modified(then);
    }
}

/// Stops the build if the pages are missing, or older than what they are built from.
fn look_at_the_pages() {
    let ui = Path::new("../ui");
    for source in SOURCES {
        println!("cargo:rerun-if-changed=../ui/{source}");
    }
    // A file that is new in the folder must be embedded too.
    println!("cargo:rerun-if-changed=../ui/dist");
    let sources = SOURCES
        .iter()
        .filter_map(|source| newest(&ui.join(source)))
        .max();
    match newest(&ui.join("dist/index.html")) {
        None => panic!("the window's pages are not built: run cargo xtask run"),
        Some(built) if Some(built) < sources => {
            panic!("the window's pages are older than their sources: run cargo xtask run")
        }
        Some(_) => {}
    }
}

/// The latest change of a file, or of anything in a folder.
fn newest(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_dir() {
        return metadata.modified().ok();
    }
    let entries = fs::read_dir(path).ok()?;
    entries
        .filter_map(|entry| newest(&entry.ok()?.path()))
        .max()
}
