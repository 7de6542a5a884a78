//! The tokens by which a device is judged, and how they are cut into forwards.

use std::ops::Range;

use candor_backend::Model;
use candor_text::{ChatFormat, Ends, RenderRequest, Tokenizer};
use serde_json::json;

use super::remembered::checksum;
use super::rules::Spot;
use super::verdict::{NotJudged, Path};
use crate::schedule::CHUNK_TOKENS;

/// Tokens of the built-in probe. Attention is split every 256 tokens, so this many take it over a
/// border while a prompt is read, and again while a reply is written. The reference reads them in
/// batches: about the work of a prompt of this length.
pub const PROBE_TOKENS: usize = 288;

/// Positions of a real prompt that are judged: the last ones, as the seed did.
pub const PROMPT_POSITIONS: usize = 64;

/// Rows of the forwards at the end of a probe: what replies are written with, alone and a few
/// together, one row most often.
const TAIL: [usize; 17] = [8, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];

/// Rows up to which a device takes the way by which replies are written.
pub const DECODE_ROWS_MAX: usize = 8;

/// With fewer there is nothing to read together and then to go on from.
const TOKENS_MIN: usize = 2;

/// Something with sentences, code, numbers and more than one script, so that many parts of a
/// model have to do with it.
const TEXT: &str = "The harbour lay quiet under a thin fog. Two boats had come in before dawn, and \
    their crews were sorting the catch by the light of a single lamp: 14 crates of herring, 3 of \
    mackerel, and one old boot. \"You never know,\" said the older man, \"what the sea will give \
    back.\" He wrote the numbers into a book, line by line, and added them up twice.\n\n\
    fn total(crates: &[u32]) -> u32 {\n    crates.iter().sum()\n}\n\n\
    Am Abend wurde es kälter; der Wind kam jetzt von Norden. Le bateau suivant n'arriva qu'à \
    minuit. 港に朝が来た。 Все лодки вернулись домой. If x = 3 and y = 4, then x² + y² = 25, and \
    the square root of 25 is 5. In 1851 a lighthouse was built on the rock; it was seen from 20 \
    miles away, and ships that had kept clear of the coast began to call at the town. Trade grew, \
    and with it the school, the library and the market, where on Thursdays you could buy \
    oranges, rope, candles and, if you asked for it quietly, news from the other side.\n\n\
    | year | ships | crates |\n| 1850 | 212 | 4,018 |\n| 1860 | 655 | 9,730 |\n| 1870 | 801 | 12,444 |\n\n\
    Question: how many more ships came in 1870 than in 1850? Answer: 801 minus 212 is 589. \
    She closed the book, put out the lamp and went down to the water, where the first of the \
    boats was making ready to leave again.";

/// What a probe is for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a Model,
    /// Made of its vocabulary.
    pub tokenizer: &'a Tokenizer,
    /// Tokens that its sessions hold.
    pub ctx_len: usize,
}

/// The tokens by which a device is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    ids: Vec<u32>,
    /// Positions before it are computed and not judged.
    first_judged: usize,
}

/// One forward of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) rows: Range<usize>,
    pub(crate) path: Path,
    /// The least context that it is computed for; 0 for what fits. One of a session's ways.
    pub(crate) way: usize,
}

impl Cut {
    /// Where one of its positions is judged.
    pub(crate) fn spot(&self, position: usize) -> Spot {
        Spot {
            position,
            path: self.path,
            way: self.way,
        }
    }
}

impl Probe {
    /// Tells probes apart: what is kept of one says nothing of another, and a short context's does
    /// not take the place of a long one's.
    pub(crate) fn fingerprint(&self) -> String {
        let numbers = self.ids.iter().copied().chain([self.first_judged as u32]);
        let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        format!("probe {} {:016x}", self.ids.len(), checksum(&bytes))
    }

    /// The built-in text in the model's own chat format, in so far as the context holds it; where
    /// the file has no vocabulary that can be used, ids from all over it. All of its positions are
    /// judged.
    ///
    /// # Errors
    /// [`NotJudged::TooShort`].
    pub fn built_in(subject: Subject<'_>) -> Result<Self, NotJudged> {
        Self::cut_to(subject.built_in_ids(PROBE_TOKENS), 0, subject.ctx_len)
    }

    /// These tokens, lengthened with the built-in ones where they are few. At most the last
    /// [`PROBE_TOKENS`] positions are judged.
    ///
    /// # Errors
    /// [`NotJudged::TooShort`].
    pub fn of_text(ids: &[u32], subject: Subject<'_>) -> Result<Self, NotJudged> {
        Self::of(ids, PROBE_TOKENS, subject)
    }

    /// A prompt of a conversation at its true positions; its last [`PROMPT_POSITIONS`] positions
    /// are judged. One that is too short is lengthened, never waved through.
    ///
    /// # Errors
    /// [`NotJudged::TooShort`].
    pub fn of_prompt(ids: &[u32], subject: Subject<'_>) -> Result<Self, NotJudged> {
        Self::of(ids, PROMPT_POSITIONS, subject)
    }

    fn of(ids: &[u32], judged: usize, subject: Subject<'_>) -> Result<Self, NotJudged> {
        let mut all = Vec::new();
        if ids.len() < judged {
            all = subject.built_in_ids(judged - ids.len());
        }
        all.extend_from_slice(ids);
        let first_judged = all.len().saturating_sub(judged);
        Self::cut_to(all, first_judged, subject.ctx_len)
    }

