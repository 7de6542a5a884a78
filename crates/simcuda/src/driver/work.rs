//! Pieces of work, and how each runs.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

use crate::exec::{self, Options};
use crate::fault::{Fault, FaultKind};
use crate::settings::Wrong;

use super::codes::Code;
use super::launch::Launch;
use super::{Driver, Handle, Outcome};

/// What a stream does in its turn.
#[derive(Clone)]
pub(crate) enum Work {
    /// Waits for what it was queued after.
    Nothing,
    /// Runs a kernel.
    Launch(Arc<Launch>),
    /// Fails, because it was told to.
    Fail(Code),
    /// Writes bytes that were taken when it was queued.
    Upload { to: u64, bytes: Arc<[u8]> },
    /// Writes what then stands in page-locked memory.
    UploadLate { to: u64, from: usize, len: u64 },
    /// Writes page-locked memory.
    Download { to: usize, from: u64, len: u64 },
    /// Copies within the device.
    Copy { to: u64, from: u64, len: u64 },
    /// Repeats a value of one, two or four bytes.
    Fill {
        to: u64,
        value: [u8; 4],
        width: u8,
        count: u64,
    },
    /// Calls a function of the host.
    Host { function: HostFunction, data: usize },
    /// Notes the time in an event.
    Record(Handle),
    /// Gives memory back.
    Free(u64),
    /// Runs a graph.
    Graph(Arc<[Work]>),
}

/// `CUhostFn`.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a host function of a stream, which may not call the driver.
pub(crate) fn in_callback() -> bool {
    IN_CALLBACK.get()
}

impl Driver {
    /// Runs one piece of work.
    ///
    /// # Errors
    /// The code with which the device is now dead.
    pub(crate) fn run_work(&mut self, context: Handle, work: &Work) -> Outcome<()> {
        match work {
            Work::Nothing => Ok(()),
            Work::Launch(launch) => self.run_launch(context, launch),
            Work::Fail(code) => self.kill(
                context,
                *code,
                String::from("a launch that was told to fail"),
            ),
            Work::Graph(nodes) => nodes
                .iter()
                .try_for_each(|node| self.run_work(context, node)),
            Work::Host { function, data } => {
                IN_CALLBACK.set(true);
                // SAFETY: the caller of `cuLaunchHostFunc` answers for the function and its data.
                unsafe { function(*data as *mut c_void) };
                IN_CALLBACK.set(false);
                Ok(())
            }
            Work::Record(event) => {
                let ran = self.ran;
                // An event may be destroyed before its record runs.
                if let Ok(event) = self.events.get_mut(*event) {
                    event.clock = Some(ran);
                }
                Ok(())
            }
            Work::Free(address) => self.give_back(context, *address),
            Work::Upload { .. }
            | Work::UploadLate { .. }
            | Work::Download { .. }
            | Work::Copy { .. }
            | Work::Fill { .. } => match self.move_bytes(context, work)? {
                Ok(()) => Ok(()),
                Err(fault) => self.die(context, &fault),
            },
        }
    }

    fn move_bytes(&mut self, context: Handle, work: &Work) -> Outcome<Result<(), Fault>> {
        // A graph may outlive the page-locked memory that it names.
        if let Work::UploadLate {
            from: host, len, ..
        }
        | Work::Download { to: host, len, .. } = work
            && !self.host.holds(*host, *len as usize)
        {
            return Ok(Err(Fault::of_host(FaultKind::OutOfBounds {
                address: *host as u64,
                bytes: *len,
                nearest: None,
            })));
        }
        let memory = &self.device_of(context)?.memory;
        Ok(match work {
            Work::Upload { to, bytes } => memory.write(*to, bytes),
            Work::UploadLate { to, from, len } => {
                // SAFETY: the range is page-locked, as was just checked, so that it exists.
                let from = unsafe { std::slice::from_raw_parts(*from as *const u8, *len as usize) };
                memory.write(*to, from)
            }
            Work::Download { to, from, len } => {
                // SAFETY: as above.
                let to = unsafe { std::slice::from_raw_parts_mut(*to as *mut u8, *len as usize) };
                memory.read(*from, to)
            }
            Work::Copy { to, from, len } => memory.copy(*to, *from, *len),
            Work::Fill {
                to,
                value,
                width: 1,
                count,
            } => memory.fill(*to, *count, value[0]),
            Work::Fill {
                to,
                value,
                width,
                count,
            } => {
                let bytes = value[..usize::from(*width)].repeat(*count as usize);
                memory.write(*to, &bytes)
            }
            _ => Ok(()),
        })
    }

