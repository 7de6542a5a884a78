//! The hub, and downloads from it.

use candor_app::wire::{Download, HubListing, HubModel};
use tauri::State;

use super::Answer;
use crate::root::Opened;

#[tauri::command(async)]
pub(crate) fn hub_search(opened: State<'_, Opened>, words: &str) -> Answer<Vec<HubModel>> {
    opened.answer(|app| app.hub_search(words))
}

#[tauri::command(async)]
pub(crate) fn hub_files(opened: State<'_, Opened>, repo: &str) -> Answer<HubListing> {
    opened.answer(|app| app.hub_files(repo))
}

#[tauri::command(async)]
pub(crate) fn start_download(
    opened: State<'_, Opened>,
    repo: &str,
    path: &str,
) -> Answer<Download> {
    opened.answer(|app| app.start_download(repo, path))
}

#[tauri::command(async)]
pub(crate) fn download_starter(opened: State<'_, Opened>) -> Answer<Download> {
    opened.answer(|app| app.download_starter())
}

#[tauri::command(async)]
pub(crate) fn pause_download(opened: State<'_, Opened>, id: u32) -> Answer<()> {
    opened.answer(|app| app.pause_download(id))
}

#[tauri::command(async)]
pub(crate) fn resume_download(opened: State<'_, Opened>, id: u32) -> Answer<()> {
    opened.answer(|app| app.resume_download(id))
}

#[tauri::command(async)]
pub(crate) fn remove_download(opened: State<'_, Opened>, id: u32) -> Answer<()> {
    opened.answer(|app| app.remove_download(id))
}
