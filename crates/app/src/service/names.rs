//! What programs call a model: one string in every protocol.

use std::path::Path;

use candor_modelfile::gguf::split::PartName;

/// Names that a sentence lists.
const SHOWN_MAX: usize = 20;

/// The name of a file's model: its stem in lower case, without the number of a part.
pub fn model_id(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    match PartName::of(&name) {
        Some(part) => part.stem.to_lowercase(),
        None => without_ending(&name.to_lowercase()).to_owned(),
    }
}

/// The name that is meant by what a program wrote: any case, with or without the ending of the file
/// and the tag that some programs add.
pub fn wanted_id(asked: &str) -> String {
    let lower = asked.trim().to_lowercase();
    let name = lower.strip_suffix(":latest").unwrap_or(&lower);
    without_ending(name).to_owned()
}

fn without_ending(name: &str) -> &str {
    let stem = |ending| name.strip_suffix(ending);
    stem(".gguf").or(stem(".apr")).unwrap_or(name)
}

/// Names for a sentence.
pub(super) fn list(names: &[String]) -> String {
    if names.is_empty() {
        return String::from("none");
    }
    let shown = names.iter().take(SHOWN_MAX).map(|name| format!("`{name}`"));
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN_MAX {
        list.push_str(&format!(" and {} more", names.len() - SHOWN_MAX));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_one_name_however_it_is_written() {
        let files = [
            ("/m/SmolLM2-135M.Q4_1.gguf", "smollm2-135m.q4_1"),
            ("tiny.APR", "tiny"),
            ("Модель 🙂.gguf", "модель 🙂"),
            ("big-00002-of-00003.gguf", "big"),
            ("no-ending", "no-ending"),
        ];
        for (file, want) in files {
            assert_eq!(model_id(Path::new(file)), want);
        }
        let asked = [
            ("Tiny", "tiny"),
            ("tiny:latest", "tiny"),
            ("tiny.GGUF", "tiny"),
            (" tiny ", "tiny"),
            ("tiny:7b", "tiny:7b"),
        ];
        for (name, want) in asked {
            assert_eq!(wanted_id(name), want, "{name:?}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (0..25).map(|i| format!("m{i}")).collect();
        assert!(list(&names).ends_with("`m19` and 5 more"));
        assert_eq!(list(&names[..2]), "`m0`, `m1`");
        assert_eq!(list(&[]), "none");
    }
}
