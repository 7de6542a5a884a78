//! The 16-bit floats, alone and two in a word.

use half::{bf16, f16};

use super::round::{odd_f32, odd_sum};
use super::{W, table};

table! {
    /// One operand.
    one: W1(W; W)
    "abs.f16" => |a| a & 0x7fff;
    "neg.f16" => |a| (a ^ 0x8000) & 0xffff;
    "abs.f16x2" => |a| a & 0x7fff_7fff;
    "neg.f16x2" => |a| a ^ 0x8000_8000;
    "ex2.approx.f16" => |a| f16_bits(f16_value(a).exp2());
    "ex2.approx.f16x2" => |a| each(a, 0, 0, |a, _, _| f16_bits(f16_value(a).exp2()));
    "tanh.approx.f16" => |a| f16_bits(f16_value(a).tanh());
    "tanh.approx.f16x2" => |a| each(a, 0, 0, |a, _, _| f16_bits(f16_value(a).tanh()));
    "neg.bf16" => |a| (a ^ 0x8000) & 0xffff;
    "abs.bf16" => |a| a & 0x7fff;
    "neg.bf16x2" => |a| a ^ 0x8000_8000;
    "abs.bf16x2" => |a| a & 0x7fff_7fff;
}

table! {
    /// Two operands.
    two: W2(W; W, W)
    "add.f16" | "add.rn.f16" => |a, b| add(a, b, 0);
    "sub.f16" | "sub.rn.f16" => |a, b| sub(a, b, 0);
    "mul.f16" | "mul.rn.f16" => |a, b| mul(a, b, 0);
    "min.f16" => |a, b| smaller(a, b, 0);
    "max.f16" => |a, b| larger(a, b, 0);
    "add.f16x2" | "add.rn.f16x2" => |a, b| each(a, b, 0, add);
    "sub.f16x2" | "sub.rn.f16x2" => |a, b| each(a, b, 0, sub);
    "mul.f16x2" | "mul.rn.f16x2" => |a, b| each(a, b, 0, mul);
    "min.f16x2" => |a, b| each(a, b, 0, smaller);
    "max.f16x2" => |a, b| each(a, b, 0, larger);
    "min.NaN.f16" => |a, b| strict(a, b, smaller);
    "max.NaN.f16" => |a, b| strict(a, b, larger);
    "min.NaN.f16x2" => |a, b| each(a, b, 0, |a, b, _| strict(a, b, smaller));
    "max.NaN.f16x2" => |a, b| each(a, b, 0, |a, b, _| strict(a, b, larger));
}

table! {
    /// Three operands.
    three: W3(W; W, W, W)
    "fma.rn.f16" => |a, b, c| fma(a, b, c);
    "fma.rn.f16x2" => |a, b, c| each(a, b, c, fma);
    "fma.rn.bf16" => |a, b, c| fma_bf16(a, b, c);
    "fma.rn.bf16x2" => |a, b, c| each(a, b, c, fma_bf16);
}

/// The only NaN that a card makes of these.
const NAN: u32 = 0x7fff;

/// A float16 as a float.
#[inline]
pub(crate) fn f16_value(bits: u32) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

/// A bfloat16 as a float.
#[inline]
pub(crate) fn bf16_value(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// The nearest float16.
#[inline]
pub(super) fn f16_bits(value: f32) -> u32 {
    if value.is_nan() {
        NAN
    } else {
        u32::from(f16::from_f32(value).to_bits())
    }
}

/// The nearest float16 of a double, rounded once.
fn f16_bits_of_f64(value: f64) -> u32 {
    f16_bits(odd_f32(value))
}

/// The nearest bfloat16.
pub(super) fn bf16_bits(value: f32) -> u32 {
    if value.is_nan() {
        NAN
    } else {
        u32::from(bf16::from_f32(value).to_bits())
    }
}

fn each(a: u32, b: u32, c: u32, one: impl Fn(u32, u32, u32) -> u32) -> u32 {
    let low = one(a & 0xffff, b & 0xffff, c & 0xffff);
    let high = one(a >> 16, b >> 16, c >> 16);
    (low & 0xffff) | (high << 16)
}

// Sums and products of two float16 are exact in a double, and nearly always in a float.
fn double(a: u32) -> f64 {
    f64::from(f16_value(a))
}

fn add(a: u32, b: u32, _: u32) -> u32 {
    f16_bits_of_f64(double(a) + double(b))
}

fn sub(a: u32, b: u32, _: u32) -> u32 {
    f16_bits_of_f64(double(a) - double(b))
}

fn mul(a: u32, b: u32, _: u32) -> u32 {
    f16_bits_of_f64(double(a) * double(b))
}

/// Products have 22 bits and exponents span 80: the sum is exact or is rounded to odd.
fn fma(a: u32, b: u32, c: u32) -> u32 {
    f16_bits_of_f64(odd_sum(double(a) * double(b), double(c)))
}

fn fma_bf16(a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = [a, b, c].map(|bits| f64::from(bf16_value(bits & 0xffff)));
    let sum = odd_sum(a * b, c);
    bf16_bits(odd_f32(sum))
}

fn is_nan(a: u32) -> bool {
    a & 0x7fff > 0x7c00
}

fn key(a: u32) -> i32 {
    let a = i32::from(a as i16);
    a ^ ((a >> 31) & 0x7fff)
}

fn smaller(a: u32, b: u32, _: u32) -> u32 {
    ordered(a, b, key(a) <= key(b))
}

fn larger(a: u32, b: u32, _: u32) -> u32 {
    ordered(a, b, key(a) >= key(b))
}

fn ordered(a: u32, b: u32, first: bool) -> u32 {
    match (is_nan(a), is_nan(b)) {
        (true, true) => NAN,
        (true, false) => b & 0xffff,
        (false, true) => a & 0xffff,
        _ => (if first { a } else { b }) & 0xffff,
    }
}

fn strict(a: u32, b: u32, choose: impl Fn(u32, u32, u32) -> u32) -> u32 {
    if is_nan(a) || is_nan(b) {
        NAN
    } else {
        choose(a, b, 0)
    }
}
