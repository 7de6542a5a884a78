//! Running what may break down: a panic becomes words, and whoever ran it goes on.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs something; if it panics, gives what it said. What it held may be half changed then, so a
/// caller keeps nothing of it.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = message(&*panic);
        // A payload may panic when it is dropped, which nobody would catch. It is a few bytes.
        mem::forget(panic);
        words
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    /// Panics once more when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_panic_becomes_its_words_whatever_it_carries() {
        type Work = fn() -> u8;
        let cases: &[(Work, Result<u8, &str>)] = &[
            (|| 3, Ok(3)),
            (|| panic!("plain"), Err("plain")),
            (|| panic!("with {}", 1), Err("with 1")),
            (|| panic_any(7u8), Err("a panic without words")),
            (|| panic_any(Bomb), Err("a panic without words")),
        ];
        for (work, want) in cases {
            assert_eq!(guarded(work), want.map_err(String::from));
        }
    }
}
