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
        /// In plain words.
        reason: String,
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
