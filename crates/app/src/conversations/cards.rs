//! Cards: long texts that go with a message. Their words stand here once and are read only where a
//! prompt or a person needs them; everybody else has a card's name and how it begins.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Store;
use crate::error::{Error, Thing};
use crate::wire::{Card, ConversationId, MessageId};

/// Longest name in characters: more than any card shows.
const NAME_CHARS_MAX: usize = 120;

/// So much of a text is shown on its card.
const PREVIEW_CHARS: usize = 160;

const COLUMNS: &str = "id, name, size_bytes, lines, preview";

fn card(row: &Row<'_>) -> rusqlite::Result<Card> {
    Ok(Card {
        id: row.get(0)?,
        name: row.get(1)?,
        size_bytes: row.get(2)?,
        lines: row.get(3)?,
        preview: row.get(4)?,
    })
}

impl Store {
    /// Keeps a text as a card that goes with no message yet.
    pub(crate) fn add_card(&self, name: &str, text: &str) -> Result<Card, Error> {
        add(&self.connection(), None, name, text)
    }

    /// The words of a card.
    pub(crate) fn card_text(&self, id: i64) -> Result<String, Error> {
        let sql = "SELECT text FROM card WHERE id = ?1";
        let found = self
            .connection()
            .query_row(sql, [id], |row| row.get(0))
            .optional()?;
        found.ok_or_else(|| Error::not_found(Thing::Text))
    }

    /// These cards as they are kept, in this order; those that are gone are left out.
    pub(crate) fn cards(&self, ids: &[i64]) -> Result<Vec<Card>, Error> {
        let connection = self.connection();
        let sql = format!("SELECT {COLUMNS} FROM card WHERE id = ?1");
        let mut statement = connection.prepare_cached(&sql)?;
        let found = ids
            .iter()
            .map(|id| statement.query_row([id], card).optional())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Removes the cards that neither a message nor unsent words name any more.
    pub(super) fn purge_cards(&self) -> Result<(), Error> {
        let sql = "DELETE FROM card WHERE message IS NULL AND id NOT IN (
                       SELECT named.value FROM unsent, json_each(unsent.cards) AS named
                       UNION ALL
                       SELECT named.value FROM unsent, json_each(unsent.waiting_cards) AS named
                   )";
        self.connection().execute(sql, [])?;
        Ok(())
    }
}

/// Keeps a text as a card.
pub(super) fn add(
    connection: &Connection,
    message: Option<MessageId>,
    name: &str,
    text: &str,
) -> Result<Card, Error> {
    let name: String = name.trim().chars().take(NAME_CHARS_MAX).collect();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (size_bytes, lines) = (count(text.len()), count(text.lines().count()));
    let preview: String = text.chars().take(PREVIEW_CHARS).collect();
    let sql = "INSERT INTO card (message, name, size_bytes, lines, preview, text)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(
        sql,
        params![message, name, size_bytes, lines, preview, text],
    )?;
    Ok(Card {
        id: connection.last_insert_rowid(),
        name,
        size_bytes,
        lines,
        preview,
    })
}

/// Cards that were named by unsent words go with a message now.
pub(super) fn give(
    connection: &Connection,
    message: MessageId,
    cards: &[i64],
) -> Result<(), Error> {
    let sql = "UPDATE card SET message = ?1 WHERE id = ?2 AND message IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    for id in cards {
        if statement.execute(params![message, id])? == 0 {
            return Err(Error::not_found(Thing::Text));
        }
    }
    Ok(())
}

/// Another message gets the same cards.
pub(super) fn copy(
    connection: &Connection,
    from: MessageId,
    message: MessageId,
) -> Result<(), Error> {
    let sql = "INSERT INTO card (message, name, size_bytes, lines, preview, text)
               SELECT ?2, name, size_bytes, lines, preview, text FROM card
               WHERE message = ?1 ORDER BY id";
    connection.execute(sql, [from, message])?;
    Ok(())
}

/// The cards of a conversation's messages.
pub(super) fn of_conversation(
    connection: &Connection,
    conversation: ConversationId,
) -> Result<BTreeMap<MessageId, Vec<Card>>, Error> {
    let sql = format!(
        "SELECT {COLUMNS}, message FROM card
         WHERE message IN (SELECT id FROM message WHERE conversation = ?1) ORDER BY id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([conversation], |row| Ok((row.get(5)?, card(row)?)))?;
    let mut of: BTreeMap<MessageId, Vec<Card>> = BTreeMap::new();
    for row in rows {
        let (message, card) = row?;
        of.entry(message).or_default().push(card);
    }
    Ok(of)
}

/// Numbers as they are kept with unsent words.
pub(super) fn numbers(cards: &[Card]) -> Value {
    let ids: Vec<String> = cards.iter().map(|card| card.id.to_string()).collect();
    Value::Text(format!("[{}]", ids.join(",")))
}

#[cfg(test)]
mod tests;
