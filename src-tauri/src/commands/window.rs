//! The window itself, and the user's choices.

use candor_app::wire::{Settings, Snapshot};
use tauri::{State, WebviewWindow};

use super::Answer;
use crate::links;
use crate::root::Opened;

#[tauri::command(async)]
pub(crate) fn bootstrap(opened: State<'_, Opened>) -> Answer<Snapshot> {
    Ok(opened.app()?.bootstrap()?)
}

#[tauri::command(async)]
pub(crate) fn save_settings(opened: State<'_, Opened>, settings: Settings) -> Answer<Settings> {
    Ok(opened.app()?.save_settings(settings)?)
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
