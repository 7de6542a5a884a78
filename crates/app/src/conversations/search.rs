//! The search over titles and messages.

use rusqlite::params;

use super::Store;
use crate::error::Error;
use crate::wire::{Found, Piece};

/// Most that is found in titles and in messages, each: more than a person looks through.
const FOUND_MAX: usize = 50;

/// Longest search in characters, and most words of it. Longer ones are cut.
const SEARCH_CHARS_MAX: usize = 200;
const WORDS_MAX: usize = 12;

/// Words around a hit.
const SNIPPET_WORDS: usize = 14;

/// Characters around a hit where words have no spaces between them.
const SNIPPET_CHARS: usize = 40;

/// What stands before and after a hit on its way from the index; nobody types these.
const OPEN: char = '\u{2}';
const CLOSE: char = '\u{3}';

impl Store {
    /// Where these words are found, the best first; the beginning of a word is enough. Titles come
    /// before messages.
    pub(crate) fn search(&self, words: &str) -> Result<Vec<Found>, Error> {
        // What is pasted may hold signs that nobody sees; a NUL would end the index's question.
        let is_seen = |letter: &char| letter.is_whitespace() || !letter.is_control();
        let words: String = words
            .chars()
            .filter(is_seen)
            .take(SEARCH_CHARS_MAX)
            .collect();
        let is_spoken = |word: &&str| word.chars().any(char::is_alphanumeric);
        let (spoken, signs): (Vec<&str>, Vec<&str>) = words.split_whitespace().partition(is_spoken);
        // Signs beside words are how people write; by themselves they are what is looked for.
        let only_signs = spoken.is_empty();
        let mut words = if only_signs { signs } else { spoken };
        words.truncate(WORDS_MAX);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        // An index of words finds nothing in the middle of a text that has no spaces, and no signs.
        let is_unspaced = |word: &&str| word.chars().any(is_unspaced);
        if only_signs || words.iter().any(is_unspaced) {
            return self.search_letters(&words);
        }
        let query = query_of(&words);
        let mut found = self.search_titles(&query)?;
        found.extend(self.search_messages(&query)?);
        Ok(found)
    }

    fn search_titles(&self, query: &str) -> Result<Vec<Found>, Error> {
        let connection = self.connection();
        let sql = "SELECT c.id, highlight(title_words, 0, char(2), char(3))
                   FROM title_words JOIN conversation c ON c.id = title_words.rowid
                   WHERE title_words MATCH ?1 AND c.deleted_ms IS NULL
                   ORDER BY c.updated_ms DESC LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![query, FOUND_MAX as i64], |row| {
            let title: String = row.get(1)?;
            Ok(Found {
                conversation: row.get(0)?,
                title: pieces(&title),
                message: None,
                snippet: Vec::new(),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn search_messages(&self, query: &str) -> Result<Vec<Found>, Error> {
        let connection = self.connection();
        let sql = format!(
            "SELECT m.conversation, c.title, m.id,
                    snippet(message_words, 0, char(2), char(3), '…', {SNIPPET_WORDS})
             FROM message_words
             JOIN message m ON m.id = message_words.rowid
             JOIN conversation c ON c.id = m.conversation
             WHERE message_words MATCH ?1 AND c.deleted_ms IS NULL
             ORDER BY message_words.rank LIMIT ?2"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params![query, FOUND_MAX as i64], |row| {
            let snippet: String = row.get(3)?;
            Ok(Found {
                conversation: row.get(0)?,
                title: vec![plain(row.get(1)?)],
                message: Some(row.get(2)?),
                snippet: pieces(&snippet),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The same without the index: every title and message that has all of the words in it. Only
    /// letters without marks are the same large and small.
    fn search_letters(&self, words: &[&str]) -> Result<Vec<Found>, Error> {
        let connection = self.connection();
        let mut found = Vec::new();
        let has_all = |column: &str| {
            let has = (1..=words.len())
                .map(|place| format!("instr(lower({column}), lower(?{place})) > 0"));
            has.collect::<Vec<_>>().join(" AND ")
        };
        let limit = format!("ORDER BY c.updated_ms DESC LIMIT {FOUND_MAX}");
        let values = || rusqlite::params_from_iter(words);
        let sql = format!(
            "SELECT c.id, c.title FROM conversation c
             WHERE c.deleted_ms IS NULL AND {} {limit}",
            has_all("c.title")
        );
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map(values(), |row| {
            let title: String = row.get(1)?;
            Ok(Found {
                conversation: row.get(0)?,
                title: marked(&title, words),
                message: None,
                snippet: Vec::new(),
            })
        })?;
        found.extend(rows.collect::<Result<Vec<_>, _>>()?);
        let sql = format!(
            "SELECT c.id, c.title, m.id, m.text FROM message m
             JOIN conversation c ON c.id = m.conversation
             WHERE c.deleted_ms IS NULL AND {} {limit}",
            has_all("m.text")
        );
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map(values(), |row| {
            let text: String = row.get(3)?;
            Ok(Found {
                conversation: row.get(0)?,
                title: vec![plain(row.get(1)?)],
                message: Some(row.get(2)?),
                snippet: marked(&around(&text, words[0]), words),
            })
        })?;
        found.extend(rows.collect::<Result<Vec<_>, _>>()?);
        Ok(found)
    }
}

/// The words as the index is asked: all of them, each a beginning. Quoted, nothing in them is the
/// index's own language.
fn query_of(words: &[&str]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// Whether a letter belongs to a script that puts no spaces between words: Thai to Khmer, kana,
/// Han.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

fn plain(text: String) -> Piece {
    Piece { text, hit: false }
}

/// A text with marks as pieces.
fn pieces(marked: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut hit = false;
    for part in marked.split_inclusive([OPEN, CLOSE]) {
        let text = part.trim_end_matches([OPEN, CLOSE]);
        if !text.is_empty() {
            let text = text.to_owned();
            pieces.push(Piece { text, hit });
        }
        hit = part.ends_with(OPEN);
    }
    pieces
}

/// A part of a text around the first place of a word.
fn around(text: &str, word: &str) -> String {
    let at = text.to_ascii_lowercase();
    let at = at.find(&word.to_ascii_lowercase()).unwrap_or_default();
    let before: Vec<char> = text[..at].chars().rev().take(SNIPPET_CHARS).collect();
    let start = at - before.iter().map(|c| c.len_utf8()).sum::<usize>();
    let after = text[at..]
        .chars()
        .take(word.chars().count() + SNIPPET_CHARS);
    let end = at + after.map(char::len_utf8).sum::<usize>();
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    format!(
        "{}{}{}",
        dots(start > 0),
        &text[start..end],
        dots(end < text.len())
    )
}

/// A text with every place of the words marked.
fn marked(text: &str, words: &[&str]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut rest, mut before) = (text, String::new());
    while let Some(letter) = rest.chars().next() {
        let is_here = |word: &&&str| {
            let here = rest.get(..word.len());
            here.is_some_and(|here| here.eq_ignore_ascii_case(word))
        };
        let word = words.iter().find(is_here);
        let taken = word.map_or(letter.len_utf8(), |word| word.len());
        let (part, after) = rest.split_at(taken);
        if word.is_some() {
            if !before.is_empty() {
                pieces.push(plain(std::mem::take(&mut before)));
            }
            let text = part.to_owned();
            pieces.push(Piece { text, hit: true });
        } else {
            before.push_str(part);
        }
        rest = after;
    }
    if !before.is_empty() {
        pieces.push(plain(before));
    }
    pieces
}

#[cfg(test)]
mod tests;
