//! Results on standard output, notices on standard error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde_json::{Value, json};

use crate::failure::Report;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One object on one line.
    Json,
}

/// Where results go.
pub(crate) struct Output {
    form: Form,
    out: BufWriter<Stdout>,
    is_terminal: bool,
}

impl Output {
    pub(crate) fn new(form: Form) -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self {
            form,
            out: BufWriter::new(out),
            is_terminal,
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// One result as a line of JSON.
    pub(crate) fn json(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", ascii(value))?;
        self.out.flush()
    }

    /// A line for people.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Text of a model, seen at once. A terminal gets none of the control characters by which a
    /// model could steer it.
    pub(crate) fn model_text(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            self.out.write_all(harmless(text).as_bytes())?;
        } else {
            self.out.write_all(text.as_bytes())?;
        }
        self.out.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// A failure: for people on standard error, for scripts as the last line of the output.
    pub(crate) fn report(&mut self, report: &Report) {
        let Report {
            code,
            message,
            advice,
            file,
            ..
        } = report;
        if self.form == Form::Text {
            let advice = advice.as_deref().map(sentence).unwrap_or_default();
            notice(&format!("error: {message}{advice}"));
            return;
        }
        let mut error = json!({ "code": code, "message": message });
        if let Some(file) = file {
            error["file"] = json!(file.to_string_lossy());
        }
        if let Some(advice) = advice {
            error["advice"] = json!(advice);
        }
        // The exit code says the same to a script that does not read any more.
        let _ = self.json(&json!({ "error": error }));
    }
}

/// Advice as a sentence of its own, behind another one.
fn sentence(advice: &str) -> String {
    let mut rest = advice.chars();
    let first = rest.next().map(char::to_uppercase);
    let first: String = first.into_iter().flatten().collect();
    format!(". {first}{}.", rest.as_str())
}

/// A line on standard error. Nothing depends on its being read.
pub(crate) fn notice(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// JSON whose every character is ASCII.
fn ascii(value: &Value) -> String {
    let text = value.to_string();
    if text.is_ascii() {
        return text;
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Text without the control characters that steer a terminal.
fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| {
            if steers(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_json_is_ascii_and_reads_back() {
        for text in [
            "plain",
            "é ü 田中",
            "🙂👨‍👩‍👧",
            "\u{7f}\u{0}\"\\\n",
            "\u{fffd}\u{10ffff}",
        ] {
            let value = json!({ "text": text, text: 1 });
            let line = ascii(&value);
            assert!(line.is_ascii() && !line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Value>(&line).ok(), Some(value));
        }
    }

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(
            harmless("a\u{1b}[31mb\r\n\tc\u{9b}"),
            "a\u{fffd}[31mb\u{fffd}\n\tc\u{fffd}"
        );
    }
}
