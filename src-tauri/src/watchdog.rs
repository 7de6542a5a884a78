//! A page that never comes up. The window is blank then, and nobody who looks at it learns why: so the
//! program starts once more, drawing the sure way, where that may help.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use candor_server::Switch as Server;
use tauri::{AppHandle, Manager};

use crate::arguments::{AFTER_SILENCE, Rendering};
use crate::graphics::{DISABLE_DMABUF, SWITCHES, Switch};
use crate::root::Opened;
use crate::{become_it, surroundings};

/// How long a page may take to its first call: many times what it needs on a slow disk, and about as
/// long as somebody looks at a blank window.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the window is drawn, and by whose choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing {
    /// What the command line says.
    pub(crate) wish: Rendering,
    /// What was switched, if anything.
    pub(crate) switch: Option<Switch>,
    /// Whether the user set one of the switches.
    pub(crate) user_has_chosen: bool,
}

/// What to do about a page that is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Start again, drawing the sure way.
    StartAgain,
    /// Nothing, and why.
    Leave(&'static str),
}

impl Drawing {
    fn remedy(&self) -> Remedy {
        let is_safe = self.switch.is_some_and(|it| it.name == DISABLE_DMABUF);
        match self.wish {
            _ if self.user_has_chosen => Remedy::Leave("it is drawn as its variables say"),
            Rendering::Usual if !is_safe => Remedy::StartAgain,
            _ => Remedy::Leave("it is drawn the sure way already"),
        }
    }

    /// Why something was switched, for a report.
    pub(crate) fn why(&self) -> Option<&'static str> {
        self.switch.map(|switch| switch.why)
    }
}

/// Whether the page has come up.
pub(crate) struct Watchdog {
    drawing: Drawing,
    came_up: AtomicBool,
}

impl Watchdog {
    pub(crate) fn new(drawing: Drawing) -> Self {
        Self {
            drawing,
            came_up: AtomicBool::new(false),
        }
    }

    /// How the window is drawn.
    pub(crate) fn drawing(&self) -> Drawing {
        self.drawing
    }

    /// The page has said its first word.
    pub(crate) fn page_came_up(&self) {
        self.came_up.store(true, Ordering::Relaxed);
    }
}

/// Waits for the page's first call, on a thread of its own: whatever keeps the page may keep the thread
/// that draws.
pub(crate) fn watch(app: AppHandle) {
    thread::spawn(move || {
        thread::sleep(PATIENCE);
        // None once the program is ending.
        let Some(dog) = app.try_state::<Watchdog>() else {
            return;
        };
        if dog.came_up.load(Ordering::Relaxed) {
            return;
        }
        let silent = format!("The page did not come up within {} s", PATIENCE.as_secs());
        match dog.drawing.remedy() {
            Remedy::Leave(why) => eprintln!("{silent}; {why}"),
            Remedy::StartAgain => {
                eprintln!("{silent}; the program starts again and draws the sure way");
                if let Err(error) = start_again(&app) {
                    eprintln!("It cannot be started again: {error}");
                }
            }
        }
    });
}

/// Puts a new start of this program in its place; returns only if that fails.
fn start_again(app: &AppHandle) -> io::Result<()> {
    app.state::<Server>().stop();
    app.state::<Opened>().close();
    let mut command = Command::new(surroundings::own_program());
    command.arg(AFTER_SILENCE);
    command.args(std::env::args_os().skip(1));
    // What is set of them was set by this program, and would look like the user's choice.
    SWITCHES.into_iter().for_each(|name| {
        command.env_remove(name);
    });
    become_it(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_page_is_started_again_where_that_changes_something() {
        use Rendering::{AfterSilence, Safe, Usual};
        let switch = |name| Some(Switch { name, why: "" });
        let (safe, other) = (switch(DISABLE_DMABUF), switch(SWITCHES[1]));
        let left = Remedy::Leave("it is drawn the sure way already");
        let chosen = Remedy::Leave("it is drawn as its variables say");
        let cases = [
            (Usual, None, false, Remedy::StartAgain),
            (Usual, other, false, Remedy::StartAgain),
            (Usual, safe, false, left),
            (Safe, safe, false, left),
            // Once is enough.
            (AfterSilence, safe, false, left),
            (Usual, None, true, chosen),
            (Safe, None, true, chosen),
        ];
        for (wish, switch, user_has_chosen, expected) in cases {
            let drawing = Drawing {
                wish,
                switch,
                user_has_chosen,
            };
            assert_eq!(drawing.remedy(), expected, "{drawing:?}");
        }
    }
}
