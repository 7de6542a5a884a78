//! Who touched which bytes of shared memory since the last barrier.

use crate::fault::{Access, FaultKind};

/// What is known of every word of a block's shared memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    epoch: u32,
    words: Vec<Word>,
    /// Of words that were touched in parts, each byte; made when the first is.
    bytes: Vec<[Touched; 4]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    touched: Touched,
    /// The epoch in which the bytes are told apart.
    split: u32,
}

/// One bit for each warp.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    epoch: u32,
    readers: u32,
    writers: u32,
    atomics: u32,
}

impl Shadow {
    /// Forgets everything, for a new block with so many bytes.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.barrier();
        let words = bytes.div_ceil(4);
        if self.words.len() != words {
            self.words = vec![Word::default(); words];
            self.bytes = Vec::new();
        }
    }

    /// All warps have met.
    pub(super) fn barrier(&mut self) {
        self.epoch += 1;
    }

    /// Notes an access inside shared memory whose size divides its offset.
    #[inline]
    pub(super) fn touch(
        &mut self,
        offset: u64,
        bytes: u32,
        warp: u32,
        access: Access,
    ) -> Result<(), FaultKind> {
        let first = (offset / 4) as usize;
        let mut at = first;
        loop {
            let word = &mut self.words[at];
            if bytes >= 4 && word.split != self.epoch {
                let other = word.touched.add(self.epoch, warp, access);
                other.map_err(|other| race(4 * at as u64, warp, access, other))?;
            } else {
                let from = if bytes >= 4 { 0 } else { (offset % 4) as usize };
                self.touch_parts(at, from..from + bytes.min(4) as usize, warp, access)?;
            }
            at += 1;
            if at >= first + (bytes as usize).div_ceil(4) {
                return Ok(());
            }
        }
    }

    fn touch_parts(
        &mut self,
        at: usize,
        parts: std::ops::Range<usize>,
        warp: u32,
        access: Access,
    ) -> Result<(), FaultKind> {
        if self.bytes.is_empty() {
            self.bytes = vec![Default::default(); self.words.len()];
        }
        let word = &mut self.words[at];
        if word.split != self.epoch {
            word.split = self.epoch;
            self.bytes[at] = [word.touched; 4];
        }
        for part in parts {
            let other = self.bytes[at][part].add(self.epoch, warp, access);
            other.map_err(|other| race((4 * at + part) as u64, warp, access, other))?;
        }
        Ok(())
    }
}

impl Touched {
    /// Adds an access, or gives the one of another warp that it may not meet.
    #[inline]
    fn add(&mut self, epoch: u32, warp: u32, access: Access) -> Result<(), (Access, u32)> {
        if self.epoch != epoch {
            *self = Self {
                epoch,
                ..Self::default()
            };
        }
        let own = 1 << warp;
        let (reads, writes, atomics) = match access {
            Access::Read => (0, self.writers, self.atomics),
            Access::Write => (self.readers, self.writers, self.atomics),
            Access::Atomic => (self.readers, self.writers, 0),
        };
        if (reads | writes | atomics) & !own != 0 {
            for (others, what) in [
                (writes, Access::Write),
                (atomics, Access::Atomic),
                (reads, Access::Read),
            ] {
                if others & !own != 0 {
                    return Err((what, (others & !own).trailing_zeros()));
                }
            }
        }
        match access {
            Access::Read => self.readers |= own,
            Access::Write => self.writers |= own,
            Access::Atomic => self.atomics |= own,
        }
        Ok(())
    }
}

fn race(offset: u64, warp: u32, access: Access, other: (Access, u32)) -> FaultKind {
    FaultKind::Race {
        offset,
        access,
        warp,
        other_access: other.0,
        other_warp: other.1,
    }
}
