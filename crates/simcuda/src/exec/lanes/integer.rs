//! Integers of 16 and 32 bits. Values of 16 bits lie in the low half; what is above them is never
//! looked at.

use super::{W, table};

table! {
    /// One operand.
    one: W1(W; W)
    "mov.u32" | "mov.b32" | "mov.s32" | "mov.f32" => |a| a;
    "mov.u16" | "mov.b16" | "mov.s16" => |a| a & 0xffff;
    "not.b32" => |a| !a;
    "not.b16" => |a| !a & 0xffff;
    "neg.s32" => |a| a.wrapping_neg();
    "neg.s16" => |a| a.wrapping_neg() & 0xffff;
    "abs.s32" => |a| (a as i32).wrapping_abs() as u32;
    "abs.s16" => |a| u32::from((a as i16).wrapping_abs() as u16);
    "popc.b32" => |a| a.count_ones();
    "clz.b32" => |a| a.leading_zeros();
    "brev.b32" => |a| a.reverse_bits();
    "bfind.u32" => |a| 31u32.wrapping_sub(a.leading_zeros());
    "bfind.s32" => |a| 31u32.wrapping_sub(sign_free(a).leading_zeros());
    "bfind.shiftamt.u32" => |a| if a == 0 { u32::MAX } else { a.leading_zeros() };
    "bfind.shiftamt.s32" => |a| match sign_free(a) {
        0 => u32::MAX,
        bits => bits.leading_zeros(),
    };
    "cnot.b32" => |a| u32::from(a == 0);
}

table! {
    /// Two operands.
    two: W2(W; W, W)
    "add.s32" | "add.u32" => |a, b| a.wrapping_add(b);
    "sub.s32" | "sub.u32" => |a, b| a.wrapping_sub(b);
    "add.sat.s32" => |a, b| (a as i32).saturating_add(b as i32) as u32;
    "sub.sat.s32" => |a, b| (a as i32).saturating_sub(b as i32) as u32;
    "mul.lo.s32" | "mul.lo.u32" => |a, b| a.wrapping_mul(b);
    "mul.hi.u32" => |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32;
    "mul.hi.s32" => |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32;
    "mul24.lo.u32" => |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff);
    "mul24.lo.s32" => |a, b| ((a << 8) as i32 >> 8).wrapping_mul((b << 8) as i32 >> 8) as u32;
    "mul.wide.u16" => |a, b| (a & 0xffff) * (b & 0xffff);
    "mul.wide.s16" => |a, b| (i32::from(a as i16) * i32::from(b as i16)) as u32;
    "div.u32" => |a, b| a.checked_div(b).unwrap_or(u32::MAX);
    "div.s32" => |a, b| if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 };
    "rem.u32" => |a, b| a.checked_rem(b).unwrap_or(a);
    "rem.s32" => |a, b| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 };
    "min.s32" => |a, b| (a as i32).min(b as i32) as u32;
    "max.s32" => |a, b| (a as i32).max(b as i32) as u32;
    "min.u32" => |a, b| a.min(b);
    "max.u32" => |a, b| a.max(b);
    "and.b32" => |a, b| a & b;
    "or.b32" => |a, b| a | b;
    "xor.b32" => |a, b| a ^ b;
    "shl.b32" => |a, b| if b < 32 { a << b } else { 0 };
    "shr.u32" | "shr.b32" => |a, b| if b < 32 { a >> b } else { 0 };
    "shr.s32" => |a, b| ((a as i32) >> b.min(31)) as u32;
    "add.s16" | "add.u16" => |a, b| a.wrapping_add(b) & 0xffff;
    "sub.s16" | "sub.u16" => |a, b| a.wrapping_sub(b) & 0xffff;
    "mul.lo.s16" | "mul.lo.u16" => |a, b| (a & 0xffff).wrapping_mul(b & 0xffff) & 0xffff;
    "mul.hi.u16" => |a, b| ((a & 0xffff) * (b & 0xffff)) >> 16;
    "mul.hi.s16" => |a, b| ((i32::from(a as i16) * i32::from(b as i16)) as u32) >> 16;
    "div.u16" => |a, b| u32::from((a as u16).checked_div(b as u16).unwrap_or(u16::MAX));
    "div.s16" => |a, b| match b as i16 {
        0 => 0xffff,
        b => u32::from((a as i16).wrapping_div(b) as u16),
    };
    "rem.u16" => |a, b| u32::from((a as u16).checked_rem(b as u16).unwrap_or(a as u16));
    "rem.s16" => |a, b| match b as i16 {
        0 => a & 0xffff,
        b => u32::from((a as i16).wrapping_rem(b) as u16),
    };
    "min.s16" => |a, b| u32::from((a as i16).min(b as i16) as u16);
    "max.s16" => |a, b| u32::from((a as i16).max(b as i16) as u16);
    "min.u16" => |a, b| u32::from((a as u16).min(b as u16));
    "max.u16" => |a, b| u32::from((a as u16).max(b as u16));
    "and.b16" => |a, b| a & b & 0xffff;
    "or.b16" => |a, b| (a | b) & 0xffff;
    "xor.b16" => |a, b| (a ^ b) & 0xffff;
    "shl.b16" => |a, b| if b < 16 { (a << b) & 0xffff } else { 0 };
    "shr.u16" | "shr.b16" => |a, b| if b < 16 { (a & 0xffff) >> b } else { 0 };
    "shr.s16" => |a, b| u32::from((a as i16 >> b.min(15)) as u16);
}

