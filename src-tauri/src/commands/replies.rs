//! Messages and the replies to them.

use candor_app::wire::{ReplayEvent, Sent, TurnBatch};
use tauri::State;
use tauri::ipc::Channel;

use super::Answer;
use crate::bridge;
use crate::root::Opened;

#[tauri::command(async)]
pub(crate) fn send(
    opened: State<'_, Opened>,
    conversation: Option<i64>,
    text: &str,
    cards: Vec<i64>,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    opened.answer(|app| {
        let sent = app.send_with(conversation, text, &cards)?;
        app.attach(sent.turn, 0, bridge::reader(channel));
        Ok(sent)
    })
}

#[tauri::command(async)]
pub(crate) fn regenerate(
    opened: State<'_, Opened>,
    message: i64,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    opened.answer(|app| {
        let sent = app.regenerate(message)?;
        app.attach(sent.turn, 0, bridge::reader(channel));
        Ok(sent)
    })
}

#[tauri::command(async)]
pub(crate) fn edit_question(
    opened: State<'_, Opened>,
    message: i64,
    text: &str,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    opened.answer(|app| {
        let sent = app.edit_question(message, text)?;
        app.attach(sent.turn, 0, bridge::reader(channel));
        Ok(sent)
    })
}

#[tauri::command(async)]
pub(crate) fn continue_reply(
    opened: State<'_, Opened>,
    message: i64,
    channel: Channel<TurnBatch>,
) -> Answer<Sent> {
    opened.answer(|app| {
        let sent = app.continue_reply(message)?;
        app.attach(sent.turn, 0, bridge::reader(channel));
        Ok(sent)
    })
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

#[tauri::command(async)]
pub(crate) fn replay(
    opened: State<'_, Opened>,
    message: i64,
    channel: Channel<ReplayEvent>,
) -> Answer<()> {
    opened.answer(|app| app.replay(message, bridge::reader(channel)))
}

#[tauri::command]
pub(crate) fn stop_replay(opened: State<'_, Opened>, message: i64) -> Answer<()> {
    opened.app()?.stop_replay(message);
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn reply_file_hash(opened: State<'_, Opened>, message: i64) -> Answer<String> {
    opened.answer(|app| app.reply_file_hash(message))
}

#[tauri::command]
pub(crate) fn stop_writing(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.stop_writing();
    Ok(())
}
