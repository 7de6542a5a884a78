//! What goes wrong on a card.

use candor_backend::SessionError;
use cudarc::driver::sys::CUresult;

use crate::codes;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A call failed, or a kernel whose name stands in its place.
    #[error("{}", codes::failure(call, *code))]
    Failed { call: &'static str, code: u32 },
    /// The driver or the card is not as it has to be.
    #[error("{reason}")]
    Lost { reason: String },
    /// Too little memory.
    #[error("{needed_bytes} bytes of the card's memory are needed, {available_bytes} are free")]
    OutOfMemory {
        needed_bytes: u64,
        available_bytes: u64,
    },
    /// The program has no such kernel.
    #[error("the program has no kernel {name}")]
    NoKernel { name: String },
    /// The driver refused a module.
    #[error("the driver does not take the kernels {module}: {log}")]
    Module { module: String, log: String },
}

impl Fault {
    pub(super) fn of(call: &'static str, code: CUresult) -> Self {
        Self::Failed {
            call,
            code: code as u32,
        }
    }
}

impl From<Fault> for SessionError {
    fn from(fault: Fault) -> Self {
        Self::DeviceLost {
            reason: fault.to_string(),
        }
    }
}
