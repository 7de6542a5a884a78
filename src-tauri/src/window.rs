//! The one window: its size, and the doors that it does not have.

use std::time::Duration;

#[cfg(target_os = "linux")]
use candor_app::Phrase;
use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Emitter, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder};
use url::Url;

#[cfg(target_os = "linux")]
use crate::root::Opened;

/// The window's name in the capability file.
pub(crate) const LABEL: &str = "main";

/// Wide enough for the sidebar and the reading column, small enough for a laptop.
const SIZE: (f64, f64) = (1120.0, 760.0);
/// The least at which the pages are laid out.
const SIZE_MIN: (f64, f64) = (480.0, 400.0);

/// How long the page may take before the window closes without its answer: a person does not see
/// it wait, and a disk has long written by then.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// A page that dies again and again would keep the machine busy for nothing: then it stays blank,
/// and what is written goes on.
#[cfg(target_os = "linux")]
const PAGES_MAX: u32 = 8;

/// What a person hears of it.
#[cfg(target_os = "linux")]
fn page_died() -> Phrase {
    Phrase::new(
        "The page of this window had ended and was shown again; nothing that was kept is lost.",
        "Die Seite dieses Fensters war beendet und wurde neu angezeigt; nichts Aufgehobenes ist \
         verloren.",
    )
}

/// Opens the window.
///
/// # Errors
/// If the system has no display, or no web view.
pub(crate) fn open(app: &AppHandle) -> tauri::Result<WebviewWindow> {
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::default())
        .title("Candor")
        .inner_size(SIZE.0, SIZE.1)
        .min_inner_size(SIZE_MIN.0, SIZE_MIN.1)
        .on_navigation(is_our_own)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .build()?;
    #[cfg(target_os = "linux")]
    begin_again_where_the_page_dies(&window)?;
    Ok(window)
}

/// The page runs in a process of its own, which the system may end. A new one shows what the program
/// has kept and goes on with the replies that are being written; it says once that it had to.
#[cfg(target_os = "linux")]
fn begin_again_where_the_page_dies(window: &WebviewWindow) -> tauri::Result<()> {
    use std::cell::Cell;

    use webkit2gtk::WebViewExt;

    let app = window.app_handle().clone();
    window.with_webview(move |view| {
        let begun = Cell::new(0);
        view.inner().connect_web_process_terminated(move |view, _| {
            if begun.get() == PAGES_MAX {
                return;
            }
            begun.set(begun.get() + 1);
            if let Ok(app) = app.state::<Opened>().app() {
                app.notice(page_died());
            }
            view.reload();
        });
    })
}

/// Asks the page to keep what was typed and not sent, after which it closes the window. One that
/// does not answer is closed all the same.
pub(crate) fn close(app: &AppHandle) {
    // The page hears nothing only if there is none any more.
    let _ = app.emit("closing", ());
    let app = app.clone();
    std::thread::spawn(move || {
        std::thread::sleep(CLOSE_PATIENCE);
        if let Some(window) = app.get_webview_window(LABEL) {
            let _ = window.destroy();
        }
    });
}

/// Whether an address is one of the pages inside the program.
///
/// A link in a reply must never replace them: what is shown there could then ask for our
/// commands.
fn is_our_own(url: &Url) -> bool {
    url.scheme() == "tauri" && url.host_str() == Some("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_pages_are_shown() {
        let cases = [
            ("tauri://localhost/", true),
            ("tauri://localhost/index.html#x", true),
            ("tauri://elsewhere/", false),
            ("https://localhost/", false),
            ("http://tauri.localhost/", false),
            ("file:///etc/passwd", false),
            ("about:blank", false),
            ("data:text/html,x", false),
        ];
        for (address, expected) in cases {
            let url = Url::parse(address).expect("a valid address");
            assert_eq!(is_our_own(&url), expected, "{address}");
        }
    }
}
