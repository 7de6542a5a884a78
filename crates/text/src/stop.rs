//! Stop strings in a stream: text that may become one is held back.

use thiserror::Error;

/// Most stop strings of one request. Public APIs allow 4; the rest is room for the end markers
/// of chat templates.
pub const STOP_STRINGS_MAX: usize = 32;

/// Longest stop string in bytes. A stop string that is longer would hold back that much text.
pub const STOP_BYTES_MAX: usize = 256;

/// Why a set of stop strings was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StopError {
    /// Too many strings.
    #[error("{found} stop strings were given; at most {STOP_STRINGS_MAX} are possible")]
    TooMany {
        /// How many were given.
        found: usize,
    },
    /// One string is too long.
    #[error("stop string {index} has {found} bytes; at most {STOP_BYTES_MAX} are possible")]
    TooLong {
        /// Its place in the list.
        index: usize,
        /// Its length in bytes.
        found: usize,
    },
    /// One string is empty, and so would stop every reply at once.
    #[error("stop string {index} is empty")]
    Empty {
        /// Its place in the list.
        index: usize,
    },
}

/// What one piece of text led to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopStep {
    /// Text that is safe to show now.
    pub text: String,
    /// The stop string that was found, as its place in the list. From then on nothing is shown.
    pub matched: Option<usize>,
}

/// Looks for stop strings in a stream and holds back text that may become one.
///
/// The match that is complete first in the stream wins; of two that end at the same character,
/// the longer. So the result does not depend on how the text was cut into pieces.
#[derive(Debug, Clone, Default)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    matched: Option<usize>,
}

impl StopMatcher {
    /// A matcher for these stop strings; an empty list matches nothing and holds nothing back.
    ///
    /// # Errors
    /// If there are too many, or one is empty or too long.
    pub fn new(stops: Vec<String>) -> Result<Self, StopError> {
        if stops.len() > STOP_STRINGS_MAX {
            return Err(StopError::TooMany { found: stops.len() });
        }
        for (index, stop) in stops.iter().enumerate() {
            if stop.is_empty() {
                return Err(StopError::Empty { index });
            }
            if stop.len() > STOP_BYTES_MAX {
                return Err(StopError::TooLong {
                    index,
                    found: stop.len(),
                });
            }
        }
        Ok(Self {
            stops,
            held: String::new(),
            matched: None,
        })
    }

    /// Takes the next text; returns what may be shown, and whether a stop string was completed.
    /// After a match every call returns no text and the same match.
    pub fn push(&mut self, text: &str) -> StopStep {
        if self.matched.is_some() {
            return StopStep {
                text: String::new(),
                matched: self.matched,
            };
        }
        self.held.push_str(text);
        if let Some((start, index)) = self.first_match() {
            self.matched = Some(index);
            self.held.truncate(start);
            return StopStep {
                text: std::mem::take(&mut self.held),
                matched: self.matched,
            };
        }
        let keep = self.may_become_a_stop();
        let rest = self.held.split_off(self.held.len() - keep);
        StopStep {
            text: std::mem::replace(&mut self.held, rest),
            matched: None,
        }
    }

    /// Ends the stream and returns what was still held back.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Start and list index of the match that ends first (of those, the longest).
    fn first_match(&self) -> Option<(usize, usize)> {
        self.stops
            .iter()
            .enumerate()
            .filter_map(|(index, stop)| {
                let start = self.held.find(stop.as_str())?;
                Some((start + stop.len(), start, index))
            })
            .min()
            .map(|(_, start, index)| (start, index))
    }

    /// Length of the longest end of the held text that some stop string begins with.
    fn may_become_a_stop(&self) -> usize {
        let held = self.held.as_bytes();
        self.stops
            .iter()
            .filter_map(|stop| {
                let longest = held.len().min(stop.len() - 1);
                (1..=longest)
                    .rev()
                    .find(|&len| held.ends_with(&stop.as_bytes()[..len]))
            })
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text whole, by characters and in pairs; every way shows the same text and ends
    /// on the same stop string.
    fn check(stops: &[&str], text: &str, shown: &str, matched: Option<usize>) {
        let chars: Vec<String> = text.chars().map(String::from).collect();
        let pairs: Vec<String> = chars.chunks(2).map(|pair| pair.concat()).collect();
        for pieces in [vec![text.to_owned()], chars, pairs] {
            let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
            let mut matcher = StopMatcher::new(stops).unwrap();
            let mut seen = String::new();
            let mut found = None;
            for piece in &pieces {
                let step = matcher.push(piece);
                seen.push_str(&step.text);
                found = step.matched;
                assert!(shown.starts_with(&seen), "{text:?}: showed {seen:?}");
            }
            seen.push_str(&matcher.finish());
            assert_eq!(
                (seen.as_str(), found),
                (shown, matched),
                "{text:?} in {pieces:?}"
            );
        }
    }

    #[test]
    fn text_up_to_the_first_completed_stop_string_is_shown() {
        check(&[], "anything", "anything", None);
        check(&["END"], "abENDcd", "ab", Some(0));
        check(&["END"], "abENcd EN", "abENcd EN", None);
        check(&["END"], "EENDx", "E", Some(0));
        check(&["aab"], "aaab", "a", Some(0));
        check(&["\n\n"], "one\ntwo\n\nthree", "one\ntwo", Some(0));
        check(&["abcd", "bc"], "xabcd", "xa", Some(1));
        check(&["c", "abc"], "xabc", "x", Some(1));
        check(&["abc", "b"], "abc", "a", Some(1));
        check(&["User:", "</s>"], "hi</s>User:", "hi", Some(1));
        check(&["é日"], "aé日b", "a", Some(0));
        check(&["é日"], "aéb", "aéb", None);
        check(&["日", "日本"], "x日本", "x", Some(0));
    }

    #[test]
    fn only_what_may_become_a_stop_string_is_held_back() {
        let mut matcher = StopMatcher::new(vec!["<end>".into(), "###".into()]).unwrap();
        assert_eq!(matcher.push("ab<e").text, "ab");
        assert_eq!(matcher.push("x#").text, "<ex");
        assert_eq!(matcher.push("#").text, "");
        assert_eq!(matcher.push("y").text, "##y");
        assert_eq!(matcher.push("<end"), StopStep::default());
        let stopped = StopStep {
            text: String::new(),
            matched: Some(0),
        };
        assert_eq!(matcher.push(">more"), stopped);
        assert_eq!(matcher.push("even more"), stopped);
        assert_eq!(matcher.finish(), "");
    }

    #[test]
    fn sets_beyond_the_bounds_are_refused() {
        let many = vec!["x".to_owned(); STOP_STRINGS_MAX + 1];
        let long = vec!["ok".to_owned(), "x".repeat(STOP_BYTES_MAX + 1)];
        let cases = [
            (
                many,
                StopError::TooMany {
                    found: STOP_STRINGS_MAX + 1,
                },
            ),
            (
                long,
                StopError::TooLong {
                    index: 1,
                    found: STOP_BYTES_MAX + 1,
                },
            ),
            (vec![String::new()], StopError::Empty { index: 0 }),
        ];
        for (stops, expected) in cases {
            assert_eq!(StopMatcher::new(stops).unwrap_err(), expected);
        }
    }
}
