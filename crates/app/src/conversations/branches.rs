//! Branches: other versions of a message, which of them is shown, and copies.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::messages::{Begun, StoredMessage, add_reply};
use super::{Store, cards};
use crate::error::{Error, Thing};
use crate::wire::{Code, ConversationId, MessageId, MessageState, Role};
use crate::words::phrase;

impl Store {
    /// Shows the branch on which a message lies: as it is if it lies on the one that is shown,
    /// else down to what was written last below it. Gives its conversation.
    pub(crate) fn show_message(&self, id: MessageId) -> Result<ConversationId, Error> {
        let conversation = self.message(id)?.conversation;
        if self.branch(conversation)?.iter().all(|m| m.id != id) {
            let connection = self.connection();
            let leaf = newest_below(&connection, id)?;
            let sql = "UPDATE conversation SET leaf = ?2 WHERE id = ?1";
            connection.execute(sql, [conversation, leaf])?;
        }
        Ok(conversation)
    }

    /// Another version of a question, with the same cards, and an empty reply to it; both are
    /// shown.
    pub(crate) fn ask_otherwise(
        &self,
        question: MessageId,
        text: &str,
        now_ms: i64,
    ) -> Result<Begun, Error> {
        let old = self.message(question)?;
        self.summary(old.conversation)?;
        if old.role != Role::User {
            return Err(Error::not_found(Thing::Question));
        }
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let new = NewMessage {
            text,
            state: MessageState::Finished,
            ..NewMessage::beside(&old)
        };
        let version = new.add(&transaction, now_ms)?;
        cards::copy(&transaction, question, version)?;
        let reply = add_reply(&transaction, old.conversation, version, now_ms)?;
        transaction.commit()?;
        Ok(Begun {
            conversation: old.conversation,
            reply,
        })
    }

    /// Another version of a reply, in the person's words; it is shown. Gives its conversation.
    pub(crate) fn edit_reply(
        &self,
        reply: MessageId,
        text: &str,
        now_ms: i64,
    ) -> Result<ConversationId, Error> {
        let old = self.message(reply)?;
        self.summary(old.conversation)?;
        if old.role != Role::Assistant || old.state == MessageState::Writing {
            return Err(Error::not_found(Thing::Reply));
        }
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let new = NewMessage {
            text,
            state: MessageState::Edited,
            ..NewMessage::beside(&old)
        };
        let version = new.add(&transaction, now_ms)?;
        show(&transaction, old.conversation, version, now_ms)?;
        transaction.commit()?;
        Ok(old.conversation)
    }

    /// Begins to go on with a reply that came to no end, where it stands.
    pub(crate) fn go_on(&self, reply: MessageId, now_ms: i64) -> Result<Begun, Error> {
        let old = self.message(reply)?;
        self.summary(old.conversation)?;
        let has_end = matches!(old.state, MessageState::Finished | MessageState::Writing);
        if old.role != Role::Assistant || has_end {
            return Err(Error::new(
                Code::NotFound,
                phrase!(
                    "There is nothing to go on with here.",
                    "Hier gibt es nichts weiterzuschreiben.",
                ),
            ));
        }
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let sql = "SELECT 1 FROM message WHERE parent = ?1";
        if transaction
            .query_row(sql, [reply], |_| Ok(()))
            .optional()?
            .is_some()
        {
            let message = phrase!(
                "Messages follow this reply, so it cannot be gone on with.",
                "Auf diese Antwort folgen Nachrichten, deshalb lässt sie sich nicht weiterschreiben.",
            );
            return Err(Error::new(Code::NotFound, message));
        }
        let sql = "UPDATE message SET state = ?2 WHERE id = ?1";
        transaction.execute(sql, params![reply, MessageState::Writing])?;
        show(&transaction, old.conversation, reply, now_ms)?;
        transaction.commit()?;
        Ok(Begun {
            conversation: old.conversation,
            reply,
        })
    }

