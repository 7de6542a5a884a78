//! The window's commands, one call of the app each. `build.rs` lists them and
//! `capabilities/main.json` grants them; a command that is in neither cannot be called.
//!
//! They run on worker threads, because the store may be slow, except those that only set a flag:
//! a Stop must never wait behind other work.

use candor_app::wire::{
    Conversation, ConversationSummary, ModelDetails, ModelEntry, Sent, Settings, Snapshot,
    TurnBatch, Unsent, WireError,
};
use tauri::ipc::Channel;
use tauri::{State, WebviewWindow};

use crate::bridge;
use crate::links;
use crate::picker::FilePicker;
use crate::root::Opened;

type Answer<T> = Result<T, WireError>;

#[tauri::command(async)]
pub(crate) fn bootstrap(opened: State<'_, Opened>) -> Answer<Snapshot> {
    Ok(opened.app()?.bootstrap()?)
}

#[tauri::command(async)]
pub(crate) fn open_conversation(opened: State<'_, Opened>, id: i64) -> Answer<Conversation> {
    Ok(opened.app()?.open_conversation(id)?)
}

#[tauri::command(async)]
pub(crate) fn rename_conversation(
    opened: State<'_, Opened>,
    id: i64,
    title: &str,
) -> Answer<ConversationSummary> {
    Ok(opened.app()?.rename_conversation(id, title)?)
}

#[tauri::command(async)]
pub(crate) fn delete_conversation(opened: State<'_, Opened>, id: i64) -> Answer<()> {
    Ok(opened.app()?.delete_conversation(id)?)
}

#[tauri::command(async)]
pub(crate) fn restore_conversation(
    opened: State<'_, Opened>,
    id: i64,
) -> Answer<ConversationSummary> {
    Ok(opened.app()?.restore_conversation(id)?)
}

#[tauri::command(async)]
pub(crate) fn send(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
    text: &str,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    let app = opened.app()?;
    let sent = app.send(conversation, text)?;
    app.attach(sent.turn, 0, bridge::reader(channel));
    Ok(sent)
}

#[tauri::command(async)]
pub(crate) fn regenerate(
    opened: State<'_, Opened>,
    message: i64,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    let app = opened.app()?;
    let sent = app.regenerate(message)?;
    app.attach(sent.turn, 0, bridge::reader(channel));
    Ok(sent)
}

#[tauri::command(async)]
pub(crate) fn attach(
    opened: State<'_, Opened>,
    turn: i64,
    from_seq: u32,
    channel: Channel<TurnBatch>,
) -> Answer<bool> {
    Ok(opened
        .app()?
        .attach(turn, from_seq, bridge::reader(channel)))
}

#[tauri::command]
pub(crate) fn stop(opened: State<'_, Opened>, turn: i64) -> Answer<()> {
    opened.app()?.stop(turn);
    Ok(())
}

#[tauri::command]
pub(crate) async fn pick_model(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<ModelEntry>> {
    let app = opened.app()?;
    match picker.pick(&window).await {
        Some(path) => Ok(Some(app.add_model(&path)?)),
        None => Ok(None),
    }
}

#[tauri::command(async)]
pub(crate) fn add_model(opened: State<'_, Opened>, path: &str) -> Answer<ModelEntry> {
    Ok(opened.app()?.add_model(path.as_ref())?)
}

#[tauri::command(async)]
pub(crate) fn load_model(opened: State<'_, Opened>, id: &str) -> Answer<()> {
    Ok(opened.app()?.load_model(id)?)
}

#[tauri::command(async)]
pub(crate) fn model_details(opened: State<'_, Opened>, id: &str) -> Answer<ModelDetails> {
    Ok(opened.app()?.model_details(id)?)
}

#[tauri::command]
pub(crate) fn stop_loading(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.stop_loading();
    Ok(())
}

#[tauri::command]
pub(crate) fn use_cpu(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.use_cpu();
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn use_gpu(opened: State<'_, Opened>) -> Answer<()> {
    Ok(opened.app()?.use_gpu()?)
}

#[tauri::command(async)]
pub(crate) fn check_again(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.check_again();
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn forget_model(opened: State<'_, Opened>, id: &str) -> Answer<()> {
    Ok(opened.app()?.forget_model(id)?)
}

#[tauri::command(async)]
pub(crate) fn save_settings(opened: State<'_, Opened>, settings: Settings) -> Answer<Settings> {
    Ok(opened.app()?.save_settings(settings)?)
}

#[tauri::command(async)]
pub(crate) fn open_link(url: &str) -> Answer<()> {
    Ok(links::open(url)?)
}

#[tauri::command(async)]
pub(crate) fn keep_unsent(opened: State<'_, Opened>, unsent: Unsent) -> Answer<()> {
    Ok(opened.app()?.keep_unsent(&unsent)?)
}

/// The page is ready to go.
#[tauri::command(async)]
pub(crate) fn close_window(window: WebviewWindow) {
    // A window that is gone already is closed.
    let _ = window.destroy();
}
