//! Everything with registers of 64 bits: integers, doubles, and products of words.

use super::{D, W, table};

table! {
    /// One operand.
    one: D1(D; D)
    "mov.u64" | "mov.b64" | "mov.s64" | "mov.f64" => |a| a;
    "cvta.to.global.u64" | "cvta.global.u64" | "cvta.to.const.u64" | "cvta.const.u64" => |a| a;
    "cvta.to.param.u64" | "cvta.param.u64" => |a| a;
    "cvta.shared.u64" => |a| a.wrapping_add(crate::exec::SHARED_WINDOW);
    "cvta.to.shared.u64" => |a| a.wrapping_sub(crate::exec::SHARED_WINDOW);
    "cvta.local.u64" => |a| a.wrapping_add(crate::exec::LOCAL_WINDOW);
    "cvta.to.local.u64" => |a| a.wrapping_sub(crate::exec::LOCAL_WINDOW);
    "not.b64" => |a| !a;
    "neg.s64" => |a| a.wrapping_neg();
    "abs.s64" => |a| (a as i64).wrapping_abs() as u64;
    "brev.b64" => |a| a.reverse_bits();
    "abs.f64" => |a| a & !SIGN;
    "neg.f64" => |a| a ^ SIGN;
    "sqrt.rn.f64" => |a| bits(value(a).sqrt());
    "rcp.rn.f64" => |a| bits(1.0 / value(a));
}

table! {
    /// Two operands.
    two: D2(D; D, D)
    "add.s64" | "add.u64" => |a, b| a.wrapping_add(b);
    "sub.s64" | "sub.u64" => |a, b| a.wrapping_sub(b);
    "mul.lo.s64" | "mul.lo.u64" => |a, b| a.wrapping_mul(b);
    "mul.hi.u64" => |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    "mul.hi.s64" => |a, b| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64;
    "div.u64" => |a, b| a.checked_div(b).unwrap_or(u64::MAX);
    "div.s64" => |a, b| if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 };
    "rem.u64" => |a, b| a.checked_rem(b).unwrap_or(a);
    "rem.s64" => |a, b| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 };
    "min.s64" => |a, b| (a as i64).min(b as i64) as u64;
    "max.s64" => |a, b| (a as i64).max(b as i64) as u64;
    "min.u64" => |a, b| a.min(b);
    "max.u64" => |a, b| a.max(b);
    "and.b64" => |a, b| a & b;
    "or.b64" => |a, b| a | b;
    "xor.b64" => |a, b| a ^ b;
    "add.f64" | "add.rn.f64" => |a, b| bits(value(a) + value(b));
    "sub.f64" | "sub.rn.f64" => |a, b| bits(value(a) - value(b));
    "mul.f64" | "mul.rn.f64" => |a, b| bits(value(a) * value(b));
    "div.rn.f64" => |a, b| bits(value(a) / value(b));
    "min.f64" => |a, b| smaller(a, b);
    "max.f64" => |a, b| smaller(a ^ SIGN, b ^ SIGN) ^ flip(a, b);
    "copysign.f64" => |a, b| (a & SIGN) | (b & !SIGN);
}

