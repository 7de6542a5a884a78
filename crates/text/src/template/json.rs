//! The `tojson` filter as Hugging Face's transformers define it: Python's `json.dumps` without
//! escaping of non-ASCII characters.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::print::{DEPTH_MAX, FUEL_BYTES, bytes_left, too_deep};

/// How the text is laid out, and what it may cost.
struct Layout<'s, 't, 'e> {
    state: &'s State<'t, 'e>,
    /// Longer text there is no fuel for.
    bytes_max: u64,
    indent: Option<usize>,
    between_items: String,
    after_key: String,
    order: KeyOrder,
    letters: Letters,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyOrder {
    AsGiven,
    Sorted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    AsTheyAre,
    Ascii,
}

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
pub(super) fn tojson(state: &State, value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (between_items, after_key) = match separators.as_deref() {
        Some([between_items, after_key]) => (between_items.clone(), after_key.clone()),
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "separators are not a pair",
            ));
        }
        None => (
            if indent.is_some() { "," } else { ", " }.to_owned(),
            ": ".to_owned(),
        ),
    };
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let ascii = options
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    options.assert_all_used()?;
    let layout = Layout {
        state,
        bytes_max: bytes_left(state),
        indent,
        between_items,
        after_key,
        order: if sorted {
            KeyOrder::Sorted
        } else {
            KeyOrder::AsGiven
        },
        letters: if ascii {
            Letters::Ascii
        } else {
            Letters::AsTheyAre
        },
    };
    let mut out = String::new();
    layout.write(value, 0, &mut out)?;
    state.consume_fuel(out.len() as u64 / FUEL_BYTES)?;
    Ok(Value::from(out))
}

impl Layout<'_, '_, '_> {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        // A list that repeats a value is short in memory and long when it is written.
        self.state.consume_fuel(1)?;
        if out.len() as u64 > self.bytes_max {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => write_number(value, out),
            ValueKind::String => self.write_text(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?;
                self.write_list(('[', ']'), items, depth, out, |layout, item, out| {
                    layout.write(item, depth + 1, out)
                })?;
            }
            ValueKind::Map => self.write_map(value, depth, out)?,
            kind => {
                let message = format!("a value of kind {kind} is not JSON serializable");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    fn write_map(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.order == KeyOrder::Sorted {
            keys.sort();
        }
        self.write_list(
            ('{', '}'),
            keys.into_iter(),
            depth,
            out,
            |layout, key, out| {
                layout.write_text(&key.to_string(), out);
                out.push_str(&layout.after_key);
                layout.write(&value.get_item(key)?, depth + 1, out)
            },
        )
    }

    fn write_list(
        &self,
        (open, close): (char, char),
        items: impl Iterator<Item = Value>,
        depth: usize,
        out: &mut String,
        write_item: impl Fn(&Self, &Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        let mut is_empty = true;
        for item in items {
            if !std::mem::replace(&mut is_empty, false) {
                out.push_str(&self.between_items);
            }
            self.new_line(depth + 1, out)?;
            write_item(self, &item, out)?;
        }
        if !is_empty {
            self.new_line(depth, out)?;
        }
        out.push(close);
        Ok(())
    }

    fn new_line(&self, depth: usize, out: &mut String) -> Result<(), Error> {
        let Some(indent) = self.indent else {
            return Ok(());
        };
        let spaces = indent.saturating_mul(depth);
        if out.len().saturating_add(spaces) as u64 > self.bytes_max {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', spaces));
        Ok(())
    }

    fn write_text(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.letters == Letters::Ascii && !c.is_ascii()) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// Numbers as Python writes them: `2.0` stays a float, large and small ones get an exponent.
fn write_number(value: &Value, out: &mut String) {
    if value.is_integer() {
        out.push_str(&value.to_string());
        return;
    }
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        });
    } else if number != 0.0 && !(1e-4..1e16).contains(&number.abs()) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{number:?}");
    }
}
