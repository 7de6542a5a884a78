//! Room for values within values.
//!
//! A template can put a list into a list as often as its fuel allows, and the engine goes down
//! through all of them when it drops or compares them. A stack that overflows ends the whole
//! program, so templates get one that their fuel does not reach the end of.

use std::io;
use std::panic::resume_unwind;
use std::thread;

/// Address space, of which only what is used becomes memory. Dropping one list within another
/// takes some 200 bytes (more in a build without optimisation), and one unit of fuel makes at most
/// one of them.
const STACK_BYTES: usize = 2 << 30;

/// Runs something on a stack of its own; returns when it is done.
pub(super) fn with_room<R: Send>(work: impl FnOnce() -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(String::from("template"))
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
