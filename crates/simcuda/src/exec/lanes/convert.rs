//! `cvt`: the frequent ones as rows, every other through one description.

use super::float::{NAN, bits, flush, saturate, value};
use super::half::{bf16_bits, bf16_value, f16_bits, f16_value};
use super::round::{self, Round};
use super::{D, W, table};

table! {
    /// Word to word.
    word: W1(W; W)
    "cvt.u32.u16" | "cvt.s32.u16" => |a| a & 0xffff;
    "cvt.u32.s16" | "cvt.s32.s16" => |a| i32::from(a as i16) as u32;
    "cvt.u32.u8" | "cvt.s32.u8" | "cvt.u16.u8" | "cvt.s16.u8" => |a| a & 0xff;
    "cvt.u32.s8" | "cvt.s32.s8" => |a| i32::from(a as i8) as u32;
    "cvt.u16.s8" | "cvt.s16.s8" => |a| u32::from(i16::from(a as i8) as u16);
    "cvt.u16.u32" | "cvt.u16.s32" | "cvt.s16.u32" | "cvt.s16.s32" => |a| a & 0xffff;
    "cvt.u8.u32" | "cvt.u8.s32" | "cvt.u8.u16" | "cvt.u8.s16" => |a| a & 0xff;
    "cvt.s8.u32" | "cvt.s8.s32" | "cvt.s8.u16" | "cvt.s8.s16" => |a| i32::from(a as i8) as u32;
    "cvt.u32.s32" | "cvt.s32.u32" | "cvt.u32.u32" | "cvt.s32.s32" => |a| a;
    "cvt.rn.f32.s32" => |a| (a as i32 as f32).to_bits();
    "cvt.rn.f32.u32" => |a| (a as f32).to_bits();
    "cvt.rn.f32.s8" => |a| f32::from(a as i8).to_bits();
    "cvt.rn.f32.u8" => |a| f32::from(a as u8).to_bits();
    "cvt.rn.f32.s16" => |a| f32::from(a as i16).to_bits();
    "cvt.rn.f32.u16" => |a| f32::from(a as u16).to_bits();
    "cvt.f32.f16" => |a| bits(f16_value(a));
    "cvt.rn.f16.f32" => |a| f16_bits(value(a));
    "cvt.f32.bf16" => |a| bits(bf16_value(a));
    "cvt.rn.bf16.f32" => |a| bf16_bits(value(a));
    "cvt.rni.s32.f32" | "cvt.rni.ftz.s32.f32" => |a| signed(value(a).round_ties_even());
    "cvt.rzi.s32.f32" | "cvt.rzi.ftz.s32.f32" => |a| signed(value(a).trunc());
    "cvt.rzi.u32.f32" | "cvt.rzi.ftz.u32.f32" => |a| value(a).trunc() as u32;
    "cvt.sat.f32.f32" | "cvt.ftz.sat.f32.f32" => |a| saturate(value(a));
    "cvt.rni.f32.f32" => |a| bits(value(a).round_ties_even());
    "cvt.rzi.f32.f32" => |a| bits(value(a).trunc());
    "cvt.rmi.f32.f32" => |a| bits(value(a).floor());
    "cvt.rpi.f32.f32" => |a| bits(value(a).ceil());
    "cvt.rni.ftz.f32.f32" => |a| bits(value(flush(a)).round_ties_even());
    "cvt.rzi.ftz.f32.f32" => |a| bits(value(flush(a)).trunc());
    "cvt.rmi.ftz.f32.f32" => |a| bits(value(flush(a)).floor());
    "cvt.rpi.ftz.f32.f32" => |a| bits(value(flush(a)).ceil());
}

table! {
    /// Two floats to a pair in a word, the first in the high half.
    pair: W2(W; W, W)
    "cvt.rn.f16x2.f32" => |a, b| (f16_bits(value(a)) << 16) | f16_bits(value(b));
    "cvt.rn.bf16x2.f32" => |a, b| (bf16_bits(value(a)) << 16) | bf16_bits(value(b));
    "cvt.rn.relu.f16x2.f32" => |a, b| {
        (relu(f16_bits(value(a))) << 16) | relu(f16_bits(value(b)))
    };
    "cvt.rn.relu.bf16x2.f32" => |a, b| {
        (relu(bf16_bits(value(a))) << 16) | relu(bf16_bits(value(b)))
    };
}