table! {
    /// Three operands.
    three: D3(D; D, D, D)
    "mad.lo.s64" | "mad.lo.u64" => |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    "mad.hi.u64" => |a, b, c| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c);
    "mad.hi.s64" => |a, b, c| {
        (((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64).wrapping_add(c)
    };
    "fma.rn.f64" | "mad.rn.f64" => |a, b, c| bits(value(a).mul_add(value(b), value(c)));
}

table! {
    /// By a word.
    shift: Shift(D; D, W)
    "shl.b64" => |a, b| if b < 64 { a << b } else { 0 };
    "shr.u64" | "shr.b64" => |a, b| if b < 64 { a >> b } else { 0 };
    "shr.s64" => |a, b| ((a as i64) >> b.min(63)) as u64;
}

table! {
    /// Of a word.
    widen1: Widen1(D; W)
    "cvt.u64.u32" | "cvt.s64.u32" => |a| u64::from(a);
    "cvt.s64.s32" | "cvt.u64.s32" => |a| i64::from(a as i32) as u64;
    "cvt.u64.u16" | "cvt.s64.u16" => |a| u64::from(a & 0xffff);
    "cvt.s64.s16" | "cvt.u64.s16" => |a| i64::from(a as i16) as u64;
    "cvt.u64.u8" | "cvt.s64.u8" => |a| u64::from(a & 0xff);
    "cvt.s64.s8" | "cvt.u64.s8" => |a| i64::from(a as i8) as u64;
    "cvt.f64.f32" => |a| bits(f64::from(f32::from_bits(a)));
}

table! {
    /// Of two words.
    widen2: Widen2(D; W, W)
    "mul.wide.u32" => |a, b| u64::from(a) * u64::from(b);
    "mul.wide.s32" => |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64;
}

table! {
    /// Of two words and a double.
    widen3: Widen3(D; W, W, D)
    "mad.wide.u32" => |a, b, c| (u64::from(a) * u64::from(b)).wrapping_add(c);
    "mad.wide.s32" => |a, b, c| ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c);
}

table! {
    /// To a word.
    narrow: Narrow(W; D)
    "cvt.u32.u64" | "cvt.s32.s64" | "cvt.u32.s64" | "cvt.s32.u64" => |a| a as u32;
    "popc.b64" => |a| a.count_ones();
    "clz.b64" => |a| a.leading_zeros();
    "bfind.u64" => |a| 63u32.wrapping_sub(a.leading_zeros());
    "bfind.s64" => |a| 63u32.wrapping_sub((a ^ ((a as i64 >> 63) as u64)).leading_zeros());
}

table! {
    /// A field of a double.
    field: Field(D; D, W, W)
    "bfe.u64" => |a, b, c| extract(a, b & 0xff, c & 0xff);
    "bfe.s64" => |a, b, c| extract_signed(a, b & 0xff, c & 0xff);
}

table! {
    /// A field of a double into another.
    insert: Insert(D; D, D, W, W)
    "bfi.b64" => |a, b, c, d| put(a, b, c & 0xff, d & 0xff);
}

const SIGN: u64 = 1 << 63;

/// The only NaN that a card makes of doubles.
const NAN: u64 = 0xfff8_0000_0000_0000;

fn value(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn bits(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// A number wins over a NaN, and -0 is below +0.
fn smaller(a: u64, b: u64) -> u64 {
    match (value(a).is_nan(), value(b).is_nan()) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        _ if value(a).total_cmp(&value(b)).is_le() => a,
        _ => b,
    }
}

/// Undoes the change of sign around `smaller`, unless the result is a NaN.
fn flip(a: u64, b: u64) -> u64 {
    if value(a).is_nan() && value(b).is_nan() {
        0
    } else {
        SIGN
    }
}

fn mask(len: u32) -> u64 {
    if len < 64 { (1 << len) - 1 } else { u64::MAX }
}

fn extract(a: u64, pos: u32, len: u32) -> u64 {
    if pos > 63 { 0 } else { (a >> pos) & mask(len) }
}

fn extract_signed(a: u64, pos: u32, len: u32) -> u64 {
    if len == 0 {
        return 0;
    }
    let sign = (a >> (pos + len - 1).min(63)) & 1;
    let kept = (63u32.saturating_sub(pos) + 1).min(len) * u32::from(pos < 64);
    let field = extract(a, pos, len);
    if sign == 1 {
        field | !mask(kept)
    } else {
        field
    }
}

fn put(a: u64, b: u64, pos: u32, len: u32) -> u64 {
    if pos > 63 {
        return b;
    }
    let field = mask(len) << pos;
    (b & !field) | ((a << pos) & field)
}
