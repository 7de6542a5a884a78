//! What was said on the command line: pure, so that it is tested without a window.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use candor_app::PROBE_ARGUMENT;

/// Shown for `--help` and after a word that is not known.
pub(crate) const USAGE: &str = "\
Usage: candor-desktop [OPTIONS] [MODEL]

  MODEL               a model file to open, or a file:// address of one

Options:
  --data-dir DIR      keep conversations, models and settings in DIR
  --safe-rendering    draw without the graphics card's buffers, if the window stays blank
  --help              show this
  --version           show the version";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Open the window.
    Window(Wishes),
    /// Ask the NVIDIA driver, print the answer, end: the short-lived child of this same program,
    /// so that a driver that hangs or crashes cannot take the window with it.
    CudaProbeChild,
    /// Print how it is called.
    Help,
    /// Print the version.
    Version,
    /// Print this sentence and how it is called.
    Misunderstood(String),
}

/// How the window is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Where everything is kept, if not in the usual folders.
    pub(crate) data_dir: Option<PathBuf>,
    /// A model file to open.
    pub(crate) model: Option<PathBuf>,
    /// Whether to draw the slow, sure way.
    pub(crate) rendering: Rendering,
}

/// How to draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// As suits the machine.
    #[default]
    Usual,
    /// Without the graphics card's buffers.
    Safe,
    /// The same, since the page of the start before never came up.
    AfterSilence,
}

/// What a start gives the next one whose page never came up. Nobody has to know it.
pub(crate) const AFTER_SILENCE: &str = "--safe-rendering=after-silence";

/// Reads the words after the program's name.
pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Task {
    let mut wishes = Wishes::default();
    let mut words = words.into_iter();
    let mut only_files = false;
    while let Some(word) = words.next() {
        let option = word
            .to_str()
            .filter(|text| text.starts_with("--") && !only_files);
        match option {
            Some(PROBE_ARGUMENT) => return Task::CudaProbeChild,
            Some("--help") => return Task::Help,
            Some("--version") => return Task::Version,
            Some("--safe-rendering") => wishes.rendering = Rendering::Safe,
            Some(AFTER_SILENCE) => wishes.rendering = Rendering::AfterSilence,
            Some("--data-dir") => match words.next() {
                Some(folder) => wishes.data_dir = Some(folder.into()),
                None => return Task::Misunderstood("--data-dir needs a folder".to_owned()),
            },
            Some("--") => only_files = true,
            Some(other) => return Task::Misunderstood(format!("{other} is not an option")),
            // Of several files the first is opened: there is one model at a time.
            None if wishes.model.is_none() => wishes.model = Some(path_of(&word)),
            None => {}
        }
    }
    Task::Window(wishes)
}

/// The model file among the words that a second start hands to the window that is open.
///
/// They come with the program's name in front, and with the folder that they are relative to.
pub(crate) fn handed_over(words: &[String], folder: &str) -> Option<PathBuf> {
    match read(words.iter().skip(1).map(OsString::from)) {
        Task::Window(wishes) => wishes.model.map(|model| Path::new(folder).join(model)),
        _ => None,
    }
}

/// A path as typed, or as a file manager hands it over (`file:///…`).
fn path_of(word: &OsStr) -> PathBuf {
    let address = word.to_str().filter(|text| text.starts_with("file://"));
    address
        .and_then(|text| url::Url::parse(text).ok())
        .and_then(|url| url.to_file_path().ok())
        .unwrap_or_else(|| PathBuf::from(word))
}

/// The same model as an address of ASCII characters only.
///
/// A second start hands its words to the first by a bus that carries only UTF-8: a file name
/// with other bytes in it arrives whole only in this form.
pub(crate) fn in_ascii(model: &Path, folder: &Path) -> Option<OsString> {
    if model.to_str().is_some() {
        return None;
    }
    let url = url::Url::from_file_path(folder.join(model)).ok()?;
    Some(OsString::from(url.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    fn window(data_dir: Option<&str>, model: Option<&str>, rendering: Rendering) -> Task {
        let path = |text: &str| PathBuf::from(text);
        Task::Window(Wishes {
            data_dir: data_dir.map(path),
            model: model.map(path),
            rendering,
        })
    }

    #[test]
    fn every_word_has_its_meaning() {
        let usual = Rendering::Usual;
        let cases: &[(&[&str], Task)] = &[
            (&[], window(None, None, usual)),
            (&["m.gguf"], window(None, Some("m.gguf"), usual)),
            (
                &["one.gguf", "two.gguf"],
                window(None, Some("one.gguf"), usual),
            ),
            (
                &["file:///a/b%20c%23.gguf"],
                window(None, Some("/a/b c#.gguf"), usual),
            ),
            (&["100% é.gguf"], window(None, Some("100% é.gguf"), usual)),
            (
                &["--data-dir", "/d", "m"],
                window(Some("/d"), Some("m"), usual),
            ),
            (
                &["--data-dir", "--help"],
                window(Some("--help"), None, usual),
            ),
            (&["--safe-rendering"], window(None, None, Rendering::Safe)),
            (
                &[AFTER_SILENCE, "--data-dir", "/d", "--", "m"],
                window(Some("/d"), Some("m"), Rendering::AfterSilence),
            ),
            (&["--", "--help"], window(None, Some("--help"), usual)),
            (&["--help"], Task::Help),
            (&["--version"], Task::Version),
            (&["m", PROBE_ARGUMENT], Task::CudaProbeChild),
            (
                &["--data-dir"],
                Task::Misunderstood("--data-dir needs a folder".to_owned()),
            ),
            (
                &["--fast"],
                Task::Misunderstood("--fast is not an option".to_owned()),
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(read(words(given)), *expected, "{given:?}");
        }
    }

    #[test]
    fn a_second_start_hands_over_a_path_relative_to_its_own_folder() {
        let given = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["candor-desktop", "m.gguf"], Some("/home/m.gguf")),
            (&["candor-desktop", "/x/m.gguf"], Some("/x/m.gguf")),
            (&["candor-desktop"], None),
            (&["candor-desktop", "--help"], None),
        ];
        for (list, expected) in cases {
            let found = handed_over(&given(list), "/home");
            assert_eq!(found, expected.map(PathBuf::from), "{list:?}");
        }
    }

    #[test]
    fn a_name_that_is_not_utf_8_survives_the_way_through_ascii() {
        let name = OsString::from_vec(b"a \xff\xfe.gguf".to_vec());
        let address = in_ascii(Path::new(&name), Path::new("/models")).expect("not UTF-8");
        assert!(address.is_ascii());
        let expected = Path::new("/models").join(&name);
        let Task::Window(wishes) = read([address]) else {
            panic!("not a window")
        };
        assert_eq!(wishes.model, Some(expected));
        assert_eq!(in_ascii(Path::new("é.gguf"), Path::new("/models")), None);
    }
}
