//! From the trees of other programs, whose messages name each other, to ours.

use std::collections::{BTreeMap, VecDeque};

use super::{CardText, Said, Talk};
use crate::wire::ChatSettings;

/// A message of another program.
#[derive(Default)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    /// What is kept of it; none for what has no place here. What follows it is kept.
    pub(super) said: Option<Said>,
}

/// A message that is not empty, whoever said it.
pub(super) fn said(
    role: &str,
    created_ms: i64,
    text: String,
    cards: Vec<CardText>,
) -> Option<Said> {
    (!(text.trim().is_empty() && cards.is_empty())).then(|| Said {
        after: None,
        role: role.to_owned(),
        state: String::from("finished"),
        created_ms,
        text,
        record: None,
        cards,
    })
}

/// A tree of these messages, and how many have no place in it or could not be reached from any
/// beginning. The first message of the system is what the conversation is told before all else.
pub(super) fn grown(nodes: Vec<Node>, current: Option<&str>, mut talk: Talk) -> (Talk, u32) {
    let places: BTreeMap<String, usize> = nodes
        .iter()
        .enumerate()
        .map(|(place, node)| (node.id.clone(), place))
        .collect();
    let parents: Vec<Option<usize>> = nodes
        .iter()
        .map(|node| places.get(node.parent.as_ref()?).copied())
        .collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut queue = VecDeque::new();
    for (place, parent) in parents.iter().enumerate() {
        match parent {
            Some(parent) => children[*parent].push(place),
            None => queue.push_back((place, None)),
        }
    }
    let current = current.and_then(|id| places.get(id).copied());
    let mut said: Vec<Option<Said>> = nodes.into_iter().map(|node| node.said).collect();
    let (mut reached, mut lost) = (0, 0);
    while let Some((place, mut after)) = queue.pop_front() {
        reached += 1;
        match said[place].take() {
            Some(message) if matches!(&*message.role, "user" | "assistant") => {
                talk.messages.push(Said { after, ..message });
                after = Some(talk.messages.len() - 1);
            }
            Some(message) if message.role == "system" && talk.settings.is_none() => {
                talk.settings = Some(ChatSettings {
                    system_prompt: message.text,
                    ..ChatSettings::default()
                });
            }
            Some(_) => lost += 1,
            None => {}
        }
        if current == Some(place) {
            talk.shown = after;
        }
        queue.extend(children[place].iter().map(|child| (*child, after)));
    }
    talk.shown = talk.shown.or(talk.messages.len().checked_sub(1));
    (talk, (said.len() - reached + lost) as u32)
}

/// Seconds since 1970 as milliseconds.
pub(super) fn ms(seconds: Option<f64>) -> i64 {
    // Out of range or no number, it becomes the nearest that is one.
    seconds.map_or(0, |seconds| (seconds * 1_000.0) as i64)
}