table! {
    /// Three operands.
    three: W3(W; W, W, W)
    "mad.lo.s32" | "mad.lo.u32" => |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    "mad.hi.u32" => |a, b, c| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c);
    "mad.hi.s32" => |a, b, c| {
        (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c)
    };
    "mad.lo.s16" | "mad.lo.u16" => |a, b, c| {
        (a & 0xffff).wrapping_mul(b & 0xffff).wrapping_add(c) & 0xffff
    };
    "mad.wide.u16" => |a, b, c| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c);
    "mad.wide.s16" => |a, b, c| {
        ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c)
    };
    "sad.u32" => |a, b, c| a.abs_diff(b).wrapping_add(c);
    "sad.s32" => |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c);
    "bfe.u32" => |a, b, c| bfe_unsigned(a, b & 0xff, c & 0xff);
    "bfe.s32" => |a, b, c| bfe_signed(a, b & 0xff, c & 0xff);
    "prmt.b32" => |a, b, c| permute(a, b, c);
    "shf.l.wrap.b32" => |a, b, c| funnel_left(a, b, c & 31);
    "shf.r.wrap.b32" => |a, b, c| funnel_right(a, b, c & 31);
    "shf.l.clamp.b32" => |a, b, c| funnel_left(a, b, c.min(32));
    "shf.r.clamp.b32" => |a, b, c| funnel_right(a, b, c.min(32));
    "dp4a.s32.s32" => |a, b, c| dot(a, b, c, signed, signed);
    "dp4a.u32.u32" => |a, b, c| dot(a, b, c, unsigned, unsigned);
    "dp4a.s32.u32" => |a, b, c| dot(a, b, c, signed, unsigned);
    "dp4a.u32.s32" => |a, b, c| dot(a, b, c, unsigned, signed);
}

table! {
    /// Four operands.
    four: W4(W; W, W, W, W)
    "bfi.b32" => |a, b, c, d| insert(a, b, c & 0xff, d & 0xff);
}

fn sign_free(a: u32) -> u32 {
    a ^ ((a as i32 >> 31) as u32)
}

fn mask(len: u32) -> u32 {
    if len < 32 { (1 << len) - 1 } else { u32::MAX }
}

fn bfe_unsigned(a: u32, pos: u32, len: u32) -> u32 {
    if pos > 31 { 0 } else { (a >> pos) & mask(len) }
}

/// Bits beyond the operand are copies of the sign: of the field's top bit, or of the operand's
/// where the field reaches beyond it.
fn bfe_signed(a: u32, pos: u32, len: u32) -> u32 {
    if len == 0 {
        return 0;
    }
    let top = (pos + len - 1).min(31);
    let sign = (a >> top) & 1;
    let field = bfe_unsigned(a, pos, len);
    let kept = (31u32.saturating_sub(pos) + 1).min(len) * u32::from(pos < 32);
    if sign == 1 {
        field | !mask(kept)
    } else {
        field
    }
}

fn insert(a: u32, b: u32, pos: u32, len: u32) -> u32 {
    if pos > 31 {
        return b;
    }
    let field = mask(len) << pos;
    (b & !field) | ((a << pos) & field)
}

fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(a) | (u64::from(b) << 32);
    let mut out = 0;
    for place in 0..4 {
        let choice = (selector >> (4 * place)) & 0xf;
        let byte = (bytes >> (8 * (choice & 7))) as u8;
        let byte = if choice & 8 == 0 {
            byte
        } else {
            (byte as i8 >> 7) as u8
        };
        out |= u32::from(byte) << (8 * place);
    }
    out
}

fn funnel_left(low: u32, high: u32, by: u32) -> u32 {
    (((u64::from(high) << 32 | u64::from(low)) << by) >> 32) as u32
}

fn funnel_right(low: u32, high: u32, by: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> by) as u32
}

#[inline]
fn signed(byte: u8) -> i32 {
    i32::from(byte as i8)
}

#[inline]
fn unsigned(byte: u8) -> i32 {
    i32::from(byte)
}

#[inline]
fn dot(a: u32, b: u32, c: u32, of_a: impl Fn(u8) -> i32, of_b: impl Fn(u8) -> i32) -> u32 {
    let mut sum = c as i32;
    for place in [0, 8, 16, 24] {
        sum = sum.wrapping_add(of_a((a >> place) as u8) * of_b((b >> place) as u8));
    }
    sum as u32
}
