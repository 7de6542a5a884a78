//! The end of a process whose card was lost.
//!
//! A driver's library takes itself down when the process ends, and may wait there for the very thread
//! that hangs inside it. The system gives everything back by itself, so that work can be left out.

/// From now on the end of the process leaves out what was asked for before: what is asked for last is
/// done first, and this is the end.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn leave_out_what_waits() {
    use std::ffi::{c_int, c_void};
    use std::sync::Once;

    unsafe extern "C" {
        fn on_exit(act: extern "C" fn(c_int, *mut c_void), with: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }

    extern "C" fn end(status: c_int, _: *mut c_void) {
        // SAFETY: ends the process with the status that it was about to end with. Rust's own output
        // was written out before.
        unsafe { _exit(status) }
    }

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function is there as long as the program, and reads nothing. Where it cannot be
        // registered, the process ends as it would have.
        let _ = unsafe { on_exit(end, std::ptr::null_mut()) };
    });
}

/// Elsewhere nothing of the kind is known.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn leave_out_what_waits() {}
