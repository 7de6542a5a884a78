//! The tables, one migration after the other. A migration that was ever released never changes.

use rusqlite::{Connection, Transaction};

use crate::error::Error;
use crate::wire::Code;

/// Migration `n` brings a store from version `n` to `n + 1`.
const MIGRATIONS: [&str; 2] = [
    // Messages are a tree: `parent` is the message answered. The branch that a conversation shows
    // runs from its `leaf` to the root. The text of a reply that is being written stands in its
    // draft, see `draft.rs`. A model's path is its bytes, since paths need not be UTF-8.
    "CREATE TABLE conversation (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         title TEXT NOT NULL,
         created_ms INTEGER NOT NULL,
         updated_ms INTEGER NOT NULL,
         deleted_ms INTEGER,
         leaf INTEGER REFERENCES message (id)
     ) STRICT;
     CREATE TABLE message (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         conversation INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
         parent INTEGER REFERENCES message (id) ON DELETE CASCADE,
         role TEXT NOT NULL,
         state TEXT NOT NULL,
         created_ms INTEGER NOT NULL,
         text TEXT NOT NULL,
         record TEXT
     ) STRICT;
     CREATE INDEX message_by_conversation ON message (conversation);
     CREATE INDEX message_by_parent ON message (parent);
     CREATE INDEX message_being_written ON message (state) WHERE state = 'writing';
     CREATE TABLE model (
         path BLOB PRIMARY KEY,
         last_used_ms INTEGER,
         forgotten INTEGER NOT NULL DEFAULT 0
     ) STRICT, WITHOUT ROWID;",
    // What was typed and not sent. No conversation: the one that is not begun.
    "CREATE TABLE unsent (
         conversation INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
         text TEXT NOT NULL,
         waiting TEXT NOT NULL
     ) STRICT;",
];

/// Brings the store to the version of this program.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        let message = format!(
            "Your conversations were written by a newer version of Candor (their format is \
             {found}, this version knows {known}). Use that version, or another data folder.",
        );
        return Err(Error::new(Code::Storage, message));
    }
    for (version, migration) in MIGRATIONS.iter().enumerate().skip(found.max(0) as usize) {
        let transaction = connection.transaction()?;
        apply(&transaction, migration, version as i64 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

fn apply(transaction: &Transaction<'_>, migration: &str, version: i64) -> Result<(), Error> {
    transaction.execute_batch(migration)?;
    transaction.pragma_update(None, "user_version", version)?;
    Ok(())
}
