//! The window itself, and the user's choices.

use candor_app::diagnostics::{self, Surroundings};
use candor_app::wire::{Settings, Snapshot};
use tauri::{State, WebviewWindow};

use super::Answer;
use crate::picker::{FilePicker, Wanted};
use crate::root::Opened;
use crate::{links, surroundings};

#[tauri::command(async)]
pub(crate) fn bootstrap(opened: State<'_, Opened>) -> Answer<Snapshot> {
    Ok(opened.app()?.bootstrap()?)
}

#[tauri::command(async)]
pub(crate) fn save_settings(opened: State<'_, Opened>, settings: Settings) -> Answer<Settings> {
    Ok(opened.app()?.save_settings(settings)?)
}

/// The report that a person reads before passing it on. The driver may be asked meanwhile.
#[tauri::command(async)]
pub(crate) fn diagnostics(opened: State<'_, Opened>) -> Answer<String> {
    let home = surroundings::home();
    Ok(opened.app()?.diagnostics(&Surroundings {
        rows: surroundings::rows(),
        home: home.as_deref(),
    }))
}

/// Keeps the report as it was read; false if the person thought better of it.
#[tauri::command]
pub(crate) async fn save_report(
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
    text: String,
) -> Answer<bool> {
    match picker.pick(&window, Wanted::Report).await {
        Some(path) => {
            diagnostics::save(&path, &text)?;
            Ok(true)
        }
        None => Ok(false),
    }
}

#[tauri::command(async)]
pub(crate) fn open_link(url: &str) -> Answer<()> {
    Ok(links::open(url)?)
}

/// The page is ready to go.
#[tauri::command(async)]
pub(crate) fn close_window(window: WebviewWindow) {
    // A window that is gone already is closed.
    let _ = window.destroy();
}
