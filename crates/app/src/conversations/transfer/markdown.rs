//! Conversations as Markdown, to be read: the branch that is shown.

use super::Talk;
use crate::prompt::{Enclosed, with_enclosed};
use crate::words::{Phrase, Tongue, phrase};

/// One conversation.
pub(crate) fn markdown(talk: &Talk, tongue: Tongue) -> String {
    let mut text = format!("# {}\n", one_line(&talk.title));
    for place in shown(talk) {
        let said = &talk.messages[place];
        let model = said
            .record
            .as_ref()
            .and_then(|record| record["model"].as_str());
        let model = model.filter(|model| !model.is_empty());
        let who = match (said.role.as_str(), model) {
            ("user", _) => phrase!("You", "Du"),
            (_, Some(model)) => Phrase::same(model),
            (_, None) => phrase!("Reply", "Antwort"),
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
        text.push_str(&format!(
            "\n## {}\n\n{}\n",
            one_line(who.in_tongue(tongue)),
            words.trim_end()
        ));
        if !matches!(said.state.as_str(), "finished" | "edited") {
            let state = ending(&said.state);
            text.push_str(&format!("\n*({})*\n", state.in_tongue(tongue)));
        }
    }
    text
}

/// How a message ended that came to no end.
fn ending(state: &str) -> Phrase {
    let german = match state {
        "stopped" => "von Hand angehalten",
        "length" => "Länge erreicht",
        "context-full" => "Kontext voll",
        "interrupted" => "unterbrochen",
        "failed" => "fehlgeschlagen",
        "writing" => "wird geschrieben",
        other => other,
    };
    Phrase::new(state, german)
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
