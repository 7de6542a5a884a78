//! Messages: a tree for each conversation, of which one branch is shown.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::branches::{NewMessage, versions};
use super::draft::Draft;
use super::{Store, cards};
use crate::error::{Error, Thing};
use crate::parts;
use crate::wire::{Card, Code, ConversationId, MessageId, MessageState, ReplyRecord, Role};
use crate::words::phrase;

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredMessage {
    pub(crate) id: MessageId,
    pub(crate) conversation: ConversationId,
    pub(crate) parent: Option<MessageId>,
    pub(crate) role: Role,
    pub(crate) state: MessageState,
    pub(crate) text: String,
    pub(crate) record: Option<ReplyRecord>,
    /// All versions, itself among them, if there is more than one. Only known in a branch.
    pub(crate) versions: Vec<MessageId>,
    /// UTF-16 units of the text that were there before the turn that writes it.
    pub(crate) kept: u32,
    pub(crate) cards: Vec<Card>,
}

impl StoredMessage {
    /// A question that is not stored yet.
    pub(crate) fn question(text: &str, cards: Vec<Card>) -> Self {
        Self {
            id: 0,
            conversation: 0,
            parent: None,
            role: Role::User,
            state: MessageState::Finished,
            text: text.to_owned(),
            record: None,
            versions: Vec::new(),
            kept: 0,
            cards,
        }
    }
}

/// What a person asks.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) text: &'a str,
    /// Cards that go with it.
    pub(crate) cards: &'a [i64],
}

/// A reply that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) conversation: ConversationId,
    pub(crate) reply: MessageId,
}

/// How a reply ended.
pub(crate) struct Closing<'a> {
    pub(crate) text: &'a str,
    pub(crate) state: MessageState,
    pub(crate) record: Option<&'a ReplyRecord>,
    pub(crate) now_ms: i64,
}

const STATES: [(MessageState, &str); 8] = [
    (MessageState::Writing, "writing"),
    (MessageState::Finished, "finished"),
    (MessageState::Stopped, "stopped"),
    (MessageState::Length, "length"),
    (MessageState::ContextFull, "context-full"),
    (MessageState::Interrupted, "interrupted"),
    (MessageState::Failed, "failed"),
    (MessageState::Edited, "edited"),
];

const ROLES: [(Role, &str); 2] = [(Role::User, "user"), (Role::Assistant, "assistant")];

fn named<T: Copy>(names: &[(T, &str)], value: ValueRef<'_>) -> FromSqlResult<T> {
    let text = value.as_str()?;
    let found = names.iter().find(|(_, name)| *name == text);
    found
        .map(|(value, _)| *value)
        .ok_or(FromSqlError::InvalidType)
}

fn name_of<T: Copy + PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    let found = names.iter().find(|(named, _)| *named == value);
    found
        .map(|(_, name)| *name)
        .expect("the table names every value")
}

impl FromSql for MessageState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        named(&STATES, value)
    }
}

impl ToSql for MessageState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(name_of(&STATES, *self).into())
    }
}

impl FromSql for Role {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        named(&ROLES, value)
    }
}

impl ToSql for Role {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(name_of(&ROLES, *self).into())
    }
}

const COLUMNS: &str = "m.id, m.conversation, m.parent, m.role, m.state, m.text, m.record";

fn message(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    let record: Option<String> = row.get(6)?;
    Ok(StoredMessage {
        id: row.get(0)?,
        conversation: row.get(1)?,
        parent: row.get(2)?,
        role: row.get(3)?,
        state: row.get(4)?,
        text: row.get(5)?,
        // A record of another version that this one cannot read is only missed under the reply.
        record: record.and_then(|json| serde_json::from_str(&json).ok()),
        versions: Vec::new(),
        kept: 0,
        cards: Vec::new(),
    })
}

impl Store {
    /// The branch that a conversation shows, first to last. A running reply has the text of its
    /// draft.
    pub(crate) fn branch(&self, id: ConversationId) -> Result<Vec<StoredMessage>, Error> {
        self.summary(id)?;
        let connection = self.connection();
        let sql = "SELECT leaf FROM conversation WHERE id = ?1";
        let leaf: Option<MessageId> = connection.query_row(sql, [id], |row| row.get(0))?;
        let Some(leaf) = leaf else {
            return Ok(Vec::new());
        };
        let mut branch = self.up_from(&connection, leaf)?;
        let versions = versions(&connection, id)?;
        for message in &mut branch {
            message.versions = versions.get(&message.parent).cloned().unwrap_or_default();
        }
        Ok(branch)
    }

    /// The branch that ends in a message, first to last.
    pub(crate) fn branch_to(&self, message: MessageId) -> Result<Vec<StoredMessage>, Error> {
        self.up_from(&self.connection(), message)
    }

    fn up_from(
        &self,
        connection: &Connection,
        leaf: MessageId,
    ) -> Result<Vec<StoredMessage>, Error> {
        let sql = format!(
            "WITH RECURSIVE branch (id, parent, depth) AS (
                 SELECT id, parent, 0 FROM message WHERE id = ?1
                 UNION ALL
                 SELECT up.id, up.parent, depth + 1
                 FROM message up JOIN branch ON up.id = branch.parent
             )
             SELECT {COLUMNS} FROM branch JOIN message m ON m.id = branch.id ORDER BY depth DESC"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map([leaf], message)?;
        let mut branch = rows.collect::<Result<Vec<_>, _>>()?;
        for message in branch
            .iter_mut()
            .filter(|m| m.state == MessageState::Writing)
        {
            message.kept = parts::shown_units(&message.text);
            let more = self.drafts.read(message.id).map_err(draft_error)?;
            message.text.push_str(&more);
        }
        if let Some(conversation) = branch.first().map(|message| message.conversation) {
            let mut of = cards::of_conversation(connection, conversation)?;
            for message in &mut branch {
                message.cards = of.remove(&message.id).unwrap_or_default();
            }
        }
        Ok(branch)
    }

