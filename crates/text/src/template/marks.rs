//! Keeps typed text apart from a template's own markup while both pass through the template.
//!
//! A template joins markup and contents into one text, in which a typed `<|im_end|>` could not
//! be told from the template's own. So every control-token spelling in the contents gets a mark,
//! a character that occurs nowhere else, in its middle before rendering: the template cannot see
//! a spelling, and moves the mark along with the text. Afterwards the marks are taken out, and a
//! spelling that had one inside becomes a literal range.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::controls::ControlSpellings;
use crate::prompt::Prompt;

/// A mark that occurs in none of the texts of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(char);

/// Characters that may become the mark: the noncharacters, which no text has a use for, and
/// then, should a text contain all of those, the private planes.
fn candidates() -> impl Iterator<Item = char> {
    let plane_ends = (0..=0x10).flat_map(|plane| [plane << 16 | 0xfffe, plane << 16 | 0xffff]);
    let codes = (0xfdd0..=0xfdef)
        .chain(plane_ends)
        .chain(0xf_0000..=0x10_fffd);
    codes.filter_map(char::from_u32)
}

/// Whether a character is among the candidates, or close enough that keeping it does no harm.
fn may_be_candidate(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..) || (c as u32) & 0xfffe == 0xfffe
}

/// The candidates that the texts of one rendering contain.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeSet<char>);

impl Taken {
    pub(super) fn add_text(&mut self, text: &str) {
        // Every candidate takes three bytes or more, so most text is skipped quickly.
        self.0.extend(text.chars().filter(|&c| may_be_candidate(c)));
    }

    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(map) => self.add_map(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(super) fn add_map(&mut self, map: &Map<String, Value>) {
        for (key, value) in map {
            self.add_text(key);
            self.add(value);
        }
    }

    /// A character that is not taken. `None` only if a text contains all candidates.
    pub(super) fn free(&self) -> Option<Mark> {
        candidates().find(|c| !self.0.contains(c)).map(Mark)
    }
}

impl Mark {
    /// Marks every string inside a value.
    pub(super) fn value(self, value: &Value, controls: &ControlSpellings) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, controls).into_owned()),
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.value(item, controls))
                    .collect(),
            ),
            Value::Object(map) => Value::Object(self.map(map, controls)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Marks every string inside a map. Plain words as keys, roles and types stay: templates
    /// compare them.
    pub(super) fn map(
        self,
        map: &Map<String, Value>,
        controls: &ControlSpellings,
    ) -> Map<String, Value> {
        let marked = map.iter().map(|(key, value)| {
            let name = match is_word(key) {
                true => key.clone(),
                false => self.text(key, controls).into_owned(),
            };
            let compared = matches!(key.as_str(), "role" | "type");
            match value {
                Value::String(word) if compared && is_word(word) => (name, value.clone()),
                _ => (name, self.value(value, controls)),
            }
        });
        marked.collect()
    }

    /// Puts the mark into every control spelling, and at an edge of the text where a spelling
    /// could come about together with what the template puts next to it.
    fn text<'t>(self, text: &'t str, controls: &ControlSpellings) -> Cow<'t, str> {
        let mut places = BTreeSet::new();
        for found in controls.find(text) {
            match middle(&text[found.range.clone()]) {
                Some(middle) => {
                    places.insert(found.range.start + middle);
                }
                // One character has no middle: it gets a mark on both sides.
                None => places.extend([found.range.start, found.range.end]),
            }
        }
        if controls.may_end_at_start_of(text) {
            places.insert(0);
        }
        if controls.may_begin_at_end_of(text) {
            places.insert(text.len());
        }
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut marked = String::with_capacity(text.len() + places.len() * self.0.len_utf8());
        let mut from = 0;
        for place in places {
            marked.push_str(&text[from..place]);
            marked.push(self.0);
            from = place;
        }
        marked.push_str(&text[from..]);
        Cow::Owned(marked)
    }

    /// Takes the marks out of a rendered text; the spellings that had one become literal.
    pub(super) fn remove(self, rendered: &str, controls: &ControlSpellings) -> Prompt {
        let mut prompt = Prompt::default();
        let mut places = BTreeSet::new();
        let mut parts = rendered.split(self.0);
        prompt.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            places.insert(prompt.text.len());
            prompt.text.push_str(part);
        }
        if places.is_empty() {
            return prompt;
        }
        let mut literals: Vec<_> = controls
            .find(&prompt.text)
            .map(|found| found.range)
            .filter(|range| {
                let has_inside = places.range(range.start + 1..range.end).next().is_some();
                let is_enclosed = places.contains(&range.start) && places.contains(&range.end);
                has_inside || (is_enclosed && middle(&prompt.text[range.clone()]).is_none())
            })
            .collect();
        literals.sort_by_key(|range| (range.start, range.end));
        for range in literals {
            prompt.add_literal(range);
        }
        prompt
    }
}

/// The character border nearest to the middle, if there is one inside.
fn middle(spelling: &str) -> Option<usize> {
    let borders: Vec<usize> = spelling.char_indices().map(|(at, _)| at).skip(1).collect();
    borders.get(borders.len() / 2).copied()
}

/// Words that templates compare with: nothing in them can be a spelling's edge by accident.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}
