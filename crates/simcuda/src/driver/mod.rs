//! The driver: its objects, and one lock around them.
//!
//! Every entry point in `entry` goes through [`entered`] or one of its kin, which hold what all of
//! them have in common: injected faults, whether the driver was started, which context the thread
//! uses, and whether a fault has killed the device. Work is queued in `stream` and runs at a
//! synchronising call; `capture` holds graphs.

mod capture;
mod codes;
mod context;
mod counters;
mod device;
mod entry;
mod host;
mod inject;
mod launch;
mod module;
mod pool;
mod stream;
mod table;
mod versions;
mod work;

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::settings::Settings;

use capture::{Capture, Graph, GraphExec};
use codes::{Code, SUCCESS};
use context::Context;
use counters::Counters;
use device::Device;
use host::HostMemory;
use inject::Injected;
use module::{Function, Module};
use pool::Pool;
use stream::{Event, Stream};
use table::Table;

/// What an entry point comes to.
pub(crate) type Outcome<T> = Result<T, Code>;

/// A handle as the interface gives it out: a pointer that points nowhere.
pub(crate) type Handle = u64;

/// All that the driver of one process knows.
pub(crate) struct Driver {
    pub(crate) settings: Settings,
    pub(crate) injected: Injected,
    pub(crate) counters: Counters,
    /// Empty until `cuInit`.
    devices: Vec<Device>,
    started: bool,
    contexts: Table<Context>,
    streams: Table<Stream>,
    events: Table<Event>,
    modules: Table<Module>,
    functions: Table<Function>,
    captures: Table<Capture>,
    graphs: Table<Graph>,
    execs: Table<GraphExec>,
    pools: Table<Pool>,
    host: HostMemory,
    /// Number of the last piece of work that was queued anywhere.
    submitted: u64,
    /// How many pieces have run: what events have for a clock.
    ran: u64,
    /// What the kernel that killed a device did.
    pub(crate) fault: Option<String>,
}

impl Driver {
    fn new() -> Self {
        let mut settings = Settings::default();
        #[expect(
            clippy::disallowed_methods,
            reason = "a program under test is a child that is told in no other way"
        )]
        if let Ok(text) = std::env::var(crate::ENVIRONMENT)
            && let Err(error) = settings.apply(&text)
        {
            // A machine other than the one asked for would make the test mean nothing.
            panic!("{}: {error}", crate::ENVIRONMENT);
        }
        Self {
            settings,
            injected: Injected::default(),
            counters: Counters::default(),
            devices: Vec::new(),
            started: false,
            contexts: Table::default(),
            streams: Table::default(),
            events: Table::default(),
            modules: Table::default(),
            functions: Table::default(),
            captures: Table::default(),
            graphs: Table::default(),
            execs: Table::default(),
            pools: Table::default(),
            host: HostMemory::default(),
            submitted: 0,
            ran: 0,
            fault: None,
        }
    }

    /// Takes settings over; what counts "from now" starts anew.
    pub(crate) fn configure(&mut self, text: &str) -> Result<(), crate::settings::SettingsError> {
        let mut settings = self.settings.clone();
        settings.apply(text)?;
        self.settings = settings;
        self.injected = Injected::default();
        for device in &mut self.devices {
            device.used_by_others = self.settings.used;
        }
        Ok(())
    }

    /// The counters as text, with what lives now.
    pub(crate) fn count(&self) -> String {
        let (alive, alive_bytes) = self.allocated();
        let (pinned, pinned_bytes) = self.host.count();
        self.counters.text(&[
            ("alive", alive),
            ("alive_bytes", alive_bytes),
            ("pinned", pinned),
            ("pinned_bytes", pinned_bytes),
        ])
    }

    fn start(&mut self) -> Outcome<()> {
        if let Some(code) = self.settings.init {
            return Err(Code(code));
        }
        if self.settings.devices == 0 {
            return Err(Code::NO_DEVICE);
        }
        if !self.started {
            self.started = true;
            for ordinal in 0..self.settings.devices {
                let pool = self.pools.insert(Pool::new(ordinal as i32));
                self.devices
                    .push(Device::new(ordinal, &self.settings, pool));
            }
        }
        Ok(())
    }
}

/// How often a call that hangs looks whether it is still to.
const HANG_LOOK: Duration = Duration::from_millis(5);

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// The driver, made on its first use.
pub(crate) fn driver<T>(use_it: impl FnOnce(&mut Driver) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Driver>> =
        DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(guard.get_or_insert_with(Driver::new))
}

/// What every entry point does first and last: it may be told to hang, to crash or to fail.
fn entered(name: &'static str, body: impl FnOnce(&mut Driver) -> Outcome<()>) -> c_int {
    if work::in_callback() {
        return Code::NOT_PERMITTED.0;
    }
    let ill = driver(|driver| {
        let Driver {
            injected,
            settings,
            counters,
            ..
        } = driver;
        counters.called(name);
        let ill = injected.called(name, settings);
        if matches!(ill, inject::Ill::Hangs) {
            counters.add("hung", 1);
        }
        ill
    });
    match ill {
        inject::Ill::Well => {}
        inject::Ill::Fails(code) => return code.0,
        inject::Ill::Hangs => {
            while driver(|driver| inject::hangs(name, &driver.settings)) {
                std::thread::sleep(HANG_LOOK);
            }
        }
        inject::Ill::Crashes => std::process::abort(),
    }
    match driver(body) {
        Ok(()) => SUCCESS,
        Err(code) => code.0,
    }
}

/// An entry point that needs a started driver.
fn started(name: &'static str, body: impl FnOnce(&mut Driver) -> Outcome<()>) -> c_int {
    entered(name, |driver| {
        if !driver.started {
            return Err(Code::NOT_INITIALIZED);
        }
        body(driver)
    })
}

/// An entry point that works in the context of the calling thread, which it is given. On a device
/// that a fault has killed it answers with that fault's code.
fn current(name: &'static str, body: impl FnOnce(&mut Driver, Handle) -> Outcome<()>) -> c_int {
    started(name, |driver| {
        let context = driver.current_context()?;
        driver.check_alive(context)?;
        body(driver, context)
    })
}
