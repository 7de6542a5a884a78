//! One file, from wherever it stands to whole and checked.
//!
//! What has come lies in a file beside its place, under a name that no library lists. Its length
//! is how far it is; its first bytes are hashed again before more is asked for, so that nothing
//! has to be believed that an earlier run left behind.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use ureq::http::StatusCode;

use super::fault::{self, Fault};
use super::http::{Answer, Client, From};
use crate::words::phrase;

/// Bytes that are read at once: a page turn of the disk, and progress many times a second.
const PIECE_BYTES: usize = 256 * 1024;
/// What a model file begins with: GGUF, or APR in its two spellings.
const BEGINNINGS: [&[u8]; 3] = [b"GGUF", b"APR\0", b"APR"];
/// The longest of them.
const BEGINNING_BYTES: usize = 4;

/// A file that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) url: String,
    pub(super) size: u64,
    /// In hexadecimal digits; none where the server names none.
    pub(super) sha256: Option<String>,
    /// Where it lies until it is whole.
    pub(super) part: PathBuf,
}

/// What somebody who waits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes are here.
    Received(u64),
    /// What is here is read again.
    Checking,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Stop,
}

/// Is told every step, and says whether to go on.
pub(super) type Follow<'a> = &'a mut dyn FnMut(Step) -> Next;

/// Brings a file as far as one connection brings it, and checks it once all is here. `version` is
/// the server's mark of the version that is being fetched.
///
/// # Errors
/// [`Fault`]; whatever came stays for the next try, unless it is known to be of no use.
pub(super) fn fetch(
    client: &Client,
    wanted: &Wanted,
    version: &mut Option<String>,
    follow: Follow<'_>,
) -> Result<(), Fault> {
    let mut part = Part::open(wanted, follow)?;
    if part.length < wanted.size {
        let from = From {
            byte: part.length,
            version: version.as_deref(),
        };
        let answer = client.file(&wanted.url, &from)?;
        if let Some(answer) = part.agree(wanted, answer, version)? {
            part.take(wanted, answer, follow)?;
        }
    }
    part.finish(wanted)
}

/// The part of a file that is here.
struct Part {
    file: File,
    length: u64,
    hash: Sha256,
    /// The first bytes, as far as they are here.
    beginning: Vec<u8>,
}

impl Part {
    fn open(wanted: &Wanted, follow: Follow<'_>) -> Result<Self, Fault> {
        let disk = |source| Fault::of_disk(source, wanted.size);
        if let Some(folder) = wanted.part.parent() {
            std::fs::create_dir_all(folder).map_err(disk)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&wanted.part).map_err(disk)?;
        let found = file.metadata().map_err(disk)?.len();
        let mut part = Self {
            file,
            length: 0,
            hash: Sha256::new(),
            beginning: Vec::new(),
        };
        if found > wanted.size {
            part.begin_anew()?;
        }
        let mut piece = vec![0; PIECE_BYTES];
        while part.length < found.min(wanted.size) {
            if follow(Step::Checking) == Next::Stop {
                return Err(Fault::Stopped);
            }
            let count = part.file.read(&mut piece).map_err(disk)?;
            if count == 0 {
                break;
            }
            part.count(&piece[..count]);
        }
        if follow(Step::Received(part.length)) == Next::Stop {
            return Err(Fault::Stopped);
        }
        Ok(part)
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        let lacks = BEGINNING_BYTES.saturating_sub(self.beginning.len());
        self.beginning
            .extend_from_slice(&bytes[..bytes.len().min(lacks)]);
    }

    fn begin_anew(&mut self) -> Result<(), Fault> {
        let disk = |source| Fault::Disk { source };
        self.file.set_len(0).map_err(disk)?;
        self.file.seek(SeekFrom::Start(0)).map_err(disk)?;
        (self.length, self.hash) = (0, Sha256::new());
        self.beginning.clear();
        Ok(())
    }

    /// Looks whether the answer goes on where this ends; where the server begins at the start,
    /// this does too. None if the server says that there is no more.
    fn agree(
        &mut self,
        wanted: &Wanted,
        answer: Answer,
        version: &mut Option<String>,
    ) -> Result<Option<Answer>, Fault> {
        let is_page = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"));
        match answer.status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT if is_page => return Err(Fault::WebPage),
            StatusCode::PARTIAL_CONTENT => {
                let (first, whole) = answer.range().ok_or(Fault::NotUnderstood)?;
                check_size(wanted, whole)?;
                if first != self.length {
                    // Bytes from somewhere else are of no use; the next try begins at the start.
                    self.begin_anew()?;
                    let reason = phrase!(
                        "another part of the file came",
                        "es kam ein anderer Teil der Datei",
                    );
                    return Err(Fault::Broke { reason });
                }
            }
            StatusCode::OK => {
                check_size(wanted, answer.length())?;
                if self.length > 0 {
                    self.begin_anew()?;
                }
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                self.begin_anew()?;
                let reason = phrase!(
                    "the file on the server is a shorter one",
                    "die Datei auf dem Server ist kürzer",
                );
                return Err(Fault::Broke { reason });
            }
            _ => return Err(answer.fault()),
        }
        *version = answer.header("etag").map(String::from);
        Ok(Some(answer))
    }

    fn take(
        &mut self,
        wanted: &Wanted,
        mut answer: Answer,
        follow: Follow<'_>,
    ) -> Result<(), Fault> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = match answer.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(source) => return Err(Fault::lost(&source)),
            };
            let found = self.length + count as u64;
            if found > wanted.size {
                self.begin_anew()?;
                return Err(Fault::WrongSize {
                    expected: wanted.size,
                    found,
                });
            }
            self.file
                .write_all(&piece[..count])
                .map_err(|source| Fault::of_disk(source, wanted.size - self.length))?;
            self.count(&piece[..count]);
            self.look_at_the_beginning()?;
            if follow(Step::Received(self.length)) == Next::Stop {
                return Err(Fault::Stopped);
            }
        }
        Ok(())
    }

    /// A sign-in page that says it were a file is found out by its first bytes, not after hours.
    fn look_at_the_beginning(&mut self) -> Result<(), Fault> {
        let begins = |known: &&[u8]| self.beginning.starts_with(known);
        if self.beginning.len() < BEGINNING_BYTES || BEGINNINGS.iter().any(begins) {
            return Ok(());
        }
        let is_page = self.beginning.starts_with(b"<");
        self.begin_anew()?;
        Err(if is_page {
            Fault::WebPage
        } else {
            Fault::NotAModel
        })
    }

    fn finish(mut self, wanted: &Wanted) -> Result<(), Fault> {
        if self.length < wanted.size {
            let reason = fault::broken_off();
            return Err(Fault::Broke { reason });
        }
        let found = hexadecimal(&self.hash.clone().finalize());
        let differs = |sha256: &String| !sha256.eq_ignore_ascii_case(&found);
        if wanted.sha256.as_ref().is_some_and(differs) {
            self.begin_anew()?;
            return Err(Fault::WrongChecksum);
        }
        self.look_at_the_beginning()?;
        self.file
            .sync_all()
            .map_err(|source| Fault::of_disk(source, 0))
    }
}

fn check_size(wanted: &Wanted, found: Option<u64>) -> Result<(), Fault> {
    match found.filter(|found| *found != wanted.size) {
        Some(found) => Err(Fault::WrongSize {
            expected: wanted.size,
            found,
        }),
        None => Ok(()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The name of what is here until it is whole.
pub(super) fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
