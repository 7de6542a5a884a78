//! Logits against an independent program's, on tiny models and on real ones.
//!
//! `tests/golden/README.md` says where the numbers come from.

mod data;
mod real;
mod runner;
mod synthetic;
