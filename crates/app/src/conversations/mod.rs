//! The store of conversations: one SQLite file, one writer, and a draft per running reply.
//!
//! One program at a time has it open. A second one is refused in words instead of sharing: two
//! programs would each hold replies that the other takes for interrupted. The lock is the
//! system's own on a file, so that it ends with the process however that ends.

mod branches;
mod cards;
mod draft;
mod messages;
mod records;
mod salvage;
mod schema;
mod search;
mod summaries;
pub(crate) mod transfer;
mod unsent;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::Error;
use crate::library;
use crate::paths::AppPaths;
use crate::wire::Code;
use crate::words::{Phrase, phrase};

pub(crate) use draft::Draft;
pub(crate) use messages::{Begun, Closing, Question, StoredMessage};

/// Damage that is looked for at the start is described by its first finding; one is enough.
const QUICK_CHECK: &str = "PRAGMA quick_check(1)";

/// The open store.
pub(crate) struct Store {
    connection: Mutex<Connection>,
    drafts: draft::Drafts,
    /// Held as long as the store is open.
    lock: Mutex<Option<Lock>>,
}

/// A store that was opened, and what the user has to hear about it.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) notice: Option<Phrase>,
}

/// The right to have the store open.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just being started holds a copy
        // of it, and the lock with it, until it has become the other program.
        self.0.unlock().ok();
    }
}

impl Store {
    /// Opens the store, makes one if there is none, and ends what a killed program left open. A
    /// damaged file is kept under another name, a new one is begun, and the notice says so.
    pub(crate) fn open(paths: &AppPaths, now_ms: i64) -> Result<Opened, Error> {
        let lock = prepare(paths)?;
        let path = paths.database();
        refuse_newer(&path)?;
        let (mut connection, damage) = match connect(&path)? {
            Connected::Sound(connection) => (connection, None),
            Connected::Damaged(finding) => {
                let aside = keep_aside(&path, now_ms)?;
                match connect(&path)? {
                    Connected::Sound(connection) => (connection, Some((finding, aside))),
                    Connected::Damaged(finding) => return Err(unusable(&finding)),
                }
            }
        };
        schema::migrate(&mut connection)?;
        let notice = match damage {
            Some((finding, aside)) => {
                // A store that takes nothing in is still a store.
                let saved = salvage::salvage(&aside, &mut connection).unwrap_or_default();
                Some(damage_words(&finding, &aside, saved))
            }
            None => None,
        };
        let drafts = draft::Drafts::open(paths.drafts_dir()).map_err(folder_error)?;
        let (connection, lock) = (Mutex::new(connection), Mutex::new(Some(lock)));
        let store = Self {
            connection,
            drafts,
            lock,
        };
        store.close_what_was_interrupted()?;
        store.purge_deleted()?;
        store.purge_cards()?;
        Ok(Opened { store, notice })
    }

    /// Closes the file and lets another program open it. Whoever still asks finds nothing: in its
    /// place stands an empty store in memory, whose every answer is an error.
    pub(crate) fn release(&self) {
        if let Ok(nothing) = Connection::open_in_memory() {
            *self.connection() = nothing;
        }
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolled it back when it was dropped, so the connection is
        // sound.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(paths: &AppPaths) -> Result<Lock, Error> {
    fs::create_dir_all(&paths.data).map_err(folder_error)?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(paths.lock_file());
    let lock = lock.map_err(folder_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(Lock(lock)),
        Err(TryLockError::WouldBlock) => {
            let message = phrase!(
                "Candor is already open with these conversations. \
                 Use that window, or another data folder.",
                "Candor ist mit diesen Gesprächen schon geöffnet. \
                 Nutze jenes Fenster oder einen anderen Datenordner.",
            );
            Err(Error::new(Code::Busy, message))
        }
        Err(TryLockError::Error(error)) => Err(folder_error(error)),
    }
}

fn folder_error(source: io::Error) -> Error {
    let message = phrase!(
        "The folder for your conversations could not be used: {source}.",
        "Der Ordner für deine Gespräche ließ sich nicht nutzen: {source}.",
        source,
    );
    Error::new(Code::Storage, message).because(source)
}

fn unusable(finding: &str) -> Error {
    let message = phrase!(
        "A new store of conversations could not be begun: {finding}.",
        "Ein neuer Speicher für Gespräche ließ sich nicht anlegen: {finding}.",
        finding,
    );
    Error::new(Code::Storage, message)
}

/// A store of a newer version is not touched: no byte of it, and not its journal either. Opened for
/// writing it would be tidied up when it is closed.
fn refuse_newer(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match schema::version(&connection) {
        Ok(version) => schema::refuse_newer(version),
        // Damage is looked for, and spoken of, when it is opened.
        Err(_) => Ok(()),
    }
}

enum Connected {
    Sound(Connection),
    Damaged(String),
}

fn connect(path: &Path) -> Result<Connected, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(path, flags)?;
    match settle(&connection) {
        Ok(finding) if finding == "ok" => Ok(Connected::Sound(connection)),
        Ok(finding) => Ok(Connected::Damaged(finding)),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Ok(Connected::Damaged(error.to_string()))
            }
            _ => Err(error.into()),
        },
    }
}

/// Sets the connection up and gives the finding of the quick check.
fn settle(connection: &Connection) -> rusqlite::Result<String> {
    // The answer is the mode that was reached. A file system without shared memory keeps the old
    // journal, which is slower and as safe.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // A question must outlive a power cut, not only a kill; there are few transactions.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.query_row(QUICK_CHECK, [], |row| row.get(0))
}

/// What the user hears of a damaged store.
fn damage_words(finding: &str, aside: &Path, saved: salvage::Saved) -> Phrase {
    let name = library::shown_name(aside);
    let salvage::Saved {
        conversations,
        messages,
    } = saved;
    let found = match conversations {
        0 => phrase!(
            "nothing in it could be read, so a new one was begun",
            "nichts darin ließ sich lesen, deshalb wurde eine neue begonnen",
        ),
        1 => phrase!(
            "1 conversation with {messages} messages could be read and is here",
            "1 Gespräch mit {messages} Nachrichten ließ sich lesen und ist hier",
            messages,
        ),
        _ => phrase!(
            "{conversations} conversations with {messages} messages could be read and are here",
            "{conversations} Gespräche mit {messages} Nachrichten ließen sich lesen und sind hier",
            conversations,
            messages,
        ),
    };
    phrase!(
        "The file with your conversations is damaged ({finding}). It was kept as {name}; {found}.",
        "Die Datei mit deinen Gesprächen ist beschädigt ({finding}). Sie ist aufgehoben als \
         {name}; {found}.",
        finding,
        name,
        found,
    )
}

/// Renames the file and its companions and gives the new path.
fn keep_aside(path: &Path, now_ms: i64) -> Result<PathBuf, Error> {
    let aside = with_end(path, &format!(".damaged-{now_ms}"));
    fs::rename(path, &aside).map_err(folder_error)?;
    for (from, to) in companions(path).into_iter().zip(companions(&aside)) {
        if from.exists() {
            fs::rename(from, to).map_err(folder_error)?;
        }
    }
    Ok(aside)
}

/// The files that SQLite keeps beside its own.
fn companions(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|end| with_end(path, end))
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
