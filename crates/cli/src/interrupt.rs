//! Ctrl-C is a Stop.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use candor_app::headless::CancelToken;

use crate::failure::{Exit, Failure, Report};

/// After so many presses on one task the program is left at once, whatever it is doing.
const PRESSES_MAX: u32 = 3;

/// Hears Ctrl-C from its installation on.
pub(crate) struct Interrupts {
    token: Mutex<CancelToken>,
    presses: AtomicU32,
    /// Told of each press when nothing is to be stopped.
    idle: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Interrupts {
    /// Begins to listen.
    pub(crate) fn install() -> Result<Arc<Self>, Failure> {
        let interrupts = Arc::new(Self {
            token: Mutex::new(CancelToken::new()),
            presses: AtomicU32::new(0),
            idle: Mutex::new(None),
        });
        let heard = Arc::clone(&interrupts);
        ctrlc::set_handler(move || heard.press()).map_err(|error| {
            let message = format!("Ctrl-C cannot be listened for: {error}");
            Failure::from(Report::new(Exit::Failed, "signals", message))
        })?;
        Ok(interrupts)
    }

    /// The flag that the next press sets.
    pub(crate) fn token(&self) -> CancelToken {
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
        fresh
    }

    /// Presses since the task began.
    pub(crate) fn presses(&self) -> u32 {
        self.presses.load(Ordering::SeqCst)
    }

    /// Says whom a press is told to while nothing is to be stopped; none while something is.
    pub(crate) fn when_idle(&self, told: Option<Box<dyn Fn() + Send>>) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    fn press(&self) {
        let presses = self.presses.fetch_add(1, Ordering::SeqCst) + 1;
        self.token().cancel();
        match &*self.idle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(told) => told(),
            None if presses >= PRESSES_MAX => process::exit(Exit::Interrupted as i32),
            None => {}
        }
    }
}
