//! The system asks the program to end: a log-out, a shutdown, Ctrl-C in the terminal it came from.

use std::io;

use tauri::AppHandle;

/// Ends the program as closing its window does, so that a reply that is being written is kept and
/// is marked as stopped, not as interrupted.
///
/// # Errors
/// If the system does not let us listen; then it ends the program at once, as it would have.
#[cfg(unix)]
pub(crate) fn listen(app: AppHandle) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let hear = move || {
        let mut heard = signals.forever();
        if heard.next().is_some() {
            close(&app);
        }
        // Who asks again does not want to wait.
        if let Some(signal) = heard.next() {
            std::process::exit(SIGNALLED + signal);
        }
    };
    std::thread::Builder::new().spawn(hear).map(drop)
}

#[cfg(unix)]
fn close(app: &AppHandle) {
    use tauri::Manager;

    // As the button that the window manager draws does it.
    let closed = app
        .get_webview_window(crate::window::LABEL)
        .map(|window| window.close());
    // Without a window there is nothing to ask.
    if !matches!(closed, Some(Ok(()))) {
        app.exit(0);
    }
}

/// Other systems end a program with a window through the window.
#[cfg(not(unix))]
pub(crate) fn listen(_app: AppHandle) -> io::Result<()> {
    Ok(())
}

/// What shells add to the number of the signal that ended a program.
#[cfg(unix)]
const SIGNALLED: i32 = 128;
