//! What computes, or why it cannot.

/// Which kind of thing computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The machine's processor.
    Cpu,
    /// A graphics card.
    Gpu,
}

/// A device that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// As the maker names it.
    pub name: String,
    /// The instruction set in use ("AVX-512 VNNI"), or the card's compute capability.
    pub isa: String,
    /// Threads that compute; 1 for a card.
    pub threads: usize,
    /// Memory of the device, if it has its own.
    pub memory_bytes: Option<u64>,
}

/// What is wrong with a driver that is there. `Display` says it in a few words, for brackets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverFault {
    /// The loader refuses its library.
    #[error("its library does not load: {message}")]
    DoesNotLoad {
        /// As the loader says.
        message: String,
    },
    /// A function that every driver has is missing.
    #[error("its library lacks {function}")]
    Incomplete {
        /// Which.
        function: String,
    },
    /// A call failed.
    #[error("{}{call} failed with code {code}", meaning(*words))]
    Failed {
        /// What the code means, where that is known.
        words: Option<&'static str>,
        /// The function.
        call: String,
        /// Its answer.
        code: u32,
    },
    /// It hangs.
    #[error("it did not answer within {seconds} seconds")]
    Late {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It took the process that asked with it.
    #[error("it crashed when it was asked: {end}")]
    Crashed {
        /// How that process ended.
        end: String,
    },
    /// Nothing was understood of what it said, or nothing came.
    #[error("its check gave no answer")]
    NoAnswer,
    /// The system did not pass its answer on.
    #[error("its answer could not be read: {message}")]
    Unread {
        /// As the system says.
        message: String,
    },
    /// Nobody could ask it.
    #[error("the check of it could not be started: {message}")]
    NotAsked {
        /// As the system says.
        message: String,
    },
    /// It stopped working while it was used.
    #[error("{reason}")]
    Lost {
        /// In plain words.
        reason: String,
    },
}

fn meaning(words: Option<&str>) -> String {
    words.map_or_else(String::new, |words| format!("{words}; "))
}

/// Why a device cannot be used. A value, not an error: it is the reason for a fallback, and the
/// user reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The driver's library is not on this machine.
    NoDriver,
    /// The driver is older than what the kernels need.
    DriverTooOld {
        /// The version found, as the driver says it.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The driver is there and does not work.
    DriverBroken {
        /// What is wrong with it.
        reason: DriverFault,
    },
    /// The driver sees no card.
    NoDevice,
    /// The card is older than what the kernels need.
    DeviceTooOld {
        /// The card's name.
        device: String,
        /// Its compute capability.
        found: String,
        /// The lowest that will do.
        needed: String,
    },
    /// There is no card of the number that was asked for.
    NoSuchDevice {
        /// The number, counted from 0.
        asked: usize,
        /// How many cards there are.
        found: usize,
    },
    /// The user chose another device.
    ChosenByUser,
}
