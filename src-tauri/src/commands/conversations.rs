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
    opened.answer(|app| app.open_conversation(id))
}

#[tauri::command(async)]
pub(crate) fn rename_conversation(
    opened: State<'_, Opened>,
    id: i64,
    title: &str,
) -> Answer<ConversationSummary> {
    opened.answer(|app| app.rename_conversation(id, title))
}

#[tauri::command(async)]
pub(crate) fn delete_conversation(opened: State<'_, Opened>, id: i64) -> Answer<()> {
    opened.answer(|app| app.delete_conversation(id))
}

#[tauri::command(async)]
pub(crate) fn restore_conversation(
    opened: State<'_, Opened>,
    id: i64,
) -> Answer<ConversationSummary> {
    opened.answer(|app| app.restore_conversation(id))
}

#[tauri::command(async)]
pub(crate) fn keep_unsent(opened: State<'_, Opened>, unsent: Unsent) -> Answer<()> {
    opened.answer(|app| app.keep_unsent(&unsent))
}

#[tauri::command(async)]
pub(crate) fn place_conversation(
    opened: State<'_, Opened>,
    id: i64,
    place: Place,
) -> Answer<ConversationSummary> {
    opened.answer(|app| app.place_conversation(id, &place))
}

#[tauri::command(async)]
pub(crate) fn rename_folder(opened: State<'_, Opened>, from: &str, to: &str) -> Answer<()> {
    opened.answer(|app| app.rename_folder(from, to))
}

#[tauri::command(async)]
pub(crate) fn search(opened: State<'_, Opened>, words: &str) -> Answer<Vec<Found>> {
    opened.answer(|app| app.search(words))
}

#[tauri::command(async)]
pub(crate) fn show_message(opened: State<'_, Opened>, message: i64) -> Answer<Conversation> {
    opened.answer(|app| app.show_message(message))
}

#[tauri::command(async)]
pub(crate) fn duplicate(opened: State<'_, Opened>, message: i64) -> Answer<Conversation> {
    opened.answer(|app| app.duplicate(message))
}

#[tauri::command(async)]
pub(crate) fn edit_reply(
    opened: State<'_, Opened>,
    message: i64,
    text: &str,
) -> Answer<Conversation> {
    opened.answer(|app| app.edit_reply(message, text))
}

#[tauri::command(async)]
pub(crate) fn count_tokens(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
    text: &str,
    cards: Vec<i64>,
) -> Answer<Option<TokenCount>> {
    opened.answer(|app| app.count_tokens(conversation, text, &cards))
}

#[tauri::command(async)]
pub(crate) fn add_card(opened: State<'_, Opened>, name: &str, text: &str) -> Answer<Card> {
    opened.answer(|app| app.add_card(name, text))
}

#[tauri::command(async)]
pub(crate) fn card_text(opened: State<'_, Opened>, id: i64) -> Answer<String> {
    opened.answer(|app| app.card_text(id))
}

#[tauri::command]
pub(crate) async fn pick_card(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<Card>> {
    let tongue = opened.app()?.tongue();
    match picker.pick(&window, Wanted::TextFile, tongue).await {
        Some(path) => opened.answer(|app| app.add_file_card(&path)).map(Some),
        None => Ok(None),
    }
}

#[tauri::command]
pub(crate) async fn import_conversations(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<Imported>> {
    let tongue = opened.app()?.tongue();
    match picker.pick(&window, Wanted::Conversations, tongue).await {
        Some(path) => opened
            .answer(|app| app.import_conversations(&path))
            .map(Some),
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
    let tongue = opened.app()?.tongue();
    let name = opened.answer(|app| app.export_name(id, format))?;
    match picker.pick(&window, Wanted::NewFile(name), tongue).await {
        Some(path) => {
            let written = opened.answer(|app| app.export_conversations(id, format, &path));
            written.map(Some)
        }
        None => Ok(None),
    }
}
