//! Floats of 32 bits. A NaN that a card makes has all bits of its fraction.

use super::round::{self, Round};
use super::{W, table};

table! {
    /// One operand.
    one: W1(W; W)
    "abs.f32" => |a| a & !SIGN;
    "neg.f32" => |a| a ^ SIGN;
    "abs.ftz.f32" => |a| flush(a & !SIGN);
    "neg.ftz.f32" => |a| flush(a ^ SIGN);
    "sqrt.rn.f32" => |a| bits(value(a).sqrt());
    "rcp.rn.f32" => |a| bits(1.0 / value(a));
    "sqrt.rn.ftz.f32" => |a| bits(value(flush(a)).sqrt());
    "rcp.rn.ftz.f32" => |a| flush(bits(1.0 / value(flush(a))));
}

table! {
    /// Two operands.
    two: W2(W; W, W)
    "add.f32" | "add.rn.f32" => |a, b| bits(value(a) + value(b));
    "sub.f32" | "sub.rn.f32" => |a, b| bits(value(a) - value(b));
    "mul.f32" | "mul.rn.f32" => |a, b| bits(value(a) * value(b));
    "div.rn.f32" => |a, b| bits(value(a) / value(b));
    "add.ftz.f32" | "add.rn.ftz.f32" => |a, b| flush(bits(flushed(a) + flushed(b)));
    "sub.ftz.f32" | "sub.rn.ftz.f32" => |a, b| flush(bits(flushed(a) - flushed(b)));
    "mul.ftz.f32" | "mul.rn.ftz.f32" => |a, b| flush(bits(flushed(a) * flushed(b)));
    "div.rn.ftz.f32" => |a, b| flush(bits(flushed(a) / flushed(b)));
    "add.sat.f32" | "add.rn.sat.f32" => |a, b| saturate(value(a) + value(b));
    "sub.sat.f32" | "sub.rn.sat.f32" => |a, b| saturate(value(a) - value(b));
    "mul.sat.f32" | "mul.rn.sat.f32" => |a, b| saturate(value(a) * value(b));
    "add.rz.f32" => |a, b| bits(round::add(value(a), value(b), Round::Zero));
    "add.rm.f32" => |a, b| bits(round::add(value(a), value(b), Round::Down));
    "add.rp.f32" => |a, b| bits(round::add(value(a), value(b), Round::Up));
    "sub.rz.f32" => |a, b| bits(round::add(value(a), -value(b), Round::Zero));
    "sub.rm.f32" => |a, b| bits(round::add(value(a), -value(b), Round::Down));
    "sub.rp.f32" => |a, b| bits(round::add(value(a), -value(b), Round::Up));
    "mul.rz.f32" => |a, b| bits(round::to_f32(product(a, b), Round::Zero));
    "mul.rm.f32" => |a, b| bits(round::to_f32(product(a, b), Round::Down));
    "mul.rp.f32" => |a, b| bits(round::to_f32(product(a, b), Round::Up));
    "min.f32" => |a, b| smaller(a, b);
    "max.f32" => |a, b| larger(a, b);
    "min.ftz.f32" => |a, b| smaller(flush(a), flush(b));
    "max.ftz.f32" => |a, b| larger(flush(a), flush(b));
    "min.NaN.f32" => |a, b| if unordered(a, b) { NAN } else { smaller(a, b) };
    "max.NaN.f32" => |a, b| if unordered(a, b) { NAN } else { larger(a, b) };
    "min.ftz.NaN.f32" => |a, b| {
        if unordered(a, b) { NAN } else { smaller(flush(a), flush(b)) }
    };
    "max.ftz.NaN.f32" => |a, b| {
        if unordered(a, b) { NAN } else { larger(flush(a), flush(b)) }
    };
    "copysign.f32" => |a, b| (a & SIGN) | (b & !SIGN);
    // Within 2 units of the last place; the simulator gives the nearest.
    "div.full.f32" | "div.approx.f32" => |a, b| bits(value(a) / value(b));
    "div.full.ftz.f32" | "div.approx.ftz.f32" => |a, b| flush(bits(flushed(a) / flushed(b)));
}

table! {
    /// Three operands.
    three: W3(W; W, W, W)
    "fma.rn.f32" | "mad.rn.f32" => |a, b, c| bits(fused(value(a), value(b), value(c)));
    "fma.rn.ftz.f32" => |a, b, c| flush(bits(fused(flushed(a), flushed(b), flushed(c))));
    "fma.rn.sat.f32" => |a, b, c| saturate(fused(value(a), value(b), value(c)));
    "fma.rn.ftz.sat.f32" => |a, b, c| saturate(fused(flushed(a), flushed(b), flushed(c)));
    "fma.rz.f32" => |a, b, c| bits(round::fma(value(a), value(b), value(c), Round::Zero));
    "fma.rm.f32" => |a, b, c| bits(round::fma(value(a), value(b), value(c), Round::Down));
    "fma.rp.f32" => |a, b, c| bits(round::fma(value(a), value(b), value(c), Round::Up));
    "fma.rz.ftz.f32" => |a, b, c| {
        flush(bits(round::fma(flushed(a), flushed(b), flushed(c), Round::Zero)))
    };
    "fma.rm.ftz.f32" => |a, b, c| {
        flush(bits(round::fma(flushed(a), flushed(b), flushed(c), Round::Down)))
    };
    "fma.rp.ftz.f32" => |a, b, c| {
        flush(bits(round::fma(flushed(a), flushed(b), flushed(c), Round::Up)))
    };
}

const SIGN: u32 = 1 << 31;

/// The only NaN that a card makes of floats.
pub(super) const NAN: u32 = 0x7fff_ffff;

#[inline]
pub(super) fn value(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline]
pub(super) fn bits(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// Numbers too small for a full fraction become a zero of their sign.
#[inline]
pub(super) fn flush(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & SIGN } else { a }
}

#[inline]
pub(super) fn flushed(a: u32) -> f32 {
    value(flush(a))
}

/// To between 0 and 1; a NaN becomes 0.
#[inline]
pub(super) fn saturate(value: f32) -> u32 {
    if value > 0.0 {
        value.min(1.0).to_bits()
    } else {
        0
    }
}

#[inline]
fn product(a: u32, b: u32) -> f64 {
    f64::from(value(a)) * f64::from(value(b))
}

/// One rounding, like `f32::mul_add`, which calls a library function for every lane where the
/// program is built for processors without the instruction. Doubles do it in a few vector steps.
#[inline]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    round::odd_sum(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

#[inline]
fn unordered(a: u32, b: u32) -> bool {
    value(a).is_nan() || value(b).is_nan()
}

/// A key that orders floats as the card does, -0 below +0.
#[inline]
fn key(a: u32) -> i32 {
    let a = a as i32;
    a ^ ((a >> 31) & i32::MAX)
}

/// A number wins over a NaN.
#[inline]
fn smaller(a: u32, b: u32) -> u32 {
    let least = if key(a) <= key(b) { a } else { b };
    choose(a, b, least)
}

#[inline]
fn larger(a: u32, b: u32) -> u32 {
    let most = if key(a) >= key(b) { a } else { b };
    choose(a, b, most)
}

#[inline]
fn choose(a: u32, b: u32, ordered: u32) -> u32 {
    let of_b = if value(b).is_nan() { NAN } else { b };
    let with_b = if value(b).is_nan() { a } else { ordered };
    if value(a).is_nan() { of_b } else { with_b }
}
