//! What a chat has of its own.

use candor_app::wire::ChatSettings;
use tauri::State;

use super::Answer;
use crate::root::Opened;

#[tauri::command(async)]
pub(crate) fn chat_settings(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
) -> Answer<Option<ChatSettings>> {
    opened.answer(|app| app.chat_settings(conversation))
}

#[tauri::command(async)]
pub(crate) fn keep_chat_settings(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
    chat: Option<ChatSettings>,
) -> Answer<Option<ChatSettings>> {
    opened.answer(|app| app.keep_chat_settings(conversation, chat))
}

#[tauri::command(async)]
pub(crate) fn preview_template(opened: State<'_, Opened>, chat: ChatSettings) -> Answer<String> {
    opened.answer(|app| app.preview_template(&chat))
}
