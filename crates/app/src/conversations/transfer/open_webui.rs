//! Open WebUI's export of chats: a list of chats, each with the tree of its messages under
//! `chat.history`, or in old ones only a list under `chat.messages`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Talk;
use super::tree::{Node, grown, ms, said};

#[derive(Deserialize)]
pub(super) struct Exported {
    #[serde(default)]
    title: Option<String>,
    chat: Chat,
    #[serde(default)]
    created_at: Option<f64>,
    #[serde(default)]
    updated_at: Option<f64>,
    #[serde(default)]
    pinned: Option<bool>,
}

#[derive(Deserialize)]
struct Chat {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    history: History,
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct History {
    messages: Map<String, Value>,
    current_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    timestamp: Option<f64>,
    #[serde(default)]
    files: Option<Vec<Value>>,
}

/// Our conversation, and how many parts have no place in it.
pub(super) fn talk(from: Exported) -> (Talk, u32) {
    let mut left_out = 0;
    let (created_ms, updated_ms) = (ms(from.created_at), ms(from.updated_at.or(from.created_at)));
    let empty = Talk {
        title: from.title.or(from.chat.title).unwrap_or_default(),
        created_ms,
        updated_ms,
        pinned: from.pinned == Some(true),
        ..Talk::default()
    };
    let History {
        messages,
        current_id,
    } = from.chat.history;
    let (nodes, current) = if messages.is_empty() {
        linear(from.chat.messages, &mut left_out)
    } else {
        let nodes = messages.into_iter().filter_map(|(id, message)| {
            let message: Option<Message> = serde_json::from_value(message).ok();
            if message.is_none() {
                left_out += 1;
            }
            let message = message?;
            Some(node(id, message.parent_id.clone(), message, &mut left_out))
        });
        (nodes.collect::<Vec<_>>(), current_id)
    };
    let mut nodes = nodes;
    nodes.sort_by_key(|node| node.said.as_ref().map_or(0, |said| said.created_ms));
    let (talk, lost) = grown(nodes, current.as_deref(), empty);
    (talk, left_out + lost)
}

/// Messages without a tree follow one another.
fn linear(messages: Vec<Message>, left_out: &mut u32) -> (Vec<Node>, Option<String>) {
    let mut before: Option<String> = None;
    let mut nodes = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        let id = message.id.clone().unwrap_or_else(|| place.to_string());
        nodes.push(node(id.clone(), before.replace(id), message, left_out));
    }
    (nodes, before)
}

fn node(id: String, parent: Option<String>, message: Message, left_out: &mut u32) -> Node {
    *left_out += message.files.map_or(0, |files| files.len() as u32);
    let text = match message.content {
        Value::String(text) => text,
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            *left_out += (parts.len() - texts.len()) as u32;
            texts.join("\n\n")
        }
        _ => String::new(),
    };
    Node {
        id,
        parent,
        said: said(&message.role, ms(message.timestamp), text, Vec::new()),
    }
}
