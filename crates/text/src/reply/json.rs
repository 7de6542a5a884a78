//! Where a JSON value that comes in pieces ends.

/// Looks for the end of one object or list, from its first bracket on.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl JsonScan {
    /// Takes more of the value; says after how many bytes of `text` it ended, once it has.
    pub(super) fn push(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_with_its_last_bracket() {
        let check = |text: &str, want: Option<usize>| {
            assert_eq!(JsonScan::default().push(text), want, "{text}");
            let mut scan = JsonScan::default();
            let ends = text
                .char_indices()
                .find_map(|(at, c)| Some(at + scan.push(&text[at..at + c.len_utf8()])?));
            assert_eq!(ends, want, "{text}, in pieces");
        };
        check("{}", Some(2));
        check(r#"{"a":"}é\"]","b":[1,{}]} more"#, Some(25));
        check("[[1],[2]]", Some(9));
        check(r#"{"a": 1"#, None);
        check(r#"{"a": "}"#, None);
    }
}
