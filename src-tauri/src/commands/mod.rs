//! The window's commands, one call of the app each. `build.rs` lists them and
//! `capabilities/main.json` grants them; a command that is in neither cannot be called.
//!
//! They run on worker threads, because the store may be slow, except those that only set a flag:
//! a Stop must never wait behind other work.

pub(crate) mod chats;
pub(crate) mod conversations;
pub(crate) mod downloads;
pub(crate) mod models;
pub(crate) mod replies;
pub(crate) mod server;
pub(crate) mod window;

use candor_app::wire::WireError;
use tauri::Wry;
use tauri::ipc::Invoke;

type Answer<T> = Result<T, WireError>;

/// Finds the command of a call.
pub(crate) fn handler() -> impl Fn(Invoke<Wry>) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        chats::chat_settings,
        chats::keep_chat_settings,
        chats::preview_template,
        conversations::add_card,
        conversations::card_text,
        conversations::count_tokens,
        conversations::delete_conversation,
        conversations::duplicate,
        conversations::edit_reply,
        conversations::export_conversations,
        conversations::import_conversations,
        conversations::keep_unsent,
        conversations::open_conversation,
        conversations::pick_card,
        conversations::place_conversation,
        conversations::rename_conversation,
        conversations::rename_folder,
        conversations::restore_conversation,
        conversations::search,
        conversations::show_message,
        downloads::download_starter,
        downloads::hub_files,
        downloads::hub_search,
        downloads::pause_download,
        downloads::remove_download,
        downloads::resume_download,
        downloads::start_download,
        models::add_model,
        models::add_model_folder,
        models::check_again,
        models::forget_model,
        models::load_model,
        models::model_details,
        models::model_fits,
        models::pick_folder,
        models::pick_model,
        models::remove_model_folder,
        models::search_folders,
        models::stop_loading,
        models::use_cpu,
        models::use_gpu,
        replies::attach,
        replies::continue_reply,
        replies::edit_question,
        replies::regenerate,
        replies::replay,
        replies::reply_file_hash,
        replies::send,
        replies::stop,
        replies::stop_replay,
        replies::stop_writing,
        server::server_state,
        server::switch_server,
        window::bootstrap,
        window::close_window,
        window::diagnostics,
        window::open_link,
        window::save_report,
        window::save_settings,
    ]
}