    fn run_launch(&mut self, context: Handle, launch: &Launch) -> Outcome<()> {
        let wrong = self.injected.ran(&launch.kernel.name, &self.settings);
        let options = Options {
            threads: self.settings.workers,
            seed: self.settings.seed.unwrap_or(0),
            races: self.settings.races,
            shared_bytes_max: launch.shared_bytes_max,
            ..Options::default()
        };
        self.counters.add("runs", 1);
        let memory = &self.device_of(context)?.memory;
        let result = match wrong {
            Some(Wrong::Nothing) => Ok(()),
            Some(wrong) => run_wrong(launch, memory, &options, wrong),
            None => exec::run(&launch.exec(), memory, &options),
        };
        match result {
            Ok(()) => Ok(()),
            Err(fault) => self.die(context, &fault),
        }
    }

    fn die(&mut self, context: Handle, fault: &Fault) -> Outcome<()> {
        let code = match fault.kind {
            FaultKind::OutOfBounds { .. } => Code::ILLEGAL_ADDRESS,
            FaultKind::Misaligned { .. } => Code::MISALIGNED_ADDRESS,
            FaultKind::Endless { .. } => Code::LAUNCH_TIMEOUT,
            FaultKind::Trap => Code::ILLEGAL_INSTRUCTION,
            _ => Code::LAUNCH_FAILED,
        };
        self.kill(context, code, fault.to_string())
    }

    /// Ends the device for this process.
    fn kill(&mut self, context: Handle, code: Code, what: String) -> Outcome<()> {
        use std::io::Write as _;
        // The caller is told a number only; whoever reads a failed test needs the place.
        let _ = writeln!(std::io::stderr(), "simulated driver: {}: {what}", code.0);
        self.fault = Some(what);
        let device = self.device_of(context)?;
        device.dead = Some(code);
        Err(code)
    }
}

/// Runs a kernel and spoils what it has written.
fn run_wrong(
    launch: &Launch,
    memory: &crate::memory::Memory,
    options: &Options,
    wrong: Wrong,
) -> Result<(), Fault> {
    let read = |base: u64, len: u64| {
        let mut bytes = vec![0; len as usize];
        memory.read(base, &mut bytes).map(|()| (base, bytes))
    };
    let before = memory.allocations().map(|(base, len)| read(base, len));
    let before = before.collect::<Result<Vec<_>, _>>()?;
    exec::run(&launch.exec(), memory, options)?;
    for (base, old) in before {
        let (_, mut new) = read(base, old.len() as u64)?;
        spoil(&old, &mut new, wrong);
        memory.write(base, &new)?;
    }
    Ok(())
}

/// Spoils the words that differ from what was there before.
fn spoil(old: &[u8], new: &mut [u8], wrong: Wrong) {
    let words = new.chunks_exact_mut(4).zip(old.chunks_exact(4));
    let mut changed = words.filter(|(new, old)| new != old).map(|(new, _)| new);
    let rewrite = |word: &mut [u8], change: &dyn Fn(f32) -> f32| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(word);
        word.copy_from_slice(&change(f32::from_le_bytes(bytes)).to_le_bytes());
    };
    match wrong {
        Wrong::Nothing => {}
        // All ones are a NaN in every format of floating point.
        Wrong::Nan => changed.for_each(|word| word.fill(0xff)),
        Wrong::Scaled => changed.for_each(|word| rewrite(word, &|value| value * 1.5)),
        Wrong::First => {
            if let Some(word) = changed.next() {
                rewrite(word, &|value| value + 1.0);
            }
        }
    }
}
