//! Bugs planted in kernels: one instruction of the PTX that ships is left out, reads or writes
//! beside its place, or does something else.

use std::borrow::Cow;
use std::fmt;

use crate::settings::fits;

/// A bug in a kernel, as `mutate=kernel:drop:bar.sync:1` asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The kernel's name, or how its name begins with a `*` after it.
    pub kernel: String,
    /// What becomes of the instruction.
    pub change: Change,
    /// How the instruction begins, to the end or to a dot: `ld.global` means `ld.global.nc.f32` too.
    pub mnemonic: String,
    /// Which of the kernel's instructions that begin so, counted from one.
    pub nth: usize,
}

/// What becomes of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `drop`: it is left out.
    Drop,
    /// `shift`, with a number of bytes behind the place: its address is so much further on.
    Shift(i64),
    /// `swap`, with an instruction behind the place: it is that one, with the same operands.
    Swap(String),
}

/// A mutation that finds nothing to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{mutation}: {expected}")]
pub(crate) struct NothingToChange {
    mutation: String,
    expected: &'static str,
}

impl Mutation {
    /// Reads what stands behind `mutate=`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let kernel = String::from(parts.next()?);
        let change = parts.next()?;
        let mnemonic = String::from(parts.next()?);
        let nth = parts.next()?.parse().ok().filter(|nth| *nth > 0)?;
        let change = match (change, parts.next()) {
            ("drop", None) => Change::Drop,
            ("shift", Some(bytes)) => Change::Shift(bytes.parse().ok()?),
            ("swap", Some(other)) => Change::Swap(String::from(other)),
            _ => return None,
        };
        parts.next().is_none().then_some(Self {
            kernel,
            change,
            mnemonic,
            nth,
        })
    }

    /// The line with the change, if the instruction has what is to be changed.
    fn change(&self, line: &str) -> Option<String> {
        match &self.change {
            Change::Drop => Some(String::new()),
            Change::Swap(other) => Some(line.replacen(instruction(line)?, other, 1)),
            Change::Shift(bytes) => {
                let (before, rest) = line.split_once('[')?;
                let (place, after) = rest.split_once(']')?;
                let (base, offset) = match place.split_once('+') {
                    Some((base, offset)) => (base, offset.trim().parse::<i64>().ok()?),
                    None => (place, 0),
                };
                Some(format!("{before}[{base}+{}]{after}", offset + bytes))
            }
        }
    }

    fn is_meant(&self, line: &str) -> bool {
        let rest = instruction(line).and_then(|word| word.strip_prefix(self.mnemonic.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kernel,
            change,
            mnemonic,
            nth,
        } = self;
        match change {
            Change::Drop => write!(f, "{kernel}:drop:{mnemonic}:{nth}"),
            Change::Shift(bytes) => write!(f, "{kernel}:shift:{mnemonic}:{nth}:{bytes}"),
            Change::Swap(other) => write!(f, "{kernel}:swap:{mnemonic}:{nth}:{other}"),
        }
    }
}

/// The first word of a line that is an instruction, behind its condition.
fn instruction(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with(['@', '{']));
    words.next().map(|word| word.trim_end_matches(';'))
}

/// The name of the kernel that begins in this line.
fn kernel_that_begins(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(".entry")?;
    rest.trim_start().split(['(', ' ']).next()
}

/// The text with these bugs, and how many instructions they have changed.
///
/// # Errors
/// When a mutation is meant for a kernel of this text and finds nothing there to change: a planted
/// bug that is none would make a test pass for nothing.
pub(crate) fn mutate<'a>(
    text: &'a str,
    mutations: &[Mutation],
) -> Result<(Cow<'a, str>, u64), NothingToChange> {
    let mut text = Cow::Borrowed(text);
    let mut changed = 0;
    for mutation in mutations {
        let nothing = |expected| NothingToChange {
            mutation: mutation.to_string(),
            expected,
        };
        let mut lines: Vec<Cow<'_, str>> = text.lines().map(Cow::Borrowed).collect();
        let (mut meant, mut found, mut seen, mut done) = (false, false, 0, 0);
        for line in &mut lines {
            if let Some(kernel) = kernel_that_begins(line) {
                meant = fits(&mutation.kernel, kernel);
                found |= meant;
                seen = 0;
            } else if meant && mutation.is_meant(line) {
                seen += 1;
                if seen == mutation.nth {
                    let other = mutation.change(line);
                    *line = Cow::Owned(other.ok_or_else(|| nothing("it has no address"))?);
                    done += 1;
                }
            }
        }
        if found && done == 0 {
            return Err(nothing("the kernel has no such instruction"));
        }
        changed += done;
        text = Cow::Owned(lines.join("\n"));
    }
    Ok((text, changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".visible .entry one(
)
{
@%p1 ld.global.nc.f32 %f1, [%rd4];
ld.global.f32 %f2, [%rd4+8];
bar.sync 0;
max.f32 %f3, %f1, %f2;
}
.visible .entry two()
{
bar.sync 0;
ld.global.f32 %f1, [%rd1+-4];
}";

    #[track_caller]
    fn check(mutation: &str, expected: Result<&[(usize, &str)], &str>) {
        let parsed = Mutation::parse(mutation).unwrap();
        assert_eq!(parsed.to_string(), mutation);
        let found = mutate(TEXT, &[parsed]);
        let expected = match expected {
            Ok(changes) => {
                let mut lines: Vec<&str> = TEXT.lines().collect();
                changes
                    .iter()
                    .for_each(|(line, text)| lines[line - 1] = text);
                Ok((Cow::Owned(lines.join("\n")), changes.len() as u64))
            }
            Err(why) => Err(format!("{mutation}: {why}")),
        };
        assert_eq!(
            found.map_err(|error| error.to_string()),
            expected,
            "{mutation}"
        );
    }

    #[test]
    fn one_instruction_is_another() {
        check("one:drop:bar.sync:1", Ok(&[(6, "")]));
        check("*:drop:bar:1", Ok(&[(6, ""), (11, "")]));
        check("t*:drop:bar.sync:1", Ok(&[(11, "")]));
        check(
            "one:shift:ld.global:1:4",
            Ok(&[(4, "@%p1 ld.global.nc.f32 %f1, [%rd4+4];")]),
        );
        check(
            "one:shift:ld.global.f32:1:-8",
            Ok(&[(5, "ld.global.f32 %f2, [%rd4+0];")]),
        );
        check(
            "two:shift:ld.global:1:-4",
            Ok(&[(12, "ld.global.f32 %f1, [%rd1+-8];")]),
        );
        check(
            "one:swap:max:1:min.f32",
            Ok(&[(7, "min.f32 %f3, %f1, %f2;")]),
        );
        check("three:drop:bar.sync:1", Ok(&[]));
    }

    #[test]
    fn a_bug_that_is_none_is_refused() {
        let missing = "the kernel has no such instruction";
        check("one:drop:bar.sync:2", Err(missing));
        check("one:drop:bar.syn:1", Err(missing));
        check("one:shift:max.f32:1:4", Err("it has no address"));
        for text in [
            "one",
            "one:drop:bar",
            "one:drop:bar:0",
            "one:drop:bar:1:2",
            "one:swap:max:1",
            "one:odd:max:1",
        ] {
            assert_eq!(Mutation::parse(text), None, "{text}");
        }
    }
}
