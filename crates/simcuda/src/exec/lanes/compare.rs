//! Comparisons: from two registers to one bit a lane.

use super::float::{flushed, value};
use super::half::{bf16_value, f16_value};
use super::{D, W};

/// A comparison of a kind of register.
pub(crate) type Compare<L> = fn(&L, &L) -> u32;

/// How a comparison is joined with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
    Xor,
}

impl Join {
    /// By its name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        match name {
            "and" => Some(Self::And),
            "or" => Some(Self::Or),
            "xor" => Some(Self::Xor),
            _ => None,
        }
    }

    /// Both together.
    pub(crate) fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

macro_rules! lanes {
    ($lanes:ty, |$x:ident, $y:ident| $body:expr) => {{
        fn compare(a: &$lanes, b: &$lanes) -> u32 {
            let mut out = 0;
            for lane in 0..super::LANES {
                let ($x, $y) = (a[lane], b[lane]);
                out |= u32::from($body) << lane;
            }
            out
        }
        compare
    }};
}

/// The six comparisons of values that are always ordered.
macro_rules! integers {
    ($op:expr, $lanes:ty, $type:ty) => {
        match $op {
            "eq" => lanes!($lanes, |a, b| a as $type == b as $type),
            "ne" => lanes!($lanes, |a, b| a as $type != b as $type),
            "lt" | "lo" => lanes!($lanes, |a, b| (a as $type) < b as $type),
            "le" | "ls" => lanes!($lanes, |a, b| a as $type <= b as $type),
            "gt" | "hi" => lanes!($lanes, |a, b| a as $type > b as $type),
            "ge" | "hs" => lanes!($lanes, |a, b| a as $type >= b as $type),
            _ => return None,
        }
    };
}

/// The fourteen comparisons of floats: those with `u` are true where one is a NaN.
macro_rules! floats {
    ($op:expr, $lanes:ty, $value:expr) => {
        match $op {
            "eq" => lanes!($lanes, |a, b| $value(a) == $value(b)),
            "ne" => lanes!($lanes, |a, b| $value(a) < $value(b)
                || $value(a) > $value(b)),
            "lt" => lanes!($lanes, |a, b| $value(a) < $value(b)),
            "le" => lanes!($lanes, |a, b| $value(a) <= $value(b)),
            "gt" => lanes!($lanes, |a, b| $value(a) > $value(b)),
            "ge" => lanes!($lanes, |a, b| $value(a) >= $value(b)),
            "equ" => lanes!($lanes, |a, b| !($value(a) < $value(b)
                || $value(a) > $value(b))),
            "neu" => lanes!($lanes, |a, b| $value(a) != $value(b)),
            "ltu" => lanes!($lanes, |a, b| $value(a) < $value(b)
                || nan(($value(a), $value(b)))),
            "leu" => lanes!($lanes, |a, b| $value(a) <= $value(b)
                || nan(($value(a), $value(b)))),
            "gtu" => lanes!($lanes, |a, b| $value(a) > $value(b)
                || nan(($value(a), $value(b)))),
            "geu" => lanes!($lanes, |a, b| $value(a) >= $value(b)
                || nan(($value(a), $value(b)))),
            "num" => lanes!($lanes, |a, b| !nan(($value(a), $value(b)))),
            "nan" => lanes!($lanes, |a, b| nan(($value(a), $value(b)))),
            _ => return None,
        }
    };
}

/// A comparison of registers of up to 32 bits, by its name and its type.
pub(crate) fn set_w(op: &str, of: &str) -> Option<Compare<W>> {
    Some(match of {
        "b32" if !matches!(op, "eq" | "ne") => return None,
        "b16" if !matches!(op, "eq" | "ne") => return None,
        "u32" | "b32" => integers!(op, W, u32),
        "s32" => integers!(op, W, i32),
        "u16" | "b16" => integers!(op, W, u16),
        "s16" => integers!(op, W, i16),
        "f32" => floats!(op, W, value),
        "ftz.f32" => floats!(op, W, flushed),
        "f16" => floats!(op, W, f16_value),
        "bf16" => floats!(op, W, bf16_value),
        _ => return None,
    })
}

/// A comparison of registers of 64 bits.
pub(crate) fn set_d(op: &str, of: &str) -> Option<Compare<D>> {
    Some(match of {
        "b64" if !matches!(op, "eq" | "ne") => return None,
        "u64" | "b64" => integers!(op, D, u64),
        "s64" => integers!(op, D, i64),
        "f64" => floats!(op, D, f64::from_bits),
        _ => return None,
    })
}

/// `testp` of a float; the second operand is not looked at.
pub(crate) fn test(op: &str) -> Option<Compare<W>> {
    Some(match op {
        "finite" => lanes!(W, |a, _b| value(a).is_finite()),
        "infinite" => lanes!(W, |a, _b| value(a).is_infinite()),
        "number" => lanes!(W, |a, _b| !value(a).is_nan()),
        "notanumber" => lanes!(W, |a, _b| value(a).is_nan()),
        "normal" => lanes!(W, |a, _b| value(a).is_normal()),
        "subnormal" => lanes!(W, |a, _b| value(a).is_subnormal()),
        _ => return None,
    })
}

/// Whether the two have no order.
fn nan<T: PartialOrd>((a, b): (T, T)) -> bool {
    a.partial_cmp(&b).is_none()
}
