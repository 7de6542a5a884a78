//! What the thread of a card is at, for those who wait for it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// What the driver is asked to do. A call into it is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Nothing,
    Starting,
    Translating,
    GivingMemory,
    Copying,
    Readying,
    Launching,
    Computing,
    TakingBack,
}

/// Each with its words, in the order of their numbers.
const ALL: [(Doing, &str); 9] = [
    (Doing::Nothing, "it was between two calls"),
    (Doing::Starting, "it was starting the card"),
    (Doing::Translating, "it was translating the kernels"),
    (Doing::GivingMemory, "it was giving memory"),
    (Doing::Copying, "it was copying"),
    (Doing::Readying, "it was readying the steps of a token"),
    (Doing::Launching, "it was starting a step"),
    (Doing::Computing, "the card was computing"),
    (Doing::TakingBack, "it was taking memory back"),
];

/// Written by the one thread that calls the driver, read by those who wait for it.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    /// Calls begun and ended so far.
    beats: AtomicU64,
    doing: AtomicU8,
    abandoned: AtomicBool,
}

impl Heart {
    /// A call begins.
    pub(crate) fn begin(&self, doing: Doing) {
        self.doing.store(doing as u8, Ordering::Relaxed);
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// It has returned.
    pub(crate) fn end(&self) {
        self.begin(Doing::Nothing);
    }

    /// Changes with every call; as long as it stays the same, none has begun or returned.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// What the driver is asked to do now.
    fn doing(&self) -> Doing {
        let doing = usize::from(self.doing.load(Ordering::Relaxed));
        ALL[doing.min(ALL.len() - 1)].0
    }

    /// Whether the driver was asked for something and has not answered. Otherwise the thread is at
    /// work of its own: it may wait for a slow disk, for which no driver is to blame.
    pub(super) fn waits_for_the_driver(&self) -> bool {
        self.doing() != Doing::Nothing
    }

    /// Whether it is at what may take a healthy driver long.
    pub(super) fn is_at_long_work(&self) -> bool {
        matches!(self.doing(), Doing::Translating | Doing::GivingMemory)
    }

    /// What the driver does, as the end of "it did not answer while".
    pub(super) fn words(&self) -> &'static str {
        let doing = usize::from(self.doing.load(Ordering::Relaxed));
        ALL[doing.min(ALL.len() - 1)].1
    }

    /// Nobody waits any more; the thread is to touch nothing should it come back.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Whether that was said.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_to_do_has_its_own_words() {
        let heart = Heart::default();
        for (doing, words) in ALL {
            let before = heart.beats();
            heart.begin(doing);
            assert_eq!(heart.words(), words, "{doing:?}");
            assert_ne!(heart.beats(), before);
        }
        heart.begin(Doing::Computing);
        assert!(heart.waits_for_the_driver() && !heart.is_at_long_work());
        heart.end();
        assert_eq!(heart.words(), ALL[0].1);
        assert!(
            !heart.waits_for_the_driver(),
            "a slow disk is not its fault"
        );
        heart.begin(Doing::Translating);
        assert!(heart.waits_for_the_driver() && heart.is_at_long_work());
    }
}
