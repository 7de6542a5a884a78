//! A path as an id that survives JSON and a database: every path, also one that is not UTF-8.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The bytes of a path, for the database.
#[cfg(unix)]
pub(crate) fn to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

/// The path of these bytes.
#[cfg(unix)]
pub(crate) fn from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

#[cfg(windows)]
pub(crate) fn to_bytes(path: &Path) -> Vec<u8> {
    use std::os::windows::ffi::OsStrExt;
    path.as_os_str()
        .encode_wide()
        .flat_map(u16::to_le_bytes)
        .collect()
}

#[cfg(windows)]
pub(crate) fn from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::windows::ffi::OsStringExt;
    let units = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit));
    PathBuf::from(OsString::from_wide(&units.collect::<Vec<_>>()))
}

/// The path as an id: its bytes, those outside letters, digits and `/.-_` as `%` and two digits.
pub(crate) fn encode(path: &Path) -> String {
    let mut id = String::new();
    for byte in to_bytes(path) {
        if byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte) {
            id.push(char::from(byte));
        } else {
            id.push_str(&format!("%{byte:02X}"));
        }
    }
    id
}

/// The path of an id; none if it is no id.
pub(crate) fn decode(id: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(id.len());
    let mut rest = id.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    (!bytes.is_empty()).then(|| from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &Path) {
        let id = encode(path);
        assert!(id.is_ascii());
        assert_eq!(decode(&id).as_deref(), Some(path));
        assert_eq!(from_bytes(&to_bytes(path)), path);
    }

    #[test]
    fn every_path_comes_back() {
        check(Path::new("/models/a.gguf"));
        check(Path::new(
            "/Модели  é ü 田中\u{3000}/qwen tiny 🙂 (final) #1 100%.gguf",
        ));
        check(Path::new("/e\u{301}.gguf"));
        #[cfg(unix)]
        check(&from_bytes(b"/tmp/\xff\xfe.gguf"));
    }

    #[test]
    fn what_is_no_id_is_no_path() {
        for id in ["", "%", "%4", "a%zz", "%é"] {
            assert_eq!(decode(id), None, "{id:?}");
        }
    }
}