/// Below zero becomes zero, a NaN stays one.
fn relu(half: u32) -> u32 {
    if half & 0x8000 == 0 { half } else { 0 }
}

/// A NaN becomes 0, as on a card.
fn signed(whole: f32) -> u32 {
    whole as i32 as u32
}

/// A number type of `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Unsigned(u32),
    Signed(u32),
    F16,
    Bf16,
    F32,
    F64,
}

impl Type {
    fn find(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => {
                let (kind, width) = name.split_at_checked(1)?;
                let width = width.parse().ok()?;
                match (kind, width) {
                    ("u", 8 | 16 | 32 | 64) => Self::Unsigned(width),
                    ("s", 8 | 16 | 32 | 64) => Self::Signed(width),
                    _ => return None,
                }
            }
        })
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Unsigned(_) | Self::Signed(_))
    }

    /// Whether a register of 64 bits holds it.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::Unsigned(64) | Self::Signed(64) | Self::F64)
    }
}

/// A conversion without a row of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convert {
    to: Type,
    from: Type,
    round: Round,
    /// To a whole number of the same type.
    whole: bool,
    saturate: bool,
    flush: bool,
}

impl Convert {
    /// By its opcode; `None` where the ISA has no such conversion.
    pub(crate) fn find(op: &str) -> Option<Self> {
        let mut parts = op.strip_prefix("cvt.")?.split('.').rev();
        let from = Type::find(parts.next()?)?;
        let to = Type::find(parts.next()?)?;
        let mut one = Self {
            to,
            from,
            round: Round::Nearest,
            whole: false,
            saturate: false,
            flush: false,
        };
        let mut rounded = false;
        for part in parts {
            match part {
                "sat" => one.saturate = true,
                "ftz" => one.flush = true,
                how => {
                    one.round = match how.strip_suffix('i').unwrap_or(how) {
                        "rn" => Round::Nearest,
                        "rz" => Round::Zero,
                        "rm" => Round::Down,
                        "rp" => Round::Up,
                        _ => return None,
                    };
                    one.whole = how.ends_with('i');
                    rounded = true;
                }
            }
        }
        one.is_known(rounded).then_some(one)
    }

    /// Roundings that are computed: to whole numbers all, to floats as listed.
    fn is_known(self, rounded: bool) -> bool {
        if self.from.is_integer() && self.to.is_integer() {
            return !rounded;
        }
        if self.to.is_integer() {
            return rounded && self.whole;
        }
        if self.saturate && self.to != Type::F32 {
            return false;
        }
        match (self.from, self.to) {
            (from, to) if from == to => !rounded || self.whole,
            (Type::F16 | Type::Bf16, Type::F32) | (Type::F16 | Type::F32, Type::F64) => !rounded,
            (_, Type::F32) => rounded && !self.whole,
            _ => rounded && !self.whole && self.round == Round::Nearest,
        }
    }

    pub(crate) fn is_to_wide(self) -> bool {
        self.to.is_wide()
    }

    pub(crate) fn is_of_wide(self) -> bool {
        self.from.is_wide()
    }

    /// One lane.
    pub(crate) fn of(self, bits: u64) -> u64 {
        if self.from.is_integer() {
            let whole = integer(self.from, bits);
            return match self.to {
                to if to.is_integer() => self.to_integer(whole),
                Type::F64 => (whole as f64).to_bits(),
                _ => self.to_float(rounded_once(whole), whole == 0),
            };
        }
        let value = self.float(bits);
        if !self.to.is_integer() {
            return self.to_float(value, value == 0.0);
        }
        if value.is_nan() {
            return self.nan_as_integer();
        }
        // A conversion to an integer always saturates.
        let whole = self.round_whole(value) as i128;
        clamp(self.to, whole)
    }

    fn float(self, bits: u64) -> f64 {
        let word = bits as u32;
        match self.from {
            Type::F16 => f64::from(f16_value(word)),
            Type::Bf16 => f64::from(bf16_value(word)),
            Type::F32 if self.flush => f64::from(value(flush(word))),
            Type::F32 => f64::from(value(word)),
            _ => f64::from_bits(bits),
        }
    }

