//! Conversations and what is typed in them.

use candor_app::wire::{Conversation, ConversationSummary, Unsent};
use tauri::State;

use super::Answer;
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