    /// What a context cannot hold is not served from it either.
    fn cut_to(mut ids: Vec<u32>, first_judged: usize, ctx_len: usize) -> Result<Self, NotJudged> {
        // The greedy step takes one more.
        let most = ctx_len.saturating_sub(1);
        ids.truncate(most);
        let (found, needed) = (ids.len(), TOKENS_MIN);
        if found < needed {
            return Err(NotJudged::TooShort { found, needed });
        }
        let first_judged = first_judged.min(found - needed);
        Ok(Self { ids, first_judged })
    }

    /// The tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The first position that is judged.
    pub fn first_judged(&self) -> usize {
        self.first_judged
    }

    /// Positions that are judged, the greedy step among them.
    pub fn judged(&self) -> usize {
        self.ids.len() - self.first_judged + 1
    }

    /// The forwards with the greedy step, in all of these ways.
    ///
    /// A few rows are computed in another way where a context has grown long. So of each number of
    /// rows the first forward is repeated, from the same position, in the ways of longer contexts.
    /// Shorter ones are not served from there.
    pub(crate) fn all_cuts(&self, ways: &[usize]) -> Vec<Cut> {
        let mut all: Vec<Cut> = Vec::new();
        for cut in self.cuts() {
            let same =
                |other: &Cut| other.path == Path::Decode && other.rows.len() == cut.rows.len();
            let repeated = cut.path == Path::Decode && !all.iter().any(same);
            let longer = ways.iter().filter(|way| **way >= cut.rows.end).skip(1);
            let longer = longer.filter(|_| repeated).map(|way| Cut {
                way: *way,
                ..cut.clone()
            });
            let longer: Vec<Cut> = longer.collect();
            all.push(cut);
            all.extend(longer);
        }
        let len = self.ids.len();
        all.push(Cut {
            rows: len..len + 1,
            path: Path::Greedy,
            way: 0,
        });
        all
    }

    /// All tokens with the one of the greedy step.
    pub(crate) fn ids_with(&self, greedy: u32) -> Vec<u32> {
        self.ids.iter().copied().chain([greedy]).collect()
    }

    /// The forwards, in order: prefill in unequal parts, then the tail as replies are written.
    pub(crate) fn cuts(&self) -> Vec<Cut> {
        let len = self.ids.len();
        let mut tail = Vec::new();
        for rows in TAIL.iter().rev() {
            if tail.iter().sum::<usize>() + rows <= len / 2 {
                tail.push(*rows);
            }
        }
        tail.reverse();
        let prefill = len - tail.iter().sum::<usize>();
        let mut ends = prefill_ends(prefill);
        let mut end = prefill;
        for rows in tail {
            end += rows;
            ends.push(end);
        }
        let mut start = 0;
        let cut = |end: usize| {
            let rows = start..end;
            start = end;
            let path = match rows.len() {
                ..=DECODE_ROWS_MAX => Path::Decode,
                _ => Path::Prefill,
            };
            Cut { rows, path, way: 0 }
        };
        ends.into_iter().map(cut).collect()
    }
}

/// Where the chunks of so many tokens end: long prompts as the schedule cuts them, short ones in
/// three parts that fit no tile.
fn prefill_ends(tokens: usize) -> Vec<usize> {
    if tokens > CHUNK_TOKENS {
        let whole = (1..=tokens / CHUNK_TOKENS).map(|chunk| chunk * CHUNK_TOKENS);
        let rest = !tokens.is_multiple_of(CHUNK_TOKENS);
        return whole.chain(rest.then_some(tokens)).collect();
    }
    if tokens <= 3 * DECODE_ROWS_MAX {
        return vec![tokens];
    }
    let first = 3 * tokens / 8;
    vec![first, first + 9 * tokens / 26, tokens]
}

impl Subject<'_> {
    /// Begins as a conversation does and ends where a reply would begin.
    fn built_in_ids(&self, len: usize) -> Vec<u32> {
        let vocabulary = self.model.graph.hparams.vocabulary;
        let mut ids = self.rendered();
        ids.retain(|id| (*id as usize) < vocabulary);
        if ids.is_empty() {
            // A step that has no divisor in common with most sizes goes all over the vocabulary.
            const STEP: usize = 7_919;
            let spread = (0..len).map(|i| ((i + 1) * STEP % vocabulary.max(1)) as u32);
            return spread.collect();
        }
        while ids.len() < len {
            ids.extend_from_within(..);
        }
        let end = ids.split_off(ids.len() - len / 4);
        ids.truncate(len - end.len());
        ids.extend(end);
        ids
    }

    fn rendered(&self) -> Vec<u32> {
        let tokenizer = self.tokenizer;
        if tokenizer.refusal().is_some() {
            return Vec::new();
        }
        let template = self.model.file.index().chat_template.as_deref();
        let messages = [json!({ "role": "user", "content": TEXT })];
        let format = ChatFormat::new(template, tokenizer.controls());
        let rendered = format.render(&RenderRequest::new(tokenizer, &messages));
        // A text that cannot be encoded is none: the ids are spread then.
        tokenizer
            .encode(&rendered.prompt, Ends::Chat)
            .unwrap_or_default()
    }
}
