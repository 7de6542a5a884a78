//! What can go wrong in device memory and in a kernel, with the place where it did.

use std::fmt;

/// A fault, with the place in the kernel if a kernel caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Where; copies that the host asked for have no place.
    pub place: Option<Box<Place>>,
}

/// Where in a launch something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The kernel's name.
    pub kernel: String,
    /// The line in the PTX text.
    pub line: u32,
    /// That line.
    pub text: String,
    /// The block's index in the grid.
    pub block: [u32; 3],
    /// The thread's index in its block; of a warp the first thread concerned.
    pub thread: [u32; 3],
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// Bytes that belong to no allocation.
    #[error("{bytes} bytes at {address:#x} belong to no allocation{}", near(*nearest))]
    OutOfBounds {
        /// The first byte asked for.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// The allocation below it.
        nearest: Option<Nearest>,
    },
    /// An access of a size that does not divide its address.
    #[error("{address:#x} is not a multiple of {bytes}")]
    Misaligned {
        /// The address.
        address: u64,
        /// The size of the access.
        bytes: u64,
    },
    /// Beyond the memory of the block or of the thread.
    #[error("{bytes} bytes at {offset:#x} of {space} memory, which has {size}")]
    OutOfSpace {
        /// `shared`, `local`, `parameter`.
        space: &'static str,
        /// The first byte asked for.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// What there is.
        size: u64,
    },
    /// Two warps touched the same bytes of shared memory without a barrier between them, and at
    /// least one wrote.
    #[error(
        "shared memory at {offset:#x}: {access} by warp {warp}, after {other_access} by warp \
         {other_warp} without a barrier between them"
    )]
    Race {
        /// The byte in shared memory.
        offset: u64,
        /// What was done now.
        access: Access,
        /// By which warp.
        warp: u32,
        /// What had been done since the last barrier.
        other_access: Access,
        /// By which warp.
        other_warp: u32,
    },
    /// Not all threads of the block come to the same barrier.
    #[error("barrier {barrier}: {arrived} of {expected} threads arrive; {reason}")]
    DivergentBarrier {
        /// The barrier's number.
        barrier: u32,
        /// Threads that wait at it.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// Why the others do not come.
        reason: &'static str,
    },
    /// An instruction of several lanes names lanes that never come to it.
    #[error("lanes {missing:#010x} of {named:#010x} do not come to this instruction; {reason}")]
    DivergentCollective {
        /// The lanes named.
        named: u32,
        /// Those of them that are not there.
        missing: u32,
        /// Why not.
        reason: &'static str,
    },
    /// More than a launch may have, or less than the kernel needs.
    #[error("{what} {found} where at most {limit} are allowed")]
    LaunchLimit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What was asked for.
        found: u64,
    },
    /// The launch gives another number of parameter bytes than the kernel has.
    #[error("{found} bytes of parameters where the kernel has {expected}")]
    Parameters {
        /// What the kernel declares.
        expected: usize,
        /// What the launch gave.
        found: usize,
    },
    /// The kernel executed `trap`.
    #[error("the kernel gave up (trap)")]
    Trap,
    /// A block ran for longer than any of ours does.
    #[error("a block did not end within {steps} instructions")]
    Endless {
        /// The limit.
        steps: u64,
    },
    /// An operand has a value that the instruction does not take.
    #[error("{what} is {found}")]
    Operand {
        /// Which operand.
        what: &'static str,
        /// Its value.
        found: u64,
    },
}

/// The allocation below an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    /// Its first address.
    pub base: u64,
    /// Its size.
    pub bytes: u64,
    /// How far behind its last byte the access ends.
    pub past: u64,
}

/// What was done to a place in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic operation.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "a read",
            Self::Write => "a write",
            Self::Atomic => "an atomic operation",
        })
    }
}

fn near(nearest: Option<Nearest>) -> String {
    match nearest {
        None => String::new(),
        Some(Nearest { base, bytes, past }) => {
            format!(", {past} bytes past the end of the {bytes} at {base:#x}")
        }
    }
}

impl Fault {
    /// A fault of a request of the host.
    #[must_use]
    pub fn of_host(kind: FaultKind) -> Self {
        Self { kind, place: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        let Some(place) = &self.place else {
            return Ok(());
        };
        let Place {
            kernel,
            line,
            text,
            block,
            thread,
        } = place.as_ref();
        write!(
            f,
            " [kernel {kernel}, line {line} `{text}`, block {block:?}, thread {thread:?}]"
        )
    }
}

impl std::error::Error for Fault {}
