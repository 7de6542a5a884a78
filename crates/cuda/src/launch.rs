//! Kernels and their launches.

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::buffer::DevicePtr;
use crate::prepare::{CodePanel, HalfPanel, StepPtrs};
use crate::state::KvPlace;

/// One function of a loaded module. Lives as long as its device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) function: sys::CUfunction,
    /// For messages.
    pub(crate) name: &'static str,
}

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// None of them 0.
    pub(crate) blocks: [u32; 3],
    /// Of a block.
    pub(crate) threads: u32,
    /// Dynamic shared memory; above 48 KB the kernel has to be readied for it, see
    /// [`crate::prepare::Prepare::kernel_with_shared`].
    pub(crate) shared_bytes: u32,
}

impl Grid {
    /// Blocks in one dimension, without dynamic shared memory.
    pub(crate) fn of(blocks: usize, threads: u32) -> Self {
        Self::of3([blocks, 1, 1], threads)
    }

    /// Blocks in three dimensions, without dynamic shared memory.
    pub(crate) fn of3(blocks: [usize; 3], threads: u32) -> Self {
        Self {
            // A grid beyond this does not launch, which the driver then says.
            blocks: blocks.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            threads,
            shared_bytes: 0,
        }
    }

    /// With so much dynamic shared memory.
    pub(crate) fn shared(self, bytes: usize) -> Self {
        Self {
            shared_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            ..self
        }
    }
}

/// Words of eight bytes that the parameters of one launch take at most: CUDA takes 4096 bytes, our
/// kernels far less.
const WORDS_MAX: usize = 64;

/// The parameters of one launch, in the kernel's order. Each begins at a word of its own, of which
/// the kernel reads as many bytes as its parameter has (little-endian, as every CUDA host is).
#[derive(Clone, Debug)]
pub(crate) struct Args {
    words: [u64; WORDS_MAX],
    n_words: usize,
    /// At which word each parameter begins.
    starts: [usize; WORDS_MAX],
    len: usize,
}

impl Args {
    pub(crate) fn new() -> Self {
        Self {
            words: [0; WORDS_MAX],
            n_words: 0,
            starts: [0; WORDS_MAX],
            len: 0,
        }
    }

    /// A pointer.
    pub(crate) fn ptr(self, value: DevicePtr) -> Self {
        self.u64(value.0)
    }

    /// A pointer, or null.
    pub(crate) fn ptr_or_null(self, value: Option<DevicePtr>) -> Self {
        self.u64(value.map_or(0, |ptr| ptr.0))
    }

    /// An `unsigned` parameter.
    pub(crate) fn u32(self, value: u32) -> Self {
        self.u64(u64::from(value))
    }

    /// An `int` or `unsigned` parameter from a size.
    ///
    /// # Panics
    /// If it does not fit: sizes of graphs are bounded far below.
    pub(crate) fn size(self, value: usize) -> Self {
        self.u32(u32::try_from(value).expect("sizes of a graph fit 32 bits"))
    }

    /// An `int` parameter.
    pub(crate) fn i32(self, value: i32) -> Self {
        self.u64(u64::from(value as u32))
    }

    /// A `float` parameter.
    pub(crate) fn f32(self, value: f32) -> Self {
        self.u64(u64::from(value.to_bits()))
    }

    /// A 64-bit parameter.
    pub(crate) fn u64(self, value: u64) -> Self {
        self.words(&[value])
    }

    /// A structure passed by value, as the words that its memory has: `struct Step`.
    pub(crate) fn step(self, step: &StepPtrs) -> Self {
        self.words(&[step.token.0, step.position.0, step.slot.0])
    }

    /// Likewise `struct Runs`, of so many places.
    pub(crate) fn runs(self, step: &StepPtrs, count: usize) -> Self {
        self.words(&[step.runs.0, count as u64, step.source.0, step.target.0])
    }

    /// Likewise `struct Kv`.
    pub(crate) fn kv(self, kv: &KvPlace) -> Self {
        let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
        self.words(&[
            kv.keys.0,
            kv.values.0,
            kv.pages.0,
            pair(kv.pages_max, kv.n_kv_heads),
            pair(kv.head_dim, 0),
        ])
    }

    /// Likewise `struct Q8Panel`; one of null where there is none.
    pub(crate) fn codes(self, panel: Option<&CodePanel>) -> Self {
        let words = |it: &CodePanel| [it.codes.0, it.scales.0, it.stride as u64];
        self.words(&panel.map_or([0; 3], words))
    }

    /// Likewise `struct F16Panel`.
    pub(crate) fn halves(self, panel: Option<&HalfPanel>) -> Self {
        let words = |it: &HalfPanel| [it.halves.0, it.row_scales.0, it.stride as u64];
        self.words(&panel.map_or([0; 3], words))
    }

    /// A structure passed by value.
    ///
    /// # Panics
    /// If there are more than [`WORDS_MAX`].
    pub(crate) fn words(mut self, words: &[u64]) -> Self {
        self.starts[self.len] = self.n_words;
        self.len += 1;
        self.words[self.n_words..][..words.len()].copy_from_slice(words);
        self.n_words += words.len();
        self
    }

    /// Where each parameter lies.
    pub(crate) fn pointers(&mut self) -> ([*mut c_void; WORDS_MAX], usize) {
        let mut pointers = [std::ptr::null_mut(); WORDS_MAX];
        for (pointer, start) in pointers.iter_mut().zip(&self.starts[..self.len]) {
            *pointer = (&raw mut self.words[*start]).cast();
        }
        (pointers, self.len)
    }
}
