//! Ctrl-C is a Stop, and so is being asked to end by the system (SIGTERM).

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use candor_app::headless::CancelToken;

use crate::failure::{Exit, Failure, Report};

/// After so many presses on one task the program is left at once, whatever it is doing.
const PRESSES_MAX: u32 = 3;

/// Hears Ctrl-C and SIGTERM once it listens.
pub(crate) struct Interrupts {
    token: Mutex<CancelToken>,
    presses: AtomicU32,
    /// The system wants the program to end; nothing new is begun then.
    terminated: AtomicBool,
    /// Told of each press when nothing is to be stopped.
    idle: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Interrupts {
    /// They do not listen yet: what only describes a file is simply ended by the system.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            token: Mutex::new(CancelToken::new()),
            presses: AtomicU32::new(0),
            terminated: AtomicBool::new(false),
            idle: Mutex::new(None),
        })
    }

    /// Begins to listen; returns the flag that the next press sets.
    pub(crate) fn listen(self: &Arc<Self>) -> Result<CancelToken, Failure> {
        signals::listen(Arc::clone(self)).map_err(|error| {
            let message = format!("Ctrl-C cannot be listened for: {error}");
            Failure::from(Report::new(Exit::Failed, "signals", message))
        })?;
        Ok(self.token())
    }

    /// The flag that the next press sets.
    fn token(&self) -> CancelToken {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A flag for the next task; presses are counted anew.
    pub(crate) fn renew(&self) -> CancelToken {
        let fresh = CancelToken::new();
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        self.presses.store(0, Ordering::SeqCst);
        // It may have come just before, for a task that was over.
        if self.terminated.load(Ordering::SeqCst) {
            fresh.cancel();
        }
        fresh
    }

    /// Whether not only the task is to end, but the program.
    pub(crate) fn want_to_leave(&self) -> bool {
        self.terminated.load(Ordering::SeqCst) || self.presses.load(Ordering::SeqCst) > 1
    }

    /// How the program ends: an interruption has the code of what interrupted.
    pub(crate) fn name(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Interrupted if self.terminated.load(Ordering::SeqCst) => Exit::Terminated,
            other => other,
        }
    }

    /// Says whom a press is told to while nothing is to be stopped; none while something is.
    pub(crate) fn when_idle(&self, told: Option<Box<dyn Fn() + Send>>) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// Only where the system has such a signal.
    #[cfg(unix)]
    fn terminate(&self) {
        self.terminated.store(true, Ordering::SeqCst);
        self.press();
    }

    fn press(&self) {
        let presses = self.presses.fetch_add(1, Ordering::SeqCst) + 1;
        self.token().cancel();
        match &*self.idle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(told) => told(),
            None if presses >= PRESSES_MAX => process::exit(self.name(Exit::Interrupted) as i32),
            None => {}
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::sync::Arc;
    use std::thread;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use super::Interrupts;

    pub(super) fn listen(interrupts: Arc<Interrupts>) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        // It waits for signals until the program ends.
        let hear = move || {
            for signal in signals.forever() {
                match signal {
                    SIGTERM => interrupts.terminate(),
                    _ => interrupts.press(),
                }
            }
        };
        thread::Builder::new().spawn(hear).map(drop)
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;
    use std::sync::Arc;

    use super::Interrupts;

    pub(super) fn listen(interrupts: Arc<Interrupts>) -> io::Result<()> {
        ctrlc::set_handler(move || interrupts.press()).map_err(io::Error::other)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_has_the_code_of_what_interrupted() {
        let interrupts = Interrupts::new();
        interrupts.press();
        assert!(interrupts.token().is_cancelled() && !interrupts.want_to_leave());
        assert_eq!(interrupts.name(Exit::Interrupted), Exit::Interrupted);
        assert!(
            !interrupts.renew().is_cancelled(),
            "a press is for one task"
        );
        interrupts.terminate();
        assert!(interrupts.renew().is_cancelled() && interrupts.want_to_leave());
        assert_eq!(interrupts.name(Exit::Interrupted), Exit::Terminated);
        assert_eq!(interrupts.name(Exit::Refused), Exit::Refused);
    }
}
