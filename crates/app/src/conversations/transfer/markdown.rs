//! Conversations as Markdown, to be read: the branch that is shown.

use super::Talk;
use crate::prompt::{Enclosed, with_enclosed};

/// One conversation.
pub(crate) fn markdown(talk: &Talk) -> String {
    let mut text = format!("# {}\n", one_line(&talk.title));
    for place in shown(talk) {
        let said = &talk.messages[place];
        let model = said
            .record
            .as_ref()
            .and_then(|record| record["model"].as_str());
        let who = match said.role.as_str() {
            "user" => "You",
            _ => model.filter(|model| !model.is_empty()).unwrap_or("Reply"),
        };
        let enclosed: Vec<Enclosed> = said
            .cards
            .iter()
            .map(|card| Enclosed {
                name: card.name.clone(),
                text: card.text.clone(),
            })
            .collect();
        let words = with_enclosed(&said.text, &enclosed);
        text.push_str(&format!("\n## {}\n\n{}\n", one_line(who), words.trim_end()));
        if !matches!(said.state.as_str(), "finished" | "edited") {
            text.push_str(&format!("\n*({})*\n", said.state));
        }
    }
    text
}

/// The places of the branch that is shown, first to last.
fn shown(talk: &Talk) -> Vec<usize> {
    let mut branch = Vec::new();
    let mut next = talk.shown;
    while let Some(place) = next {
        branch.push(place);
        // A message follows an earlier one, so this ends.
        next = talk.messages[place].after.filter(|after| *after < place);
    }
    branch.reverse();
    branch
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
