//! The tables, one migration after the other. A migration that was ever released never changes.

use rusqlite::{Connection, Transaction};

use crate::error::Error;
use crate::wire::Code;
use crate::words::phrase;

/// Migration `n` brings a store from version `n` to `n + 1`.
const MIGRATIONS: [&str; 4] = [
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
    // Where a conversation stands in the sidebar. A card is a long text that goes with a message;
    // until it is sent, unsent words name it by its number. The words of titles and messages are
    // indexed for the search; the index holds no text of its own.
    "ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE conversation ADD COLUMN folder TEXT;
     ALTER TABLE unsent ADD COLUMN cards TEXT NOT NULL DEFAULT '[]';
     ALTER TABLE unsent ADD COLUMN waiting_cards TEXT NOT NULL DEFAULT '[]';
     CREATE TABLE card (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         message INTEGER REFERENCES message (id) ON DELETE CASCADE,
         name TEXT NOT NULL,
         size_bytes INTEGER NOT NULL,
         lines INTEGER NOT NULL,
         preview TEXT NOT NULL,
         text TEXT NOT NULL
     ) STRICT;
     CREATE INDEX card_by_message ON card (message);
     CREATE VIRTUAL TABLE message_words USING fts5 (
         text, content = 'message', content_rowid = 'id',
         tokenize = 'unicode61 remove_diacritics 2'
     );
     CREATE VIRTUAL TABLE title_words USING fts5 (
         title, content = 'conversation', content_rowid = 'id',
         tokenize = 'unicode61 remove_diacritics 2'
     );
     CREATE TRIGGER message_added AFTER INSERT ON message WHEN new.text <> '' BEGIN
         INSERT INTO message_words (rowid, text) VALUES (new.id, new.text);
     END;
     CREATE TRIGGER message_changed AFTER UPDATE OF text ON message BEGIN
         INSERT INTO message_words (message_words, rowid, text)
         SELECT 'delete', old.id, old.text WHERE old.text <> '';
         INSERT INTO message_words (rowid, text)
         SELECT new.id, new.text WHERE new.text <> '';
     END;
     CREATE TRIGGER message_removed AFTER DELETE ON message WHEN old.text <> '' BEGIN
         INSERT INTO message_words (message_words, rowid, text)
         VALUES ('delete', old.id, old.text);
     END;
     CREATE TRIGGER title_added AFTER INSERT ON conversation BEGIN
         INSERT INTO title_words (rowid, title) VALUES (new.id, new.title);
     END;
     CREATE TRIGGER title_changed AFTER UPDATE OF title ON conversation BEGIN
         INSERT INTO title_words (title_words, rowid, title)
         VALUES ('delete', old.id, old.title);
         INSERT INTO title_words (rowid, title) VALUES (new.id, new.title);
     END;
     CREATE TRIGGER title_removed AFTER DELETE ON conversation BEGIN
         INSERT INTO title_words (title_words, rowid, title)
         VALUES ('delete', old.id, old.title);
     END;
     INSERT INTO message_words (rowid, text) SELECT id, text FROM message WHERE text <> '';
     INSERT INTO title_words (rowid, title) SELECT id, title FROM conversation;",
    // What is chosen for one conversation alone, as JSON. No conversation: the one that is not
    // begun.
    "CREATE TABLE chat_settings (
         conversation INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
         settings TEXT NOT NULL
     ) STRICT;",
];

/// The version of the program that wrote the store, as the store counts.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Says what to do with a store that a newer program wrote.
pub(super) fn refuse_newer(found: i64) -> Result<(), Error> {
    let known = MIGRATIONS.len() as i64;
    if found > known {
        let message = phrase!(
            "Your conversations were written by a newer version of Candor (their format is \
             {found}, this version knows {known}). Use that version, or another data folder.",
            "Deine Gespräche hat eine neuere Version von Candor geschrieben (ihr Format ist \
             {found}, diese Version kennt {known}). Nutze jene Version oder einen anderen \
             Datenordner.",
            found,
            known,
        );
        return Err(Error::new(Code::Storage, message));
    }
    Ok(())
}

/// Brings the store to the version of this program.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let found = version(connection)?;
    refuse_newer(found)?;
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
