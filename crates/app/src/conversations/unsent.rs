//! What was typed and not sent: one row for each conversation that has some.

use rusqlite::{Row, params};

use super::Store;
use crate::error::Error;
use crate::wire::Unsent;

fn unsent(row: &Row<'_>) -> rusqlite::Result<Unsent> {
    Ok(Unsent {
        conversation: row.get(0)?,
        text: row.get(1)?,
        waiting: row.get(2)?,
    })
}

impl Store {
    /// All that is kept.
    pub(crate) fn unsent(&self) -> Result<Vec<Unsent>, Error> {
        let connection = self.connection();
        let sql = "SELECT conversation, text, waiting FROM unsent ORDER BY conversation";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([], unsent)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Keeps this in the place of what was kept of the same conversation; nothing if it is empty.
    pub(crate) fn keep_unsent(&self, unsent: &Unsent) -> Result<(), Error> {
        let Unsent {
            conversation,
            text,
            waiting,
        } = unsent;
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        // No number is equal to none, but it is none.
        let sql = "DELETE FROM unsent WHERE conversation IS ?1";
        transaction.execute(sql, [conversation])?;
        if !(text.is_empty() && waiting.is_empty()) {
            let sql = "INSERT INTO unsent (conversation, text, waiting) VALUES (?1, ?2, ?3)";
            transaction.execute(sql, params![conversation, text, waiting])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
