//! ChatGPT's data export, `conversations.json`: a list of conversations, each with a `mapping` of
//! nodes and the `current_node`. There is no official description; the names of the fields are
//! those that the many public readers of this file agree on.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Talk;
use super::tree::{Node, grown, ms, said};

#[derive(Deserialize)]
pub(super) struct Conversation {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    create_time: Option<f64>,
    #[serde(default)]
    update_time: Option<f64>,
    mapping: BTreeMap<String, Entry>,
    #[serde(default)]
    current_node: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    author: Author,
    #[serde(default)]
    create_time: Option<f64>,
    #[serde(default)]
    content: Content,
    #[serde(default)]
    recipient: Option<String>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Author {
    role: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    parts: Option<Vec<Value>>,
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    is_visually_hidden_from_conversation: Option<bool>,
}

/// Our conversation, and how many parts have no place in it.
pub(super) fn talk(from: Conversation) -> (Talk, u32) {
    let mut left_out = 0;
    let mut nodes = Vec::new();
    let mut times = Vec::new();
    for (id, entry) in from.mapping {
        let message = entry.message;
        times.push(message.as_ref().and_then(|message| message.create_time));
        nodes.push(Node {
            id,
            parent: entry.parent,
            said: message.and_then(|message| kept(message, &mut left_out)),
        });
    }
    // The order of a mapping says nothing; versions are in the order of their making.
    let mut ordered: Vec<(Option<f64>, Node)> = times.into_iter().zip(nodes).collect();
    ordered.sort_by(|(a, _), (b, _)| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    let nodes = ordered.into_iter().map(|(_, node)| node).collect();
    let empty = Talk {
        title: from.title.unwrap_or_default(),
        created_ms: ms(from.create_time),
        updated_ms: ms(from.update_time.or(from.create_time)),
        ..Talk::default()
    };
    let (talk, lost) = grown(nodes, from.current_node.as_deref(), empty);
    (talk, left_out + lost)
}

fn kept(message: Message, left_out: &mut u32) -> Option<super::Said> {
    if message.metadata.is_visually_hidden_from_conversation == Some(true) {
        return None;
    }
    let mut texts = Vec::new();
    for part in message.content.parts.unwrap_or_default() {
        match part {
            Value::String(text) => texts.push(text),
            // Pictures and sounds are named, but not in the file.
            _ => *left_out += 1,
        }
    }
    texts.extend(message.content.text);
    let text = texts.join("\n\n");
    // A call of a tool speaks to the tool.
    let is_aside = message
        .recipient
        .is_some_and(|recipient| recipient != "all");
    let role = message.author.role.as_str();
    if is_aside || !matches!(role, "user" | "assistant") {
        *left_out += u32::from(!text.trim().is_empty() && role != "system");
        return None;
    }
    said(role, ms(message.create_time), text, Vec::new())
}
