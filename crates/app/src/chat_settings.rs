//! What a conversation has of its own: how the model is spoken to and how it chooses its words.
//! A conversation without goes by the settings of all.

use std::sync::Arc;

use candor_engine::Constraint;
use candor_text::{ChatFormat, ChatTemplate, RenderRequest};
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use crate::app::{App, Inner};
use crate::conversations::Store;
use crate::error::Error;
use crate::models::ChatModel;
use crate::prompt;
use crate::settings::bounded_chat;
use crate::wire::{ChatSettings, Code, ConversationId, Settings, Thinking};
use crate::words::{Phrase, phrase};

/// What templates call the wish that a model thinks. Qwen's and most others since name it so.
const THINKING_VARIABLE: &str = "enable_thinking";

impl Store {
    /// What a conversation has of its own; of the one that is not begun with none.
    pub(crate) fn chat_settings(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<Option<ChatSettings>, Error> {
        let connection = self.connection();
        let sql = "SELECT settings FROM chat_settings WHERE conversation IS ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let row = statement.query_row([conversation], |row| row.get::<_, String>(0));
        // What another version wrote there and this one does not understand counts as nothing.
        let json = row.optional()?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Keeps that, or forgets it.
    pub(crate) fn keep_chat_settings(
        &self,
        conversation: Option<ConversationId>,
        chat: Option<&ChatSettings>,
    ) -> Result<(), Error> {
        let connection = self.connection();
        let sql = "DELETE FROM chat_settings WHERE conversation IS ?1";
        connection.execute(sql, [conversation])?;
        // Plain values always become JSON.
        if let Some(json) = chat.and_then(|chat| serde_json::to_string(chat).ok()) {
            let sql = "INSERT INTO chat_settings (conversation, settings) VALUES (?1, ?2)";
            connection.execute(sql, params![conversation, json])?;
        }
        Ok(())
    }

    /// What was chosen for the conversation that was not begun is now this one's.
    pub(crate) fn hand_chat_settings_on(&self, to: ConversationId) -> Result<(), Error> {
        let sql = "UPDATE chat_settings SET conversation = ?1 WHERE conversation IS NULL";
        self.connection().execute(sql, [to])?;
        Ok(())
    }
}

impl App {
    /// What a conversation has of its own; none asks for the one that is not begun.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn chat_settings(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<Option<ChatSettings>, Error> {
        self.inner.store.chat_settings(conversation)
    }

    /// Keeps what a conversation has of its own, each number inside its bounds, or forgets it;
    /// gives back what is kept.
    ///
    /// # Errors
    /// [`Code::NotFound`] for a conversation that is not there, or the store cannot be written.
    pub fn keep_chat_settings(
        &self,
        conversation: Option<ConversationId>,
        chat: Option<ChatSettings>,
    ) -> Result<Option<ChatSettings>, Error> {
        let store = &self.inner.store;
        if let Some(id) = conversation {
            store.summary(id)?;
        }
        let chat = chat.map(bounded_chat);
        store.keep_chat_settings(conversation, chat.as_ref())?;
        Ok(chat)
    }

    /// What the open model would read of a short conversation with these choices.
    ///
    /// # Errors
    /// [`Code::NoModel`], or what is wrong with the template.
    pub fn preview_template(&self, chat: &ChatSettings) -> Result<String, Error> {
        let open = self.inner.models.state().chat();
        let open = open.ok_or_else(|| {
            let message = phrase!(
                "Open a model to see what it would read.",
                "Öffne ein Modell, um zu sehen, was es lesen würde.",
            );
            Error::new(Code::NoModel, message)
        })?;
        let tokenizer = &open.loaded.tokenizer;
        let system = Some(&chat.system_prompt).filter(|words| !words.trim().is_empty());
        let system = system.map(|words| json!({ "role": "system", "content": words }));
        let hello = phrase!("Hello", "Hallo").to(self.inner.tongue());
        let user = json!({ "role": "user", "content": hello });
        let messages: Vec<Value> = system.into_iter().chain([user]).collect();
        let mut request = RenderRequest::new(tokenizer, &messages);
        request.now = Some(prompt::utc(self.inner.now_ms()));
        request.extra = extra(chat.thinking);
        if chat.template.trim().is_empty() {
            return Ok(open.format.render(&request).prompt.text);
        }
        let wrong = |error: candor_text::TemplateError| {
            Error::new(Code::Internal, Phrase::of(&error).sentence()).because(error)
        };
        let template = ChatTemplate::compile(&chat.template).map_err(wrong)?;
        Ok(template.render(&request).map_err(wrong)?.text)
    }
}

impl Inner {
    /// The settings for a conversation: its own choices over those of all.
    pub(crate) fn settings_of(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<Settings, Error> {
        let settings = self.settings();
        let own = self.store.chat_settings(conversation)?;
        Ok(match own {
            Some(chat) => settings.with_chat(bounded_chat(chat)),
            None => settings,
        })
    }
}

/// The format that a conversation is written in: the model's own, or one with another template.
pub(crate) fn format(chat: &ChatModel, settings: &Settings) -> Arc<ChatFormat> {
    match settings.template.trim() {
        "" => Arc::clone(&chat.format),
        template => Arc::new(ChatFormat::new(
            Some(template),
            chat.loaded.tokenizer.controls(),
        )),
    }
}

/// What a template is told beside the messages.
pub(crate) fn extra(thinking: Thinking) -> Map<String, Value> {
    let wish = match thinking {
        Thinking::Auto => None,
        Thinking::On => Some(true),
        Thinking::Off => Some(false),
    };
    let wish = wish.map(|wish| (String::from(THINKING_VARIABLE), Value::Bool(wish)));
    wish.into_iter().collect()
}

/// What a reply has to keep to, if anything.
///
/// # Errors
/// The schema is no JSON.
pub(crate) fn constraint(settings: &Settings) -> Result<Option<Constraint>, Error> {
    if settings.json_schema.trim().is_empty() {
        return Ok(None);
    }
    let schema = serde_json::from_str(&settings.json_schema).map_err(|source| {
        let message = phrase!(
            "The JSON schema of the settings is no JSON: {source}.",
            "Das JSON-Schema der Einstellungen ist kein JSON: {source}.",
            source,
        );
        Error::new(Code::Internal, message).because(source)
    })?;
    Ok(Some(Constraint::JsonSchema(schema)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::AppPaths;
    use crate::wire::Sampling;

    fn chat(words: &str) -> ChatSettings {
        ChatSettings {
            system_prompt: String::from(words),
            sampling: Sampling {
                temperature: 0.1,
                ..Sampling::default()
            },
            ..ChatSettings::default()
        }
    }

    #[test]
    fn what_a_conversation_has_of_its_own_is_kept_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&AppPaths::below(dir.path()), 1).unwrap().store;
        assert_eq!(store.chat_settings(None).unwrap(), None);
        for words in ["first", "second"] {
            let chosen = chat(words);
            store.keep_chat_settings(None, Some(&chosen)).unwrap();
            assert_eq!(store.chat_settings(None).unwrap(), Some(chosen));
        }
        store.keep_chat_settings(None, None).unwrap();
        assert_eq!(store.chat_settings(None).unwrap(), None);
        store
            .connection()
            .execute("INSERT INTO chat_settings VALUES (NULL, '{')", [])
            .unwrap();
        assert_eq!(store.chat_settings(None).unwrap(), None);
    }

    #[test]
    fn the_wish_to_think_is_told_to_the_template_and_a_schema_has_to_be_json() {
        assert!(extra(Thinking::Auto).is_empty());
        assert_eq!(extra(Thinking::Off)["enable_thinking"], json!(false));
        assert_eq!(extra(Thinking::On)["enable_thinking"], json!(true));
        let with = |schema: &str| Settings {
            json_schema: String::from(schema),
            ..Settings::default()
        };
        assert!(constraint(&with(" ")).unwrap().is_none());
        assert!(constraint(&with(r#"{"type":"object"}"#)).unwrap().is_some());
        let error = constraint(&with("{type")).unwrap_err();
        assert!(error.to_string().contains("is no JSON"), "{error}");
    }
}