    /// One message.
    pub(crate) fn message(&self, id: MessageId) -> Result<StoredMessage, Error> {
        let sql = format!("SELECT {COLUMNS} FROM message m WHERE m.id = ?1");
        let found = self
            .connection()
            .query_row(&sql, [id], message)
            .optional()?;
        found.ok_or_else(|| Error::not_found(Thing::Message))
    }

    /// Stores a question and an empty reply to it, in one transaction, and shows them. Makes the
    /// conversation if there is none yet.
    pub(crate) fn ask(
        &self,
        conversation: Option<ConversationId>,
        title: &str,
        question: &Question<'_>,
        now_ms: i64,
    ) -> Result<Begun, Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let conversation = match conversation {
            Some(id) => id,
            None => {
                let sql = "INSERT INTO conversation (title, created_ms, updated_ms)
                           VALUES (?1, ?2, ?2)";
                transaction.execute(sql, params![title, now_ms])?;
                transaction.last_insert_rowid()
            }
        };
        let sql = "SELECT leaf FROM conversation WHERE id = ?1 AND deleted_ms IS NULL";
        let leaf: Option<Option<MessageId>> = transaction
            .query_row(sql, [conversation], |row| row.get(0))
            .optional()?;
        let parent = leaf.ok_or_else(|| Error::not_found(Thing::Conversation))?;
        let new = NewMessage {
            conversation,
            parent,
            role: Role::User,
            state: MessageState::Finished,
            text: question.text,
        };
        let asked = new.add(&transaction, now_ms)?;
        cards::give(&transaction, asked, question.cards)?;
        let reply = add_reply(&transaction, conversation, asked, now_ms)?;
        transaction.commit()?;
        Ok(Begun {
            conversation,
            reply,
        })
    }

    /// Begins another reply to the same question, named by itself or by one of its replies, and
    /// shows it instead.
    pub(crate) fn ask_again(&self, message: MessageId, now_ms: i64) -> Result<Begun, Error> {
        let old = self.message(message)?;
        self.summary(old.conversation)?;
        let question = match (old.role, old.parent) {
            (Role::User, _) => message,
            (Role::Assistant, Some(question)) => question,
            (Role::Assistant, None) => return Err(Error::not_found(Thing::Question)),
        };
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let reply = add_reply(&transaction, old.conversation, question, now_ms)?;
        transaction.commit()?;
        Ok(Begun {
            conversation: old.conversation,
            reply,
        })
    }

    /// The draft of a reply that was begun.
    pub(crate) fn draft(&self, reply: MessageId) -> Result<Draft, Error> {
        self.drafts.begin(reply).map_err(draft_error)
    }

    /// Stores how a reply ended, with all its text, and gives it as stored.
    pub(crate) fn close_reply(
        &self,
        reply: MessageId,
        closing: &Closing<'_>,
    ) -> Result<StoredMessage, Error> {
        // A record is plain values, which always become JSON.
        let record = closing
            .record
            .and_then(|record| serde_json::to_string(record).ok());
        {
            let mut connection = self.connection();
            let transaction = connection.transaction()?;
            let sql = "UPDATE message SET text = ?2, state = ?3, record = ?4 WHERE id = ?1";
            transaction.execute(sql, params![reply, closing.text, closing.state, record])?;
            let sql = "UPDATE conversation SET updated_ms = ?2
                       WHERE id = (SELECT conversation FROM message WHERE id = ?1)";
            transaction.execute(sql, params![reply, closing.now_ms])?;
            transaction.commit()?;
        }
        self.drafts.discard(reply);
        self.message(reply)
    }

    /// Marks the replies that a killed program was writing, with the text that they had.
    pub(super) fn close_what_was_interrupted(&self) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let sql = "SELECT id FROM message WHERE state = 'writing'";
        let open: Vec<MessageId> = {
            let mut statement = transaction.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        for id in open {
            // One draft on a bad sector must not shut the user out of all conversations.
            let text = self.drafts.read(id).unwrap_or_else(|_| {
                self.drafts.keep_aside(id);
                String::new()
            });
            // A reply that was gone on with has its first part here.
            let sql = "UPDATE message SET text = text || ?2, state = ?3 WHERE id = ?1";
            transaction.execute(sql, params![id, text, MessageState::Interrupted])?;
        }
        transaction.commit()?;
        self.drafts.clear();
        Ok(())
    }
}

pub(super) fn add_reply(
    connection: &Connection,
    conversation: ConversationId,
    question: MessageId,
    now_ms: i64,
) -> Result<MessageId, Error> {
    let new = NewMessage {
        conversation,
        parent: Some(question),
        role: Role::Assistant,
        state: MessageState::Writing,
        text: "",
    };
    let reply = new.add(connection, now_ms)?;
    let sql = "UPDATE conversation SET leaf = ?2, updated_ms = ?3 WHERE id = ?1";
    connection.execute(sql, params![conversation, reply, now_ms])?;
    Ok(reply)
}

fn draft_error(source: std::io::Error) -> Error {
    let message = phrase!(
        "The reply could not be kept on disk: {source}.",
        "Die Antwort ließ sich nicht auf dem Datenträger aufheben: {source}.",
        source,
    );
    Error::new(Code::Storage, message).because(source)
}
