//! The window itself, and the user's choices.

use candor_app::diagnostics::{self, Surroundings};
use candor_app::wire::{Language, Settings, Snapshot};
use candor_app::{App, Error, Tongue};
use tauri::{State, WebviewWindow};

use super::Answer;
use crate::picker::{FilePicker, Wanted};
use crate::root::Opened;
use crate::watchdog::Watchdog;
use crate::{links, surroundings};

#[tauri::command(async)]
pub(crate) fn bootstrap(
    opened: State<'_, Opened>,
    watchdog: State<'_, Watchdog>,
    system: Language,
) -> Answer<Snapshot> {
    watchdog.page_came_up();
    opened.system_speaks(match system {
        Language::German => Tongue::German,
        Language::English | Language::System => Tongue::English,
    });
    opened.answer(App::bootstrap)
}

#[tauri::command(async)]
pub(crate) fn save_settings(opened: State<'_, Opened>, settings: Settings) -> Answer<Settings> {
    opened.answer(|app| app.save_settings(settings))
}

/// The report that a person reads before passing it on. The driver may be asked meanwhile.
#[tauri::command(async)]
pub(crate) fn diagnostics(
    opened: State<'_, Opened>,
    watchdog: State<'_, Watchdog>,
) -> Answer<String> {
    let home = surroundings::home();
    Ok(opened.app()?.diagnostics(&Surroundings {
        rows: surroundings::rows(watchdog.drawing().why()),
        home: home.as_deref(),
    }))
}

/// Keeps the report as it was read; false if the person thought better of it.
#[tauri::command]
pub(crate) async fn save_report(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
    text: String,
) -> Answer<bool> {
    let tongue = opened.tongue();
    match picker.pick(&window, Wanted::Report, tongue).await {
        Some(path) => {
            let saved = diagnostics::save(&path, &text);
            saved.map_err(|error| error.wire(tongue))?;
            Ok(true)
        }
        None => Ok(false),
    }
}

#[tauri::command(async)]
pub(crate) fn open_link(opened: State<'_, Opened>, url: &str) -> Answer<()> {
    links::open(url).map_err(|why| Error::from(why).wire(opened.tongue()))
}

/// The page is ready to go.
#[tauri::command(async)]
pub(crate) fn close_window(window: WebviewWindow) {
    // A window that is gone already is closed.
    let _ = window.destroy();
}
