//! What an instruction does to the 32 lanes of a warp, as tables from opcode to function.
//!
//! Every opcode is written out with its modifiers: what has no row does not exist.

mod approx;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod round;
mod wide;

pub(crate) use compare::{Compare, Join, set_d, set_w, test};
pub(crate) use convert::Convert;
pub(crate) use half::{bf16_value, f16_value};

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// A register of up to 32 bits.
pub(crate) type W = [u32; LANES];

/// A register of 64 bits.
pub(crate) type D = [u64; LANES];

/// A function over lanes, by what it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Alu {
    /// Words to a word.
    W1(fn(&mut W, &W)),
    W2(fn(&mut W, &W, &W)),
    W3(fn(&mut W, &W, &W, &W)),
    /// `bfi.b32`
    W4(fn(&mut W, &W, &W, &W, &W)),
    /// Doubles to a double.
    D1(fn(&mut D, &D)),
    D2(fn(&mut D, &D, &D)),
    D3(fn(&mut D, &D, &D, &D)),
    /// A double shifted by a word.
    Shift(fn(&mut D, &D, &W)),
    /// Words to a double.
    Widen1(fn(&mut D, &W)),
    Widen2(fn(&mut D, &W, &W)),
    /// `mad.wide`
    Widen3(fn(&mut D, &W, &W, &D)),
    /// A double to a word.
    Narrow(fn(&mut W, &D)),
    /// `bfe` of a double.
    Field(fn(&mut D, &D, &W, &W)),
    /// `bfi.b64`
    Insert(fn(&mut D, &D, &D, &W, &W)),
}

impl Alu {
    /// The files of the destination and of the sources: `w`ords or `d`oubles.
    pub(crate) fn files(self) -> &'static str {
        match self {
            Self::W1(_) => "ww",
            Self::W2(_) => "www",
            Self::W3(_) => "wwww",
            Self::W4(_) => "wwwww",
            Self::D1(_) => "dd",
            Self::D2(_) => "ddd",
            Self::D3(_) => "dddd",
            Self::Shift(_) => "ddw",
            Self::Widen1(_) => "dw",
            Self::Widen2(_) => "dww",
            Self::Widen3(_) => "dwwd",
            Self::Narrow(_) => "wd",
            Self::Field(_) => "ddww",
            Self::Insert(_) => "dddww",
        }
    }
}

/// The function of an opcode.
pub(crate) fn find(op: &str) -> Option<Alu> {
    let tables = [
        integer::one,
        integer::two,
        integer::three,
        integer::four,
        float::one,
        float::two,
        float::three,
        approx::one,
        half::one,
        half::two,
        half::three,
        wide::one,
        wide::two,
        wide::three,
        wide::shift,
        wide::widen1,
        wide::widen2,
        wide::widen3,
        wide::narrow,
        wide::field,
        wide::insert,
        convert::word,
        convert::pair,
        convert::widen,
        convert::narrow,
    ];
    tables.iter().find_map(|table| table(op))
}

/// A table from opcodes to functions of one shape.
macro_rules! table {
    ($(#[$doc:meta])* $find:ident: $shape:ident($out:ty; $a:ty)
     $($($name:literal)|+ => |$x:ident| $body:expr;)+) => {
        $(#[$doc])*
        pub(super) fn $find(op: &str) -> Option<super::Alu> {
            Some(match op {
                $($($name)|+ => {
                    fn lanes(out: &mut $out, a: &$a) {
                        for (out, &$x) in out.iter_mut().zip(a) {
                            *out = $body;
                        }
                    }
                    super::Alu::$shape(lanes)
                })+
                _ => return None,
            })
        }
    };
    ($(#[$doc:meta])* $find:ident: $shape:ident($out:ty; $a:ty, $b:ty)
     $($($name:literal)|+ => |$x:ident, $y:ident| $body:expr;)+) => {
        $(#[$doc])*
        pub(super) fn $find(op: &str) -> Option<super::Alu> {
            Some(match op {
                $($($name)|+ => {
                    fn lanes(out: &mut $out, a: &$a, b: &$b) {
                        for lane in 0..super::LANES {
                            let ($x, $y) = (a[lane], b[lane]);
                            out[lane] = $body;
                        }
                    }
                    super::Alu::$shape(lanes)
                })+
                _ => return None,
            })
        }
    };
    ($(#[$doc:meta])* $find:ident: $shape:ident($out:ty; $a:ty, $b:ty, $c:ty)
     $($($name:literal)|+ => |$x:ident, $y:ident, $z:ident| $body:expr;)+) => {
        $(#[$doc])*
        pub(super) fn $find(op: &str) -> Option<super::Alu> {
            Some(match op {
                $($($name)|+ => {
                    fn lanes(out: &mut $out, a: &$a, b: &$b, c: &$c) {
                        for lane in 0..super::LANES {
                            let ($x, $y, $z) = (a[lane], b[lane], c[lane]);
                            out[lane] = $body;
                        }
                    }
                    super::Alu::$shape(lanes)
                })+
                _ => return None,
            })
        }
    };
    ($(#[$doc:meta])* $find:ident: $shape:ident($out:ty; $a:ty, $b:ty, $c:ty, $d:ty)
     $($($name:literal)|+ => |$x:ident, $y:ident, $z:ident, $w:ident| $body:expr;)+) => {
        $(#[$doc])*
        pub(super) fn $find(op: &str) -> Option<super::Alu> {
            Some(match op {
                $($($name)|+ => {
                    fn lanes(out: &mut $out, a: &$a, b: &$b, c: &$c, d: &$d) {
                        for lane in 0..super::LANES {
                            let ($x, $y, $z, $w) = (a[lane], b[lane], c[lane], d[lane]);
                            out[lane] = $body;
                        }
                    }
                    super::Alu::$shape(lanes)
                })+
                _ => return None,
            })
        }
    };
}
use table;
