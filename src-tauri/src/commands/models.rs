//! Model files and the device that computes.

use candor_app::wire::{ModelDetails, ModelEntry, ModelFit, Settings};
use tauri::{State, WebviewWindow};

use super::Answer;
use crate::picker::{FilePicker, Wanted};
use crate::root::Opened;

#[tauri::command]
pub(crate) async fn pick_model(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<ModelEntry>> {
    let tongue = opened.app()?.tongue();
    match picker.pick(&window, Wanted::Model, tongue).await {
        Some(path) => opened.answer(|app| app.add_model(&path)).map(Some),
        None => Ok(None),
    }
}

#[tauri::command(async)]
pub(crate) fn add_model(opened: State<'_, Opened>, path: &str) -> Answer<ModelEntry> {
    opened.answer(|app| app.add_model(path.as_ref()))
}

#[tauri::command(async)]
pub(crate) fn load_model(opened: State<'_, Opened>, id: &str) -> Answer<()> {
    opened.answer(|app| app.load_model(id))
}

#[tauri::command(async)]
pub(crate) fn model_details(opened: State<'_, Opened>, id: &str) -> Answer<ModelDetails> {
    opened.answer(|app| app.model_details(id))
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
    opened.answer(|app| app.use_gpu())
}

#[tauri::command(async)]
pub(crate) fn check_again(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.check_again();
    Ok(())
}

#[tauri::command(async)]
pub(crate) fn forget_model(opened: State<'_, Opened>, id: &str) -> Answer<()> {
    opened.answer(|app| app.forget_model(id))
}

#[tauri::command(async)]
pub(crate) fn model_fits(opened: State<'_, Opened>, ids: Vec<String>) -> Answer<Vec<ModelFit>> {
    opened.answer(|app| app.model_fits(&ids))
}

#[tauri::command]
pub(crate) async fn pick_folder(
    opened: State<'_, Opened>,
    picker: State<'_, Box<dyn FilePicker>>,
    window: WebviewWindow,
) -> Answer<Option<Settings>> {
    let tongue = opened.app()?.tongue();
    match picker.pick_folder(&window, tongue).await {
        Some(path) => opened.answer(|app| app.add_model_folder(&path)).map(Some),
        None => Ok(None),
    }
}

#[tauri::command(async)]
pub(crate) fn add_model_folder(opened: State<'_, Opened>, path: &str) -> Answer<Settings> {
    opened.answer(|app| app.add_model_folder(path.as_ref()))
}

#[tauri::command(async)]
pub(crate) fn remove_model_folder(opened: State<'_, Opened>, id: &str) -> Answer<Settings> {
    opened.answer(|app| app.remove_model_folder(id))
}

#[tauri::command(async)]
pub(crate) fn search_folders(opened: State<'_, Opened>) -> Answer<()> {
    opened.app()?.search_folders();
    Ok(())
}