    /// A new conversation with the messages from the first to this one.
    pub(crate) fn duplicate(&self, to: MessageId, now_ms: i64) -> Result<ConversationId, Error> {
        let branch = self.branch_to(to)?;
        let old = self.summary(self.message(to)?.conversation)?;
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let sql = "INSERT INTO conversation (title, created_ms, updated_ms, folder)
                   VALUES (?1, ?2, ?2, ?3)";
        transaction.execute(sql, params![old.title, now_ms, old.folder])?;
        let conversation = transaction.last_insert_rowid();
        let mut parent = None;
        for message in &branch {
            let copy = NewMessage {
                conversation,
                parent,
                text: &message.text,
                state: match message.state {
                    MessageState::Writing => MessageState::Interrupted,
                    state => state,
                },
                ..NewMessage::beside(message)
            };
            let id = copy.add(&transaction, now_ms)?;
            cards::copy(&transaction, message.id, id)?;
            let sql = "UPDATE message SET record = (SELECT record FROM message WHERE id = ?2)
                       WHERE id = ?1";
            transaction.execute(sql, [id, message.id])?;
            parent = Some(id);
        }
        let sql = "UPDATE conversation SET leaf = ?2 WHERE id = ?1";
        transaction.execute(sql, params![conversation, parent])?;
        let sql = "INSERT INTO chat_settings (conversation, settings)
                   SELECT ?1, settings FROM chat_settings WHERE conversation = ?2";
        transaction.execute(sql, [conversation, old.id])?;
        transaction.commit()?;
        Ok(conversation)
    }
}

/// A message on its way into the store.
pub(super) struct NewMessage<'a> {
    pub(super) conversation: ConversationId,
    pub(super) parent: Option<MessageId>,
    pub(super) role: Role,
    pub(super) state: MessageState,
    pub(super) text: &'a str,
}

impl<'a> NewMessage<'a> {
    /// Another version of a message.
    fn beside(old: &'a StoredMessage) -> Self {
        Self {
            conversation: old.conversation,
            parent: old.parent,
            role: old.role,
            state: old.state,
            text: &old.text,
        }
    }

    pub(super) fn add(&self, transaction: &Connection, now_ms: i64) -> Result<MessageId, Error> {
        let Self {
            conversation,
            parent,
            role,
            state,
            text,
        } = self;
        let sql = "INSERT INTO message (conversation, parent, role, state, created_ms, text)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut statement = transaction.prepare_cached(sql)?;
        statement.execute(params![conversation, parent, role, state, now_ms, text])?;
        Ok(transaction.last_insert_rowid())
    }
}

/// Shows the branch that ends here.
fn show(
    transaction: &Transaction<'_>,
    conversation: ConversationId,
    leaf: MessageId,
    now_ms: i64,
) -> Result<(), Error> {
    let sql = "UPDATE conversation SET leaf = ?2, updated_ms = ?3 WHERE id = ?1";
    transaction.execute(sql, params![conversation, leaf, now_ms])?;
    Ok(())
}

/// What was written last of all that follows a message.
fn newest_below(connection: &Connection, id: MessageId) -> Result<MessageId, Error> {
    let sql = "WITH RECURSIVE below (id) AS (
                   VALUES (?1)
                   UNION ALL
                   SELECT message.id FROM message JOIN below ON message.parent = below.id
               )
               SELECT max(id) FROM below";
    Ok(connection.query_row(sql, [id], |row| row.get(0))?)
}

/// The versions of each message of which there are several, under the number of what they follow.
pub(super) fn versions(
    connection: &Connection,
    conversation: ConversationId,
) -> Result<BTreeMap<Option<MessageId>, Vec<MessageId>>, Error> {
    let sql = "SELECT parent, id FROM message WHERE conversation = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([conversation], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut of: BTreeMap<Option<MessageId>, Vec<MessageId>> = BTreeMap::new();
    for row in rows {
        let (parent, id) = row?;
        of.entry(parent).or_default().push(id);
    }
    of.retain(|_, versions| versions.len() > 1);
    Ok(of)
}

#[cfg(test)]
mod tests;
