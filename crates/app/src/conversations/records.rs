//! Records of replies that are completed later.

use rusqlite::params;

use super::Store;
use crate::error::Error;
use crate::wire::{MessageId, ReplyRecord};

impl Store {
    /// Puts another record in the place of a reply's.
    pub(crate) fn set_record(&self, reply: MessageId, record: &ReplyRecord) -> Result<(), Error> {
        // A record is plain values, which always become JSON.
        let Ok(json) = serde_json::to_string(record) else {
            return Ok(());
        };
        let sql = "UPDATE message SET record = ?2 WHERE id = ?1";
        self.connection().execute(sql, params![reply, json])?;
        Ok(())
    }
}
