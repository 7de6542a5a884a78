//! The app's news, on their way to the window.

use candor_app::{Attached, Listener, News};
use tauri::ipc::{Channel, IpcResponse};
use tauri::{AppHandle, Emitter};

/// Hands what a turn or a replay tells to the page that asked for it. It comes at most once a
/// frame: the web view has no back-pressure, and thousands of messages a second would leave it no
/// time to draw.
pub(crate) fn reader<T: IpcResponse + Send + 'static>(
    channel: Channel<T>,
) -> Box<dyn FnMut(T) -> Attached + Send> {
    Box::new(move |news| match channel.send(news) {
        Ok(()) => Attached::Stay,
        // The page is gone. The reply goes on without it, and a new page can attach to it.
        Err(_) => Attached::Gone,
    })
}

/// Tells every window what is rare and concerns all of it.
pub(crate) fn listener(app: AppHandle) -> Listener {
    Box::new(move |news| {
        // It fails only while the windows are being closed, when nobody needs to know.
        let _ = match news {
            News::Status(status) => app.emit("status", status),
            News::Conversations(list) => app.emit("conversations", list),
            News::Models(list) => app.emit("models", list),
            News::Folders(list) => app.emit("folders", list),
            News::Downloads(list) => app.emit("downloads", list),
            News::TurnEnded(turn) => app.emit("turn-ended", turn),
        };
    })
}
