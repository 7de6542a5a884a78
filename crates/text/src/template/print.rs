//! What a template prints, held to its fuel and to a depth while it is written.
//!
//! The engine charges for what was printed afterwards. Text it holds back before, but a list is
//! worth more when it is printed than when it is made: a million times the same long text is one
//! text in memory until then, and a list may even hold itself.
//!
//! Not seen here, because the engine gives no place for it: a list that `~` or a filter turns into
//! text.

use std::fmt::{self, Write};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, escape_formatter};

use super::RENDER_BYTES_MAX;

/// Bytes that one unit of fuel stands for, as the engine itself charges.
pub(super) const FUEL_BYTES: u64 = 64;

/// Deepest nesting that is written. JSON parsers stop at about the same depth.
pub(super) const DEPTH_MAX: usize = 128;

/// Prints a value as the engine does, but no more than there is fuel for.
pub(super) fn formatter(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if !is_container(value) {
        return escape_formatter(out, state, value);
    }
    let mut printer = Printer {
        out,
        state,
        left: bytes_left(state),
    };
    printer.value(value, 0)
}

/// Bytes that there is fuel for, as far as they can be read afterwards.
pub(super) fn bytes_left(state: &State) -> u64 {
    let left = state.fuel_levels().map_or(u64::MAX, |(_, left)| left);
    let bytes = left.saturating_mul(FUEL_BYTES);
    bytes.min(RENDER_BYTES_MAX as u64)
}

pub(super) fn too_deep() -> Error {
    let message = "a value is nested too deeply";
    Error::new(ErrorKind::InvalidOperation, message)
}

fn is_container(value: &Value) -> bool {
    let kind = value.kind();
    matches!(kind, ValueKind::Seq | ValueKind::Map)
        || (kind == ValueKind::Iterable && value.len().is_some())
}

/// A way out that ends when its bytes are used up.
struct Printer<'o, 'a, 's, 't, 'e> {
    out: &'o mut Output<'a>,
    state: &'s State<'t, 'e>,
    left: u64,
}

impl Printer<'_, '_, '_, '_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.state.consume_fuel(1)?;
        if !is_container(value) {
            return self.text(format_args!("{value:?}"));
        }
        let is_map = value.kind() == ValueKind::Map;
        self.text(format_args!("{}", if is_map { '{' } else { '[' }))?;
        for (index, item) in value.try_iter()?.enumerate() {
            if index > 0 {
                self.text(format_args!(", "))?;
            }
            self.value(&item, depth + 1)?;
            if is_map {
                self.text(format_args!(": "))?;
                self.value(&value.get_item(&item)?, depth + 1)?;
            }
        }
        self.text(format_args!("{}", if is_map { '}' } else { ']' }))
    }

    fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        self.write_fmt(text)
            .map_err(|_| Error::from(ErrorKind::OutOfFuel))
    }
}

impl Write for Printer<'_, '_, '_, '_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len() as u64).ok_or(fmt::Error)?;
        self.out.write_str(text)
    }
}

/// The beginning of a value's text, whatever the value holds: what goes beyond some bytes is not
/// even made, and every level of a list takes one.
pub(super) fn beginning(value: &Value, bytes: usize) -> String {
    let mut text = Beginning {
        text: String::new(),
        left: bytes,
    };
    // The only failure is that it is full.
    let _ = write!(text, "{value}");
    text.text
}

struct Beginning {
    text: String,
    left: usize,
}

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(self.left);
        self.text.push_str(&text[..fits]);
        self.left -= fits;
        if fits < text.len() {
            self.left = 0;
            return Err(fmt::Error);
        }
        Ok(())
    }
}
