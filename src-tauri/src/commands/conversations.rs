//! Conversations and what is typed in them.

use candor_app::wire::{
    Card, Conversation, ConversationSummary, ExportFormat, Exported, Found, Imported, Place,
    TokenCount, Unsent,
};
use tauri::{State, WebviewWindow};

use super::Answer;
use crate::picker::{FilePicker, Wanted};
use crate::root::Opened;

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
pub(crate) fn keep_unsent(opened: State<'_, Opened>, unsent: Unsent) -> Answer<()> {
    Ok(opened.app()?.keep_unsent(&unsent)?)
}

#[tauri::command(async)]
pub(crate) fn place_conversation(
    opened: State<'_, Opened>,
    id: i64,
    place: Place,
) -> Answer<ConversationSummary> {
    Ok(opened.app()?.place_conversation(id, &place)?)
}

#[tauri::command(async)]
pub(crate) fn rename_folder(opened: State<'_, Opened>, from: &str, to: &str) -> Answer<()> {
    Ok(opened.app()?.rename_folder(from, to)?)
}

#[tauri::command(async)]
pub(crate) fn search(opened: State<'_, Opened>, words: &str) -> Answer<Vec<Found>> {
    Ok(opened.app()?.search(words)?)
}

#[tauri::command(async)]
pub(crate) fn show_message(opened: State<'_, Opened>, message: i64) -> Answer<Conversation> {
    Ok(opened.app()?.show_message(message)?)
}

#[tauri::command(async)]
pub(crate) fn duplicate(opened: State<'_, Opened>, message: i64) -> Answer<Conversation> {
    Ok(opened.app()?.duplicate(message)?)
}

#[tauri::command(async)]
pub(crate) fn edit_reply(
    opened: State<'_, Opened>,
    message: i64,
    text: &str,
) -> Answer<Conversation> {
    Ok(opened.app()?.edit_reply(message, text)?)
}

#[tauri::command(async)]
pub(crate) fn count_tokens(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
    text: &str,
    cards: Vec<i64>,
) -> Answer<Option<TokenCount>> {
    Ok(opened.app()?.count_tokens(conversation, text, &cards)?)
}

#[tauri::command(async)]
pub(crate) fn add_card(opened: State<'_, Opened>, name: &str, text: &str) -> Answer<Card> {
    Ok(opened.app()?.add_card(name, text)?)
}

#[tauri::command(async)]
pub(crate) fn card_text(opened: State<'_, Opened>, id: i64) -> Answer<String> {
    Ok(opened.app()?.card_text(id)?)
}

#[tauri::command]
pub(crate) async fn pick_card(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<Card>> {
    let app = opened.app()?;
    match picker.pick(&window, Wanted::TextFile).await {
        Some(path) => Ok(Some(app.add_file_card(&path)?)),
        None => Ok(None),
    }
}

#[tauri::command]
pub(crate) async fn import_conversations(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<Imported>> {
    let app = opened.app()?;
    match picker.pick(&window, Wanted::Conversations).await {
        Some(path) => Ok(Some(app.import_conversations(&path)?)),
        None => Ok(None),
    }
}

#[tauri::command]
pub(crate) async fn export_conversations(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
    id: Option<i64>,
    format: ExportFormat,
) -> Answer<Option<Exported>> {
    let app = opened.app()?;
    let wanted = Wanted::NewFile(app.export_name(id, format)?);
    match picker.pick(&window, wanted).await {
        Some(path) => Ok(Some(app.export_conversations(id, format, &path)?)),
        None => Ok(None),
    }
}
