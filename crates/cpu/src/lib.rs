//! The CPU backend: the reference for every other one, and what runs where there is no card.
//!
//! Two paths over one walk of the plan. The exact path multiplies float32 activations with weights
//! that it dequantises on the way: what the file means. The fast path rounds activations to 8 bits
//! and multiplies them with repacked weights in integer arithmetic. In both, a row's result does
//! not depend on the rows beside it, nor on where a chunk of the prompt begins.
//!
//! What it deliberately does not do: it knows no architecture, chooses no token, and reads no
//! environment.
//!
//! Start with [`CpuBackend`], then `forward.rs`, which walks the plan; `ops/` has one file per
//! operation, `simd/` the kernels, `threads/` the pool.

mod backend;
mod forward;
mod loaded;
mod ops;
mod session;
mod simd;
mod state;
mod threads;
mod values;
mod weights;

pub use backend::{CpuBackend, CpuConfig};
pub use simd::{Isa, packed_types};
pub use threads::cores::default_threads;
