//! Pieces of a file that was cut at any byte, as some sites do with large files: they have to
//! be joined, and their names tell how.

use std::path::Path;

use crate::error::{OpenError, ParseError, Refusal};

/// The refusal of a file that is such a piece by its name, instead of what is wrong with the
/// piece as a model. `None` if it is something else.
pub(crate) fn refusal(path: &Path, error: &OpenError) -> Option<Refusal> {
    // The first piece looks like a model that was cut short, the others like nothing.
    let fits = matches!(
        error.reason,
        Refusal::Parse(ParseError::Truncated { .. } | ParseError::NotAModel { .. })
    );
    if !fits {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    if name.contains(char::is_control) {
        return None;
    }
    join_command(name).map(|command| Refusal::Piece { command })
}

/// How to join the pieces of which one has this name.
fn join_command(name: &str) -> Option<String> {
    let (whole, piece) = name.split_once(".gguf")?;
    let target = format!("{whole}.gguf");
    let piece = piece.to_ascii_lowercase();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = piece.strip_prefix(".part") {
        return match number.split_once("of") {
            Some((part, parts)) if is_number(part) && is_number(parts) => {
                Some(cat(&target, ".part", parts))
            }
            None if is_number(number) => Some(format!("cat {0}.part* > {0}", quoted(&target))),
            _ => None,
        };
    }
    let letter = piece.strip_prefix("-split-")?;
    let is_letters =
        (1..=2).contains(&letter.len()) && letter.bytes().all(|b| b.is_ascii_alphabetic());
    is_letters.then(|| format!("cat {0}-split-* > {0}", quoted(&target)))
}

/// Pieces that a command names one by one; more are meant by a pattern.
const NAMED_MAX: u32 = 4;

/// Joins `parts` pieces named by their numbers.
fn cat(target: &str, middle: &str, parts: &str) -> String {
    let target = quoted(target);
    match parts.parse::<u32>() {
        Ok(count @ 1..=NAMED_MAX) => {
            let pieces = (1..=count).map(|i| format!("{target}{middle}{i}of{parts}"));
            format!("cat {} > {target}", pieces.collect::<Vec<_>>().join(" "))
        }
        // A pattern would put piece 10 before piece 2, so the shell counts.
        Ok(count) => format!(
            "for i in $(seq {count}); do cat {target}{middle}${{i}}of{parts}; done > {target}"
        ),
        Err(_) => format!("cat {target}{middle}*of{parts} > {target}"),
    }
}

/// For a shell, which takes most names as they are.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    if name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pieces_tell_how_to_join_them() {
        let check = |name: &str, command: Option<&str>| {
            assert_eq!(join_command(name).as_deref(), command, "{name}");
        };
        let two = "cat m.gguf.part1of2 m.gguf.part2of2 > m.gguf";
        check("m.gguf.part1of2", Some(two));
        check("m.gguf.part2of2", Some(two));
        let many = "for i in $(seq 12); do cat m.gguf.part${i}of12; done > m.gguf";
        check("m.gguf.part3of12", Some(many));
        check("m.gguf.part3", Some("cat m.gguf.part* > m.gguf"));
        check("m.gguf-split-a", Some("cat m.gguf-split-* > m.gguf"));
        let spaced = "cat 'a b.gguf'.part1of1 > 'a b.gguf'";
        check("a b.gguf.part1of1", Some(spaced));
        check("m.gguf", None);
        check("m.gguf.partial", None);
        check("m-00001-of-00002.gguf", None);
        check("m.gguf.part1ofx", None);
    }
}
