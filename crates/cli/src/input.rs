//! What arguments name: lists of ids, and files.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;

/// The text behind an argument: of the file if it begins with `@`, else the argument itself.
pub(crate) fn text(argument: &str) -> Result<String, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => file_text(Path::new(path)),
        None => Ok(argument.to_owned()),
    }
}

/// A file as text.
pub(crate) fn file_text(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::file(path, &error))?;
    utf8(bytes, &path.display().to_string())
}

/// Standard input as text, byte for byte.
pub(crate) fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::file(Path::new("standard input"), &error))?;
    utf8(bytes, "standard input")
}

fn utf8(bytes: Vec<u8>, from: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{from} is not UTF-8 text (at byte {at})"))
    })
}

/// Token ids: a list with commas or spaces, with or without brackets, or `@FILE` with one.
pub(crate) fn ids(argument: &str) -> Result<Vec<u32>, Failure> {
    let text = text(argument)?;
    let separates = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let words = text.split(separates).filter(|word| !word.is_empty());
    let parse = |word: &str| {
        word.parse()
            .map_err(|_| Failure::usage(format!("{word:?} is not a token id")))
    };
    words.map(parse).collect()
}

/// A file of messages: a JSON list of objects.
pub(crate) fn messages(path: &Path) -> Result<Vec<Value>, Failure> {
    let wrong = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
    let value: Value = serde_json::from_str(&file_text(path)?)
        .map_err(|error| wrong(&format!("this is not JSON: {error}")))?;
    match value {
        Value::Array(messages) if messages.iter().all(Value::is_object) => Ok(messages),
        _ => Err(wrong(
            "this is not a list of messages, such as [{\"role\": \"user\", \"content\": \"Hi\"}]",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_every_form() {
        let cases = [
            ("1,2,3", Some(vec![1, 2, 3])),
            ("[1, 2,\n3]", Some(vec![1, 2, 3])),
            ("7", Some(vec![7])),
            ("", Some(vec![])),
            ("1 2\t3\n", Some(vec![1, 2, 3])),
            ("1,-2", None),
            ("1,x", None),
            ("4294967296", None),
        ];
        for (text, want) in cases {
            assert_eq!(ids(text).ok(), want, "{text:?}");
        }
    }
}
