//! Steering the simulated driver from a test.
//!
//! The library is loaded by its path and has its own memory: a test that also has this crate linked
//! in talks to the loaded one through three exported functions, which [`Library`] wraps.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::driver::driver;
use crate::settings::{Settings, SettingsError};

/// What a program under test reads its settings from, when it loads the library by itself.
pub const ENVIRONMENT: &str = "CANDOR_SIMCUDA";

/// File name of the library as cargo builds it.
pub const FILE: &str = "libsimcuda.so";

/// Changes whenever the exported functions do: a library that an older build left behind must not
/// be taken for this one.
const INTERFACE: c_int = 1;

/// Longest text that crosses at once. The counters of a run have a few hundred lines.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// The loaded library.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    configure: ConfigureFn,
    tell: TellFn,
}

type ConfigureFn = unsafe extern "C" fn(*const c_char) -> c_int;
type TellFn = unsafe extern "C" fn(c_int, *mut c_char, usize) -> usize;

/// Why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// Cargo has not built it where this program looks.
    #[error(
        "the simulated driver is not at {path}: a package whose tests use it needs candor-simcuda \
         among its dev-dependencies"
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The loader refused it.
    #[error("{path} does not load: {message}")]
    Load {
        /// What was loaded.
        path: PathBuf,
        /// What the loader says.
        message: String,
    },
    /// It is of another build.
    #[error("{path} is of another build than this test")]
    OtherBuild {
        /// What was loaded.
        path: PathBuf,
    },
    /// A folder for a child program could not be made.
    #[error("no folder for the library: {message}")]
    Folder {
        /// What the system says.
        message: String,
    },
}

/// What the driver is asked to tell.
#[derive(Clone, Copy)]
enum Tell {
    Counters = 0,
    Fault = 1,
}

impl Library {
    /// Where cargo puts the library: beside the test that is running, or one folder up for an
    /// example or a program.
    ///
    /// # Errors
    /// When it is not there.
    pub fn path() -> Result<PathBuf, LibraryError> {
        let program = std::env::current_exe().unwrap_or_default();
        let beside = program.parent().unwrap_or(Path::new("/"));
        let places = [
            beside.join(FILE),
            beside.join("deps").join(FILE),
            beside.join("../deps").join(FILE),
        ];
        let [first, ..] = &places;
        let missing = LibraryError::Missing {
            path: first.clone(),
        };
        places
            .into_iter()
            .find(|path| path.is_file())
            .ok_or(missing)
    }

    /// Loads the library so that this process finds it under the name `libcuda.so`. It is never
    /// unloaded, and loading it again gives the same one.
    ///
    /// # Errors
    /// When there is none, or it does not load.
    pub fn load() -> Result<Self, LibraryError> {
        static LOADED: OnceLock<Result<Library, LibraryError>> = OnceLock::new();
        LOADED
            .get_or_init(|| Self::load_from(&Self::path()?))
            .clone()
    }

    fn load_from(path: &Path) -> Result<Self, LibraryError> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let load_error = |message: String| LibraryError::Load {
            path: path.clone(),
            message,
        };
        let text = CString::new(path.as_os_str().as_encoded_bytes());
        let text = text.map_err(|error| load_error(error.to_string()))?;
        // SAFETY: the library is this crate's own and has no initialisers that do anything.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(load_error(loader_message()));
        }
        let other = LibraryError::OtherBuild { path: path.clone() };
        let interface = symbol(handle, c"simcuda_interface").ok_or(other.clone())?;
        // SAFETY: the function has had this type from the first on.
        let interface: extern "C" fn() -> c_int = unsafe { std::mem::transmute(interface) };
        if interface() != INTERFACE {
            return Err(other);
        }
        let configure = symbol(handle, c"simcuda_configure").ok_or(other.clone())?;
        let tell = symbol(handle, c"simcuda_tell").ok_or(other)?;
        // SAFETY: the library has this interface, in which the functions have these types.
        unsafe {
            Ok(Self {
                configure: std::mem::transmute::<*mut c_void, ConfigureFn>(configure),
                tell: std::mem::transmute::<*mut c_void, TellFn>(tell),
            })
        }
    }

    /// Makes the machine exactly this. Devices and their memory are as at the first `cuInit`; the
    /// rest, with all that is to go wrong, can change at any time, and what counts "from now" does
    /// so from this call on.
    pub fn configure(&self, settings: &Settings) {
        // The text of settings is understood by the settings of the same build.
        let _ = self.apply(&settings.to_string());
    }

    /// Changes what the text says.
    ///
    /// # Errors
    /// When the text is not understood. Nothing has changed then.
    pub fn apply(&self, text: &str) -> Result<(), SettingsError> {
        let bad = |expected| SettingsError {
            piece: String::from(text),
            expected,
        };
        let text = CString::new(text).map_err(|_| bad("no zero bytes"))?;
        // SAFETY: the text ends with a zero byte.
        match unsafe { (self.configure)(text.as_ptr()) } {
            0 => Ok(()),
            _ => {
                let mut settings = Settings::default();
                // The library has the same rules.
                Err(settings
                    .apply(&text.to_string_lossy())
                    .err()
                    .unwrap_or(bad("key=value")))
            }
        }
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let text = self.told(Tell::Counters);
        let pair = |line: &str| {
            let (name, count) = line.rsplit_once('=')?;
            Some((String::from(name), count.parse().ok()?))
        };
        Counters(text.lines().filter_map(pair).collect())
    }

    /// What the kernel did that killed the device, with its place.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        Some(self.told(Tell::Fault)).filter(|text| !text.is_empty())
    }

    fn told(&self, what: Tell) -> String {
        let mut bytes = vec![0_u8; TEXT_BYTES_MAX];
        // SAFETY: the buffer has the length that is given.
        unsafe { (self.tell)(what as c_int, bytes.as_mut_ptr().cast(), bytes.len()) };
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is loaded and the name ends with a zero byte.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn loader_message() -> String {
    // SAFETY: it takes nothing, and what it gives stays until the next call of the loader.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return String::from("no reason given");
    }
    // SAFETY: not null, so a text with a zero byte at its end.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned()
}

