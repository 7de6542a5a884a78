//! The app's news, on their way to the window.

use candor_app::wire::TurnBatch;
use candor_app::{Attached, Listener, News, TurnReader};
use tauri::ipc::Channel;
use tauri::{AppHandle, Emitter};

/// Hands a turn's batches to the page that asked for them. They come at most once a frame: the
/// web view has no back-pressure, and thousands of messages a second would leave it no time to
/// draw.
pub(crate) fn reader(channel: Channel<TurnBatch>) -> TurnReader {
    Box::new(move |batch| match channel.send(batch) {
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
