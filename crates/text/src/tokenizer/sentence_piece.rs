//! SentencePiece byte-pair encoding ("llama"): merges by score, byte fallback, space prefix.
//!
//! The library cannot be exact here (see the decision record on tokenizer stages): it ranks
//! merges one by one, while SentencePiece ranks by the score of the result, so that two pieces of
//! equal score, or two ways to one piece, are taken from left to right.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use candor_modelfile::{TokenType, TokenizerSpec};

use super::TokenizerError;

/// What stands for a space in the vocabulary.
pub(super) const SPACE: char = '\u{2581}';

/// Merging by the scores of the pieces.
pub(super) struct SentencePiece {
    ids: HashMap<Box<str>, u32>,
    scores: Vec<f32>,
    longest: usize,
    borders: Borders,
    byte_ids: [Option<u32>; 256],
    unknown: Option<u32>,
    space_prefix: SpacePrefix,
}

/// Where text can be cut before merging without changing the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Borders {
    /// Before a space that follows anything else: no piece of the vocabulary goes across.
    BeforeSpaces,
    /// Nowhere.
    None,
}

/// Whether text that follows a token or begins the prompt gets a space in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpacePrefix {
    Added,
    NotAdded,
}

impl SpacePrefix {
    /// A text as the vocabulary spells it.
    pub(super) fn mark(self, text: &str) -> String {
        let mut marked = String::with_capacity(text.len() + SPACE.len_utf8());
        if self == Self::Added {
            marked.push(SPACE);
        }
        marked.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
        marked
    }
}

/// A character or a merged piece: a range of the text in a list linked both ways.
struct Symbol {
    start: usize,
    end: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Two neighbours that could become one piece.
struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    /// End of the piece when it was proposed. If a neighbour has changed since, this differs.
    start: usize,
    end: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl SentencePiece {
    /// Builds the vocabulary of the file. Control and byte tokens take no part in merges, so that
    /// no ordinary text can merge into one.
    pub(super) fn new(spec: &TokenizerSpec, kinds: &[TokenType]) -> Result<Self, TokenizerError> {
        if spec.scores.len() != spec.tokens.len() {
            return Err(TokenizerError::ScoreCount {
                expected: spec.tokens.len(),
                found: spec.scores.len(),
            });
        }
        let mut ids: HashMap<Box<str>, u32> = HashMap::with_capacity(spec.tokens.len());
        let mut byte_ids = [None; 256];
        for ((id, token), kind) in (0..).zip(&spec.tokens).zip(kinds) {
            match kind {
                TokenType::Control | TokenType::Unknown => {}
                TokenType::Byte => {
                    if let Some(byte) = byte_of(token) {
                        byte_ids[usize::from(byte)] = Some(id);
                    }
                }
                _ => {
                    ids.insert(token.as_str().into(), id);
                }
            }
        }
        let longest = ids.keys().map(|token| token.len()).max().unwrap_or(0);
        let crosses = ids.keys().any(|token| first_word(token) < token.len());
        let borders = if crosses {
            Borders::None
        } else {
            Borders::BeforeSpaces
        };
        let space_prefix = match spec.add_space_prefix {
            Some(false) => SpacePrefix::NotAdded,
            // SentencePiece's own default.
            Some(true) | None => SpacePrefix::Added,
        };
        let unknown = spec.unk.filter(|&id| (id as usize) < spec.tokens.len());
        let scores = spec.scores.clone();
        Ok(Self {
            ids,
            scores,
            longest,
            borders,
            byte_ids,
            unknown,
            space_prefix,
        })
    }

    /// Appends the ids of a text that begins the prompt or follows a token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let marked = self.space_prefix.mark(text);
        let mut rest = marked.as_str();
        while !rest.is_empty() {
            let (word, after) = rest.split_at(match self.borders {
                Borders::BeforeSpaces => first_word(rest),
                Borders::None => rest.len(),
            });
            self.encode_word(word, ids)?;
            rest = after;
        }
        Ok(())
    }

    /// Appends the ids of a word that is not empty.
    fn encode_word(&self, word: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let symbols = self.merge(word);
        let mut at = Some(0);
        while let Some(index) = at {
            let symbol = &symbols[index];
            self.push_piece(&word[symbol.start..symbol.end], ids)?;
            at = symbol.next;
        }
        Ok(())
    }

    /// Merges neighbours, the best score first, until no two of them are a piece.
    fn merge(&self, text: &str) -> Vec<Symbol> {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let count = starts.len();
        let mut symbols: Vec<Symbol> = (0..count)
            .map(|index| Symbol {
                start: starts[index],
                end: starts.get(index + 1).copied().unwrap_or(text.len()),
                previous: index.checked_sub(1),
                next: (index + 1 < count).then_some(index + 1),
            })
            .collect();
        let mut candidates: BinaryHeap<Candidate> = (1..count)
            .filter_map(|right| self.candidate(text, &symbols, right - 1))
            .collect();
        while let Some(best) = candidates.pop() {
            let (left, right) = (&symbols[best.left], &symbols[best.right]);
            // A merged-away symbol is empty, a grown one has moved its end: both proposals are old.
            let stale =
                left.end != right.start || left.start != best.start || right.end != best.end;
            if stale || left.start == left.end || right.start == right.end {
                continue;
            }
            let next = right.next;
            symbols[best.left].end = best.end;
            symbols[best.left].next = next;
            symbols[best.right].start = best.end;
            if let Some(next) = next {
                symbols[next].previous = Some(best.left);
            }
            candidates.extend(self.candidate(text, &symbols, best.left));
            if let Some(previous) = symbols[best.left].previous {
                candidates.extend(self.candidate(text, &symbols, previous));
            }
        }
        symbols
    }

    /// The piece that a symbol and the one after it would become, if there is one.
    fn candidate(&self, text: &str, symbols: &[Symbol], left: usize) -> Option<Candidate> {
        let right = symbols[left].next?;
        let (start, end) = (symbols[left].start, symbols[right].end);
        if end - start > self.longest {
            return None;
        }
        let id = self.ids.get(&text[start..end])?;
        Some(Candidate {
            score: self.scores[*id as usize],
            left,
            right,
            start,
            end,
        })
    }

    /// Appends the id of a piece, or of each of its bytes where it has none.
    fn push_piece(&self, piece: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        if let Some(&id) = self.ids.get(piece) {
            ids.push(id);
            return Ok(());
        }
        for byte in piece.bytes() {
            let id = self.byte_ids[usize::from(byte)].or(self.unknown);
            ids.push(id.ok_or(TokenizerError::NoTokenForByte { byte })?);
        }
        Ok(())
    }
}

/// Length of the text before the first space that follows anything else.
fn first_word(text: &str) -> usize {
    let spaces = text.len() - text.trim_start_matches(SPACE).len();
    text[spaces..]
        .find(SPACE)
        .map_or(text.len(), |at| spaces + at)
}

/// The byte that a token such as `<0x0A>` stands for.
pub(super) fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}
