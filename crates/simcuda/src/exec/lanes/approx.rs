//! The approximate functions. A card's results differ from these in the last bits: these are the
//! nearest floats.

use super::float::{bits, flush, flushed, value};
use super::{W, table};

table! {
    /// One operand.
    one: W1(W; W)
    "ex2.approx.f32" => |a| bits(exact(a, f64::exp2));
    "ex2.approx.ftz.f32" => |a| flush(bits(exact(flush(a), f64::exp2)));
    "lg2.approx.f32" => |a| bits(exact(a, f64::log2));
    "lg2.approx.ftz.f32" => |a| flush(bits(exact(flush(a), f64::log2)));
    "rsqrt.approx.f32" => |a| bits(exact(a, inverse_root));
    "rsqrt.approx.ftz.f32" => |a| flush(bits(exact(flush(a), inverse_root)));
    "rcp.approx.f32" => |a| bits(1.0 / value(a));
    "rcp.approx.ftz.f32" => |a| flush(bits(1.0 / flushed(a)));
    "sqrt.approx.f32" => |a| bits(value(a).sqrt());
    "sqrt.approx.ftz.f32" => |a| bits(flushed(a).sqrt());
    "sin.approx.f32" => |a| bits(exact(a, f64::sin));
    "sin.approx.ftz.f32" => |a| flush(bits(exact(flush(a), f64::sin)));
    "cos.approx.f32" => |a| bits(exact(a, f64::cos));
    "cos.approx.ftz.f32" => |a| flush(bits(exact(flush(a), f64::cos)));
    "tanh.approx.f32" => |a| bits(exact(a, f64::tanh));
}

fn exact(a: u32, function: impl Fn(f64) -> f64) -> f32 {
    function(f64::from(value(a))) as f32
}

/// Of -0 it is minus infinity.
fn inverse_root(a: f64) -> f64 {
    if a == 0.0 { 1.0 / a } else { 1.0 / a.sqrt() }
}
