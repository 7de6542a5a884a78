//! The server that answers other programs.

use candor_app::wire::ServerState;
use candor_server::Switch;
use tauri::State;

use super::Answer;
use crate::root::Opened;

#[tauri::command(async)]
pub(crate) fn server_state(opened: State<'_, Opened>, server: State<'_, Switch>) -> ServerState {
    server.state(opened.tongue())
}

/// Makes it as the settings say, and says how it is then.
#[tauri::command(async)]
pub(crate) fn switch_server(
    opened: State<'_, Opened>,
    server: State<'_, Switch>,
) -> Answer<ServerState> {
    let app = opened.app()?;
    Ok(server.set(&app.settings().server, app))
}