    fn round_whole(self, value: f64) -> f64 {
        match self.round {
            Round::Nearest => value.round_ties_even(),
            Round::Zero => value.trunc(),
            Round::Down => value.floor(),
            Round::Up => value.ceil(),
        }
    }

    /// Zero, but the top bit alone for 64 bits of a float64 source.
    fn nan_as_integer(self) -> u64 {
        match (self.from, self.to) {
            (Type::F64, Type::Unsigned(64) | Type::Signed(64)) => 1 << 63,
            (Type::F64, Type::Unsigned(32) | Type::Signed(32)) => 1 << 31,
            (_, Type::Unsigned(64) | Type::Signed(64)) => 1 << 63,
            _ => 0,
        }
    }

    fn to_integer(self, whole: i128) -> u64 {
        if self.saturate {
            clamp(self.to, whole)
        } else {
            fit(self.to, whole)
        }
    }

    fn to_float(self, value: f64, is_zero: bool) -> u64 {
        let value = if self.whole {
            self.round_whole(value)
        } else {
            value
        };
        match self.to {
            Type::F64 if value.is_nan() => 0xfff8_0000_0000_0000,
            Type::F64 => value.to_bits(),
            Type::F32 if value.is_nan() && !self.saturate => u64::from(NAN),
            Type::F32 => {
                let near = if is_zero {
                    value as f32
                } else {
                    round::to_f32(value, self.round)
                };
                let out = if self.saturate {
                    saturate(near)
                } else {
                    bits(near)
                };
                u64::from(if self.flush { flush(out) } else { out })
            }
            Type::F16 => u64::from(f16_bits(round::odd_f32(value))),
            _ => u64::from(bf16_bits(round::odd_f32(value))),
        }
    }
}

fn integer(of: Type, bits: u64) -> i128 {
    match of {
        Type::Unsigned(width) => i128::from(bits & (u64::MAX >> (64 - width))),
        Type::Signed(width) => i128::from((bits << (64 - width)) as i64 >> (64 - width)),
        _ => 0,
    }
}

/// The value as a double with an odd last bit where it does not fit, so that the rounding after
/// it is the only one.
fn rounded_once(whole: i128) -> f64 {
    let near = whole as f64;
    let back = near as i128;
    if back == whole || near.to_bits() & 1 == 1 {
        return near;
    }
    if (whole > back) == (near >= 0.0) {
        f64::from_bits(near.to_bits() + 1)
    } else {
        f64::from_bits(near.to_bits() - 1)
    }
}

fn clamp(to: Type, whole: i128) -> u64 {
    match to {
        Type::Unsigned(width) => whole.clamp(0, (1 << width) - 1) as u64,
        Type::Signed(width) => {
            let half = 1i128 << (width - 1);
            fit(to, whole.clamp(-half, half - 1))
        }
        _ => 0,
    }
}

/// The low bits; signed values below 32 bits are extended, as in registers of words.
fn fit(to: Type, whole: i128) -> u64 {
    match to {
        Type::Signed(8) => whole as i8 as u64,
        Type::Unsigned(8) => whole as u8 as u64,
        Type::Unsigned(16) | Type::Signed(16) => whole as u16 as u64,
        Type::Unsigned(32) | Type::Signed(32) => whole as u32 as u64,
        _ => whole as u64,
    }
}

table! {
    /// To a double.
    widen: Widen1(D; W)
    "cvt.rn.f64.s32" => |a| f64::from(a as i32).to_bits();
    "cvt.rn.f64.u32" => |a| f64::from(a).to_bits();
}

table! {
    /// Of a double.
    narrow: Narrow(W; D)
    "cvt.u16.u64" | "cvt.u16.s64" | "cvt.s16.u64" | "cvt.s16.s64" => |a| a as u32 & 0xffff;
    "cvt.u8.u64" | "cvt.u8.s64" => |a| a as u32 & 0xff;
    "cvt.rn.f32.f64" => |a| bits(f64::from_bits(a) as f32);
    "cvt.rn.f32.s64" => |a| (a as i64 as f32).to_bits();
    "cvt.rn.f32.u64" => |a| (a as f32).to_bits();
}