/// What the driver has counted since it was loaded.
///
/// Launches and copies count when they are asked for, whether or not they have run; what is in a
/// graph counts at each launch of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Counters {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> u64 {
                    self.get(stringify!($name))
                }
            )*
        }
    };
}

counters! {
    /// Kernels launched, also as part of graphs.
    launches;
    /// Kernels that have run.
    runs;
    /// Graphs launched.
    graph_launches;
    /// Graphs made ready to be launched.
    graphs;
    /// Captures begun.
    captures;
    /// Calls that hung, or hang still.
    hung;
    /// Modules loaded.
    modules;
    /// Instructions of them that were changed because it was asked for.
    mutations;
    /// Copies from the host to the device.
    uploads;
    /// Their bytes.
    uploaded_bytes;
    /// Copies from the device to the host.
    downloads;
    /// Their bytes.
    downloaded_bytes;
    /// Copies within the device.
    device_copies;
    /// Fills of device memory.
    fills;
    /// Waits for a stream.
    stream_syncs;
    /// Waits for a context.
    context_syncs;
    /// Copies that wait.
    copy_syncs;
    /// Waits for an event in which the thread sleeps.
    blocking_event_syncs;
    /// Waits for an event in which the thread spins.
    spinning_event_syncs;
    /// Questions whether an event has come.
    event_queries;
    /// Allocations of device memory made.
    allocations;
    /// Allocations of device memory that live.
    alive;
    /// Their bytes.
    alive_bytes;
    /// Ranges of page-locked memory that live.
    pinned;
    /// Their bytes.
    pinned_bytes;
}

impl Counters {
    /// Launches of one kernel.
    #[must_use]
    pub fn launches_of(&self, kernel: &str) -> u64 {
        self.get(&format!("launch.{kernel}"))
    }

    /// Every kernel that was launched, with how often.
    pub fn launched(&self) -> impl Iterator<Item = (&str, u64)> {
        let pairs = self.0.iter();
        pairs.filter_map(|(name, count)| Some((name.strip_prefix("launch.")?, *count)))
    }

    /// Calls of one entry point.
    #[must_use]
    pub fn calls_of(&self, name: &str) -> u64 {
        self.get(&format!("call.{name}"))
    }

    /// Calls in which the host waits for the device.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.stream_syncs()
            + self.context_syncs()
            + self.copy_syncs()
            + self.blocking_event_syncs()
            + self.spinning_event_syncs()
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

// The library's side.

// SAFETY: the name is this crate's own.
#[unsafe(no_mangle)]
extern "C" fn simcuda_interface() -> c_int {
    INTERFACE
}

/// # Safety
/// The text ends with a zero byte.
// SAFETY: the name is this crate's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn simcuda_configure(text: *const c_char) -> c_int {
    // SAFETY: the caller answers for it.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    match driver(|driver| driver.configure(&text)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// # Safety
/// The buffer has so many bytes.
// SAFETY: the name is this crate's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn simcuda_tell(what: c_int, to: *mut c_char, room: usize) -> usize {
    let text = driver(|driver| {
        if what == Tell::Counters as c_int {
            driver.count()
        } else {
            driver.fault.clone().unwrap_or_default()
        }
    });
    let len = text.len().min(room.saturating_sub(1));
    // SAFETY: the caller answers for the buffer, and `len` and the zero byte fit in it.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), len);
        if room > 0 {
            to.add(len).write(0);
        }
    }
    text.len()
}
