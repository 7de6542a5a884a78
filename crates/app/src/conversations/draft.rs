//! The text of a reply while it is written: a plain file that is only appended to.
//!
//! A transaction of the database writes whole pages, several kilobytes for a few words, and a
//! slow model writes for minutes: the same text would be written a hundred times over. A file
//! takes the words as they are. When the reply ends its text enters the database in one
//! transaction and the draft goes. A draft that is found at the next start belongs to a reply
//! that was interrupted.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::wire::MessageId;

/// Most that is read back from a draft. A reply has at most as many tokens as the largest context
/// holds, and few tokens are longer than this many bytes in the mean.
const DRAFT_BYTES_MAX: u64 = 64 << 20;

/// A draft that is being written.
pub(crate) struct Draft {
    file: File,
}

impl Draft {
    /// Appends whole characters.
    pub(crate) fn append(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }
}

/// The folder of the drafts.
pub(super) struct Drafts {
    dir: PathBuf,
}

impl Drafts {
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self { dir })
    }

    fn path(&self, message: MessageId) -> PathBuf {
        self.dir.join(format!("{message}.txt"))
    }

    pub(super) fn begin(&self, message: MessageId) -> io::Result<Draft> {
        // One that was left here is in the database already.
        let file = File::create(self.path(message))?;
        Ok(Draft { file })
    }

    /// The text so far; empty if there is none. A crash may have cut the last character.
    pub(super) fn read(&self, message: MessageId) -> io::Result<String> {
        let mut bytes = Vec::new();
        match File::open(self.path(message)) {
            Ok(file) => file.take(DRAFT_BYTES_MAX).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(whole_characters(bytes))
    }

    /// Keeps a draft that cannot be read now, out of the way of those to come.
    pub(super) fn keep_aside(&self, message: MessageId) {
        let path = self.path(message);
        // Where it stays in its place it is removed like all others.
        let _ = fs::rename(&path, path.with_extension("unread"));
    }

    pub(super) fn discard(&self, message: MessageId) {
        // One that stays is removed at the next start.
        let _ = fs::remove_file(self.path(message));
    }

    /// Removes what no reply needs any more.
    pub(super) fn clear(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            if Path::new(&entry.file_name())
                .extension()
                .is_some_and(|end| end == "txt")
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn whole_characters(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let whole = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(whole);
        String::from_utf8(bytes).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], want: &str) {
        assert_eq!(whole_characters(bytes.to_vec()), want);
    }

    #[test]
    fn a_cut_character_at_the_end_is_left_out() {
        check(b"", "");
        check("Grüße 🙂".as_bytes(), "Grüße 🙂");
        check(&"Grüße 🙂".as_bytes()[.."Grüße 🙂".len() - 1], "Grüße ");
    }

    #[test]
    fn a_draft_grows_by_what_is_appended_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let drafts = Drafts::open(dir.path().join("drafts")).unwrap();
        assert_eq!(drafts.read(1).unwrap(), "");
        let mut draft = drafts.begin(1).unwrap();
        draft.append("one ").unwrap();
        draft.append("two").unwrap();
        assert_eq!(drafts.read(1).unwrap(), "one two");
        drafts.discard(1);
        assert_eq!(drafts.read(1).unwrap(), "");
    }
}
