//! How what a file says appears in a message: short, and harmless.

use std::fmt;

/// Characters of a name that a message repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// Text out of a file, for a message: without control characters, and cut.
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, c) in self.0.chars().enumerate() {
            if i == SHOWN_CHARS_MAX {
                return f.write_str("…");
            }
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

/// A number of bytes as a person reads it: `2.1 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
    ];
    for (unit, name) in UNITS {
        if bytes >= unit {
            return format!("{:.1} {name}", bytes as f64 / unit as f64);
        }
    }
    exact(bytes)
}

/// Two sizes that are to be compared: exact where rounding would make them equal.
pub fn sizes(found: u64, needed: u64) -> (String, String) {
    let rounded = (size(found), size(needed));
    if rounded.0 == rounded.1 && found != needed {
        return (exact(found), exact(needed));
    }
    rounded
}

/// `1,234,567 bytes`.
fn exact(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{grouped} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_differ_when_the_numbers_do() {
        assert_eq!(
            sizes(2_100_000_000, 4_700_000_000),
            ("2.1 GB".into(), "4.7 GB".into())
        );
        assert_eq!(sizes(3, 24), ("3 bytes".into(), "24 bytes".into()));
        let exact = ("1,200,000 bytes".into(), "1,200,001 bytes".into());
        assert_eq!(sizes(1_200_000, 1_200_001), exact);
        assert_eq!(size(1), "1 byte");
    }

    #[test]
    fn text_of_a_file_is_cut_and_has_no_control_characters() {
        assert_eq!(Shown("a\u{1b}[31m\nb").to_string(), "a\\u{1b}[31m\\nb");
        assert_eq!(
            Shown(&"x".repeat(1000)).to_string().chars().count(),
            SHOWN_CHARS_MAX + 1
        );
    }
}
