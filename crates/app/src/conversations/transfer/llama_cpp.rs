//! The export of llama.cpp's web page: one `{ conv, messages }` or a list of them. The names of the
//! fields are those of `tools/server/webui/src/lib/types/database.d.ts` in its repository.

use serde::Deserialize;

use super::tree::{Node, grown, said};
use super::{CardText, Talk};

#[derive(Deserialize)]
pub(super) struct Exported {
    conv: Conversation,
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conversation {
    #[serde(default)]
    name: String,
    #[serde(default)]
    last_modified: f64,
    #[serde(default)]
    curr_node: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    #[serde(default)]
    timestamp: f64,
    role: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    parent: Option<String>,
    /// In later versions `reasoningContent`.
    #[serde(default, alias = "reasoningContent")]
    thinking: Option<String>,
    #[serde(default)]
    extra: Option<Vec<Extra>>,
}

#[derive(Deserialize)]
struct Extra {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    content: Option<String>,
}

/// Our conversation, and how many parts have no place in it.
pub(super) fn talk(from: Exported) -> (Talk, u32) {
    let mut left_out = 0;
    let created = from.messages.iter().map(|message| message.timestamp as i64);
    let empty = Talk {
        title: from.conv.name,
        created_ms: created.filter(|time| *time > 0).min().unwrap_or(0),
        updated_ms: from.conv.last_modified as i64,
        ..Talk::default()
    };
    let nodes = from.messages.into_iter().map(|message| {
        let mut cards = Vec::new();
        for Extra {
            kind,
            name,
            content,
        } in message.extra.unwrap_or_default()
        {
            match content.filter(|_| matches!(kind.as_str(), "textFile" | "context" | "pdfFile")) {
                Some(text) => cards.push(CardText { name, text }),
                None => left_out += 1,
            }
        }
        let thinking = message.thinking.filter(|words| !words.trim().is_empty());
        let text = match thinking {
            Some(thought) => format!("<think>\n{thought}\n</think>\n\n{}", message.content),
            None => message.content,
        };
        Node {
            id: message.id,
            parent: message.parent,
            said: said(&message.role, message.timestamp as i64, text, cards),
        }
    });
    let nodes = nodes.collect();
    let (talk, lost) = grown(nodes, from.conv.curr_node.as_deref(), empty);
    (talk, left_out + lost)
}
