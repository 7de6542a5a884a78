//! What can still be read of a damaged store.
//!
//! The damaged file itself is kept as it is; what is read here is a copy of it. Damage is a page
//! or two of many as a rule, and whoever asks for row after row by its number gets all rows that
//! do not lie on one of them.

use std::fs;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, params, params_from_iter};

use super::companions;
use crate::error::Error;

/// Most rows that are asked for in one table. Whoever writes a thousand messages a day fills it in
/// ten years; it bounds the wait where the damage is in the number of the last row.
const ROWS_MAX: i64 = 4_000_000;

/// Where the number of the last row cannot be read, a table ends where so many numbers in a row
/// have no row.
const GAP_MAX: i64 = 5_000;

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) conversations: usize,
    pub(super) messages: usize,
}

/// The columns of a table that are saved; those of later versions may be missing.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
}

const CONVERSATION: Table = Table {
    name: "conversation",
    columns: &[
        "id",
        "title",
        "created_ms",
        "updated_ms",
        "deleted_ms",
        "leaf",
        "pinned",
        "folder",
    ],
};

const MESSAGE: Table = Table {
    name: "message",
    columns: &[
        "id",
        "conversation",
        "parent",
        "role",
        "state",
        "created_ms",
        "text",
        "record",
    ],
};

const CARD: Table = Table {
    name: "card",
    columns: &[
        "id",
        "message",
        "name",
        "size_bytes",
        "lines",
        "preview",
        "text",
    ],
};

const UNSENT: Table = Table {
    name: "unsent",
    columns: &["conversation", "text", "waiting", "cards", "waiting_cards"],
};

const CHAT_SETTINGS: Table = Table {
    name: "chat_settings",
    columns: &["conversation", "settings"],
};

/// Takes what can be read of the damaged file into the new, empty store. Nothing at all is no
/// error.
pub(super) fn salvage(damaged: &Path, into: &mut Connection) -> Result<Saved, Error> {
    let copy = damaged.with_extension("copy");
    let read = copied(damaged, &copy).ok().and_then(|()| open(&copy));
    let saved = match read {
        Some(from) => transfer(&from, into),
        None => Ok(Saved::default()),
    };
    for path in companions(&copy).into_iter().chain([copy]) {
        // It is only a copy; one that stays does no harm.
        let _ = fs::remove_file(path);
    }
    saved
}

fn copied(damaged: &Path, copy: &Path) -> std::io::Result<()> {
    fs::copy(damaged, copy)?;
    for (from, to) in companions(damaged).into_iter().zip(companions(copy)) {
        if from.exists() {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

fn open(copy: &Path) -> Option<Connection> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE).ok()?;
    // A damaged index must not lead to a wrong row.
    connection
        .pragma_update(None, "cell_size_check", true)
        .ok()?;
    Some(connection)
}

fn transfer(from: &Connection, into: &mut Connection) -> Result<Saved, Error> {
    into.pragma_update(None, "foreign_keys", false)?;
    let transaction = into.transaction()?;
    let mut saved = Saved {
        conversations: rows(from, &CONVERSATION, &transaction)?,
        messages: rows(from, &MESSAGE, &transaction)?,
    };
    for table in [&CARD, &UNSENT, &CHAT_SETTINGS] {
        rows(from, table, &transaction)?;
    }
    saved.conversations += mend(&transaction)?;
    transaction.commit()?;
    into.pragma_update(None, "foreign_keys", true)?;
    Ok(saved)
}

/// Copies every row of a table that can be read.
fn rows(from: &Connection, table: &Table, into: &Connection) -> Result<usize, Error> {
    let Table { name, columns } = table;
    // Named columns that are not there are an error when the statement is made.
    let is_known = |column: &&&str| {
        from.prepare(&format!("SELECT {column} FROM {name}"))
            .is_ok()
    };
    let columns: Vec<&str> = columns.iter().filter(is_known).copied().collect();
    let list = columns.join(", ");
    let Ok(mut one) = from.prepare(&format!("SELECT {list} FROM {name} WHERE rowid = ?1")) else {
        return Ok(0);
    };
    let values: Vec<String> = (1..=columns.len())
        .map(|place| format!("?{place}"))
        .collect();
    let values = values.join(", ");
    let sql = format!("INSERT OR IGNORE INTO {name} ({list}) VALUES ({values})");
    let mut insert = into.prepare(&sql)?;
    let whole = |row: &Row<'_>| -> rusqlite::Result<Vec<Value>> {
        (0..columns.len()).map(|column| row.get(column)).collect()
    };
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    let end: Option<i64> = from.query_row(sql, [name], |row| row.get(0)).ok();
    let (mut saved, mut last) = (0, 0);
    for id in 1..=end.unwrap_or(ROWS_MAX).min(ROWS_MAX) {
        if end.is_none() && id - last > GAP_MAX {
            break;
        }
        match one.query_row([id], whole) {
            Ok(values) => {
                last = id;
                // What a damaged page says may not be what a table takes.
                saved += insert.execute(params_from_iter(values)).unwrap_or(0);
            }
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            // It was there, so others may follow.
            Err(_) => last = id,
        }
    }
    Ok(saved)
}

/// Makes whole conversations of what was saved, and gives the number of those whose own row was
/// lost. A message whose predecessor is lost follows the one before it.
fn mend(into: &Connection) -> Result<usize, Error> {
    let sql = "INSERT INTO conversation (id, title, created_ms, updated_ms)
               SELECT conversation, '', min(created_ms), max(created_ms) FROM message
               WHERE conversation NOT IN (SELECT id FROM conversation) GROUP BY conversation";
    let found = into.execute(sql, [])?;
    let sql = "UPDATE message SET parent = (
                   SELECT max(up.id) FROM message up
                   WHERE up.conversation = message.conversation AND up.id < message.id)
               WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM message)";
    into.execute(sql, [])?;
    let sql = "UPDATE conversation SET leaf = (
                   SELECT max(id) FROM message WHERE conversation = conversation.id)
               WHERE leaf IS NULL OR leaf NOT IN (SELECT id FROM message)";
    into.execute(sql, [])?;
    let sql = "UPDATE conversation SET title = ?1 WHERE title = ''";
    into.execute(sql, params!["Recovered"])?;
    let sql = "DELETE FROM card WHERE message NOT IN (SELECT id FROM message)";
    into.execute(sql, [])?;
    for table in [&UNSENT, &CHAT_SETTINGS] {
        let sql = format!(
            "DELETE FROM {} WHERE conversation NOT IN (SELECT id FROM conversation)",
            table.name
        );
        into.execute(&sql, [])?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
