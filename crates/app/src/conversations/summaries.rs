//! The list of conversations: names, order, deletion.

use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use crate::error::{Error, Thing};
use crate::wire::{ConversationId, ConversationSummary, Place};

/// Longest title in characters: more than any sidebar shows.
const TITLE_CHARS_MAX: usize = 200;

/// Longest name of a folder in characters.
const FOLDER_CHARS_MAX: usize = 60;

const COLUMNS: &str = "SELECT id, title, updated_ms, pinned, folder FROM conversation";

fn summary(row: &Row<'_>) -> rusqlite::Result<ConversationSummary> {
    Ok(ConversationSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        updated_ms: row.get(2)?,
        pinned: row.get(3)?,
        folder: row.get(4)?,
    })
}

impl Store {
    /// All that are not deleted, newest change first.
    pub(crate) fn summaries(&self) -> Result<Vec<ConversationSummary>, Error> {
        let connection = self.connection();
        let order = "WHERE deleted_ms IS NULL ORDER BY updated_ms DESC, id DESC";
        let mut statement = connection.prepare_cached(&format!("{COLUMNS} {order}"))?;
        let rows = statement.query_map([], summary)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One that is not deleted.
    pub(crate) fn summary(&self, id: ConversationId) -> Result<ConversationSummary, Error> {
        let connection = self.connection();
        let one = "WHERE id = ?1 AND deleted_ms IS NULL";
        let mut statement = connection.prepare_cached(&format!("{COLUMNS} {one}"))?;
        let found = statement.query_row([id], summary).optional()?;
        found.ok_or_else(|| Error::not_found(Thing::Conversation))
    }

    /// The title, also of one that is deleted: its reply may still be ending.
    pub(crate) fn title(&self, id: ConversationId) -> Result<String, Error> {
        let connection = self.connection();
        let sql = "SELECT title FROM conversation WHERE id = ?1";
        let found = connection
            .query_row(sql, [id], |row| row.get(0))
            .optional()?;
        found.ok_or_else(|| Error::not_found(Thing::Conversation))
    }

    /// Gives a conversation another title. An empty one changes nothing.
    pub(crate) fn rename(
        &self,
        id: ConversationId,
        title: &str,
    ) -> Result<ConversationSummary, Error> {
        let title = title_name(title);
        if !title.is_empty() {
            let sql = "UPDATE conversation SET title = ?2 WHERE id = ?1 AND deleted_ms IS NULL";
            self.connection().execute(sql, params![id, title])?;
        }
        self.summary(id)
    }

    /// Puts a conversation to another place in the sidebar.
    pub(crate) fn place(
        &self,
        id: ConversationId,
        place: &Place,
    ) -> Result<ConversationSummary, Error> {
        let folder = folder_name(place.folder.as_deref().unwrap_or_default());
        let sql = "UPDATE conversation SET pinned = ?2, folder = ?3
                   WHERE id = ?1 AND deleted_ms IS NULL";
        self.connection()
            .execute(sql, params![id, place.pinned, folder])?;
        self.summary(id)
    }

    /// Gives a folder another name, which may be another folder's; with an empty one its
    /// conversations lie in none.
    pub(crate) fn rename_folder(&self, from: &str, to: &str) -> Result<(), Error> {
        let sql = "UPDATE conversation SET folder = ?2 WHERE folder = ?1";
        self.connection()
            .execute(sql, params![from, folder_name(to)])?;
        Ok(())
    }

    /// Takes a conversation out of sight until the next start, when it goes for good.
    pub(crate) fn delete(&self, id: ConversationId, now_ms: i64) -> Result<(), Error> {
        let sql = "UPDATE conversation SET deleted_ms = ?2 WHERE id = ?1 AND deleted_ms IS NULL";
        match self.connection().execute(sql, params![id, now_ms])? {
            0 => Err(Error::not_found(Thing::Conversation)),
            _ => Ok(()),
        }
    }

    /// Brings a deleted one back.
    pub(crate) fn restore(&self, id: ConversationId) -> Result<ConversationSummary, Error> {
        let sql = "UPDATE conversation SET deleted_ms = NULL WHERE id = ?1";
        self.connection().execute(sql, [id])?;
        self.summary(id)
    }

    pub(super) fn purge_deleted(&self) -> Result<(), Error> {
        let sql = "DELETE FROM conversation WHERE deleted_ms IS NOT NULL";
        self.connection().execute(sql, [])?;
        Ok(())
    }
}

pub(super) fn folder_name(name: &str) -> Option<String> {
    let name: String = name.trim().chars().take(FOLDER_CHARS_MAX).collect();
    Some(name).filter(|name| !name.is_empty())
}

pub(super) fn title_name(title: &str) -> String {
    title.trim().chars().take(TITLE_CHARS_MAX).collect()
}
