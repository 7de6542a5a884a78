//! What was typed and not sent: one row for each conversation that has some.

use rusqlite::{Row, params};

use super::{Store, cards};
use crate::error::Error;
use crate::wire::Unsent;

/// A row with the numbers of its cards.
struct Kept {
    unsent: Unsent,
    cards: Vec<i64>,
    waiting_cards: Vec<i64>,
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let numbers = |column| -> rusqlite::Result<Vec<i64>> {
        let json: String = row.get(column)?;
        // Only numbers are ever written there.
        Ok(serde_json::from_str(&json).unwrap_or_default())
    };
    let unsent = Unsent {
        conversation: row.get(0)?,
        text: row.get(1)?,
        waiting: row.get(2)?,
        ..Unsent::default()
    };
    Ok(Kept {
        unsent,
        cards: numbers(3)?,
        waiting_cards: numbers(4)?,
    })
}

impl Store {
    /// All that is kept.
    pub(crate) fn unsent(&self) -> Result<Vec<Unsent>, Error> {
        let rows: Vec<Kept> = {
            let connection = self.connection();
            let sql = "SELECT conversation, text, waiting, cards, waiting_cards FROM unsent
                       ORDER BY conversation";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], kept)?;
            rows.collect::<Result<_, _>>()?
        };
        let with_cards = rows.into_iter().map(|row| {
            Ok(Unsent {
                cards: self.cards(&row.cards)?,
                waiting_cards: self.cards(&row.waiting_cards)?,
                ..row.unsent
            })
        });
        with_cards.collect()
    }

    /// Keeps this in the place of what was kept of the same conversation; nothing if it is empty.
    pub(crate) fn keep_unsent(&self, unsent: &Unsent) -> Result<(), Error> {
        let Unsent {
            conversation,
            text,
            waiting,
            cards,
            waiting_cards,
        } = unsent;
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        // No number is equal to none, but it is none.
        let sql = "DELETE FROM unsent WHERE conversation IS ?1";
        transaction.execute(sql, [conversation])?;
        let has_words = !(text.is_empty() && waiting.is_empty());
        if has_words || !(cards.is_empty() && waiting_cards.is_empty()) {
            let sql = "INSERT INTO unsent (conversation, text, waiting, cards, waiting_cards)
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            let (cards, waits) = (cards::numbers(cards), cards::numbers(waiting_cards));
            transaction.execute(sql, params![conversation, text, waiting, cards, waits])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
