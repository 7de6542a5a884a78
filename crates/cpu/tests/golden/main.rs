//! Logits against an independent program's, on tiny models and on real ones.
//!
//! `tests/golden/README.md` says where the numbers come from.
#![expect(
    clippy::print_stderr,
    reason = "a test says what it measured and what it could not run"
)]

mod data;
mod eight_bits;
mod old_processor;
mod real;
mod runner;
mod synthetic;
