//! Room for values within values.
//!
//! A template can put a list into a list as often as its fuel allows, and the engine goes down
//! through all of them when it drops or compares them. A stack that overflows ends the whole
//! program, so templates get one that their fuel does not reach the end of.

use std::io;
use std::panic::resume_unwind;
use std::thread;

/// Address space, of which only what is used becomes memory; the first that the system gives.
/// Dropping one list within another takes some 200 bytes (more in a build without optimisation),
/// and one unit of fuel makes at most one of them, so that the second is enough too. A system with
/// less memory than the first asks for refuses it, though it would never be used.
const STACK_BYTES: [usize; 2] = [2 << 30, 1 << 30];

/// Runs something on a stack of its own; returns when it is done.
pub(super) fn with_room<R: Send>(work: impl Fn() -> R + Sync) -> io::Result<R> {
    with_room_of(&STACK_BYTES, &work)
}

fn with_room_of<R: Send>(sizes: &[usize], work: &(impl Fn() -> R + Sync)) -> io::Result<R> {
    thread::scope(|scope| {
        let spawn = |bytes: &usize| {
            let thread = thread::Builder::new().name(String::from("template"));
            thread.stack_size(*bytes).spawn_scoped(scope, work)
        };
        let mut tried = sizes.iter().map(spawn);
        let first = tried.next().expect("there is a size");
        let thread = first.or_else(|error| tried.find_map(Result::ok).ok_or(error))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_the_system_refuses_is_asked_for_smaller() {
        // More than a processor can address.
        let too_much = 1 << 60;
        assert_eq!(with_room_of(&[too_much, 1 << 20], &|| 7).unwrap(), 7);
        assert!(with_room_of(&[too_much], &|| 7).is_err());
        assert_eq!(with_room(|| 7).unwrap(), 7);
    }
}
