//! Kernels without special instructions: for other machines, and for when a check fails.

mod attention;
mod linear;
mod ops;

use super::kernels::{Isa, Kernels, linear_table};
use super::{coded, delta};

pub(super) use ops::to_half;

pub(super) static KERNELS: Kernels = Kernels {
    name: "portable",
    isa: Isa::Portable,
    linear: linear_table::<linear::Portable>(),
    quantize: ops::quantize,
    rms_norm: ops::rms_norm,
    silu_mul: ops::silu_mul,
    add: ops::add,
    to_half: ops::to_half,
    attend: attention::attend,
    join: attention::join,
    delta: delta::portable,
    unfold: coded::portable,
};
