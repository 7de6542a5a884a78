//! Conversations between the store and what files hold.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};

use super::{CardText, Said, Talk, UnsentWords};
use crate::conversations::summaries::{folder_name, title_name};
use crate::conversations::{Store, cards};
use crate::error::Error;
use crate::settings::bounded_chat;
use crate::wire::{Card, ConversationId, MessageId, ReplyRecord};

/// States that a message in a file may have; any other becomes the first.
const STATES: [&str; 7] = [
    "finished",
    "stopped",
    "length",
    "context-full",
    "interrupted",
    "failed",
    "edited",
];

impl Store {
    /// A conversation with all of its branches.
    pub(crate) fn talk(&self, id: ConversationId) -> Result<Talk, Error> {
        let summary = self.summary(id)?;
        let settings = self.chat_settings(Some(id))?;
        let unsent = self
            .unsent()?
            .into_iter()
            .find(|unsent| unsent.conversation == Some(id));
        let connection = self.connection();
        let sql = "SELECT created_ms, leaf FROM conversation WHERE id = ?1";
        let (created_ms, leaf): (i64, Option<MessageId>) =
            connection.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (messages, places) = self.said(&connection, id)?;
        let texts = |list: &[Card]| {
            let texts = list.iter().map(|card| card_text(&connection, card));
            texts.collect::<Result<Vec<_>, Error>>()
        };
        let unsent = match unsent {
            Some(unsent) => Some(UnsentWords {
                cards: texts(&unsent.cards)?,
                waiting_cards: texts(&unsent.waiting_cards)?,
                text: unsent.text,
                waiting: unsent.waiting,
            }),
            None => None,
        };
        Ok(Talk {
            title: summary.title,
            created_ms,
            updated_ms: summary.updated_ms,
            pinned: summary.pinned,
            folder: summary.folder,
            shown: leaf.and_then(|leaf| places.get(&leaf).copied()),
            messages,
            unsent,
            settings,
        })
    }

    /// The messages in the order of their making, and where each number is among them.
    fn said(
        &self,
        connection: &Connection,
        id: ConversationId,
    ) -> Result<(Vec<Said>, BTreeMap<MessageId, usize>), Error> {
        let mut of = cards::of_conversation(connection, id)?;
        let sql = "SELECT id, parent, role, state, created_ms, text, record FROM message
                   WHERE conversation = ?1 ORDER BY id";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let (mut messages, mut places) = (Vec::new(), BTreeMap::new());
        while let Some(row) = rows.next()? {
            let number: MessageId = row.get(0)?;
            let parent: Option<MessageId> = row.get(1)?;
            let mut state: String = row.get(3)?;
            let mut text: String = row.get(5)?;
            if state == "writing" {
                // As it would be after a kill.
                text.push_str(&self.drafts.read(number).unwrap_or_default());
                state = String::from("interrupted");
            }
            let record: Option<String> = row.get(6)?;
            let enclosed = of.remove(&number).unwrap_or_default();
            let texts = enclosed.iter().map(|card| card_text(connection, card));
            places.insert(number, messages.len());
            messages.push(Said {
                after: parent.and_then(|parent| places.get(&parent).copied()),
                role: row.get(2)?,
                state,
                created_ms: row.get(4)?,
                text,
                record: record.and_then(|json| serde_json::from_str(&json).ok()),
                cards: texts.collect::<Result<_, _>>()?,
            });
        }
        Ok((messages, places))
    }

    /// Adds a conversation that was read from a file.
    pub(crate) fn add_talk(&self, talk: &Talk, now_ms: i64) -> Result<ConversationId, Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let time = |ms: i64| if ms > 0 { ms } else { now_ms };
        let title = match title_name(&talk.title) {
            title if title.is_empty() => String::from("Imported"),
            title => title,
        };
        let folder = folder_name(talk.folder.as_deref().unwrap_or_default());
        let sql = "INSERT INTO conversation (title, created_ms, updated_ms, pinned, folder)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let (created, updated) = (time(talk.created_ms), time(talk.updated_ms));
        transaction.execute(sql, params![title, created, updated, talk.pinned, folder])?;
        let id = transaction.last_insert_rowid();
        let mut numbers: Vec<MessageId> = Vec::new();
        for said in &talk.messages {
            let parent = said.after.and_then(|after| numbers.get(after).copied());
            numbers.push(add_said(&transaction, id, parent, said)?);
        }
        let leaf = talk.shown.and_then(|shown| numbers.get(shown).copied());
        let sql = "UPDATE conversation SET leaf = ?2 WHERE id = ?1";
        transaction.execute(sql, params![id, leaf])?;
        if let Some(unsent) = &talk.unsent {
            add_unsent(&transaction, id, unsent)?;
        }
        // A file is not trusted with numbers that nothing bounds.
        let settings = talk.settings.clone().map(bounded_chat);
        if let Some(json) = settings.and_then(|chat| serde_json::to_string(&chat).ok()) {
            let sql = "INSERT INTO chat_settings (conversation, settings) VALUES (?1, ?2)";
            transaction.execute(sql, params![id, json])?;
        }
        transaction.commit()?;
        Ok(id)
    }
}

fn card_text(connection: &Connection, card: &Card) -> Result<CardText, Error> {
    let sql = "SELECT text FROM card WHERE id = ?1";
    Ok(CardText {
        name: card.name.clone(),
        text: connection.query_row(sql, [card.id], |row| row.get(0))?,
    })
}

fn add_said(
    transaction: &Transaction<'_>,
    conversation: ConversationId,
    parent: Option<MessageId>,
    said: &Said,
) -> Result<MessageId, Error> {
    let known = STATES.iter().find(|state| **state == said.state);
    let state = known.unwrap_or(&STATES[0]);
    // A record that this program cannot read would only be missed under the reply.
    let record = said.record.clone().filter(|record| {
        let readable: Result<ReplyRecord, _> = serde_json::from_value(record.clone());
        readable.is_ok()
    });
    let record = record.map(|record| record.to_string());
    let sql = "INSERT INTO message (conversation, parent, role, state, created_ms, text, record)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = transaction.prepare_cached(sql)?;
    let Said {
        role,
        created_ms,
        text,
        ..
    } = said;
    statement.execute(params![
        conversation,
        parent,
        role,
        state,
        created_ms,
        text,
        record
    ])?;
    let id = transaction.last_insert_rowid();
    for card in &said.cards {
        cards::add(transaction, Some(id), &card.name, &card.text)?;
    }
    Ok(id)
}

fn add_unsent(
    transaction: &Transaction<'_>,
    id: ConversationId,
    unsent: &UnsentWords,
) -> Result<(), Error> {
    let add = |list: &[CardText]| {
        let added = list
            .iter()
            .map(|card| cards::add(transaction, None, &card.name, &card.text));
        added.collect::<Result<Vec<Card>, Error>>()
    };
    let (inside, waiting) = (add(&unsent.cards)?, add(&unsent.waiting_cards)?);
    let sql = "INSERT INTO unsent (conversation, text, waiting, cards, waiting_cards)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let (inside, waits) = (cards::numbers(&inside), cards::numbers(&waiting));
    transaction.execute(sql, params![id, unsent.text, unsent.waiting, inside, waits])?;
    Ok(())
}
