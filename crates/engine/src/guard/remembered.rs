//! Logits of the reference that are kept, so that a later load needs the device alone.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};

use super::compare::{Entries, KeptRow};
use super::probe::Probe;
use super::routing::{KeptRouting, SAMPLE};

/// What kept logits belong to. Where any part differs, they are of no use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The model file, as whoever keeps them tells files apart.
    pub file: String,
    /// The device by name and kind.
    pub device: String,
    /// Driver and kernels, and the text that was forwarded.
    pub fingerprint: String,
    /// The version of this program.
    pub version: String,
}

/// Keeps what a verdict rests on between runs of the program.
pub trait VerdictStore: Send + Sync {
    /// What was kept under this key.
    fn recall(&self, key: &Key) -> Option<Vec<u8>>;

    /// Keeps these bytes under the key. That it cannot be done costs time at the next load and
    /// nothing else, so nobody is told.
    fn keep(&self, key: &Key, bytes: &[u8]);
}

/// Where kept logits are, and what names the file there.
#[derive(Clone)]
pub struct VerdictMemory {
    /// Keeps them.
    pub store: Arc<dyn VerdictStore>,
    /// The model file: goes into [`Key::file`].
    pub file: String,
    /// The version of this program: goes into [`Key::version`].
    pub version: String,
}

impl fmt::Debug for VerdictMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerdictMemory")
            .field("file", &self.file)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// What the reference said to a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    ids: Vec<u32>,
    first_judged: usize,
    greedy: u32,
    /// One for each judged position, the greedy step last.
    rows: Vec<KeptRow>,
    /// What excuses by near ties of experts rest on, if one was asked for.
    routing: Option<KeptRouting>,
}

/// Why kept bytes are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RememberedError {
    /// They end too early, or go on behind their end.
    #[error("{found} bytes, {expected} expected")]
    Length {
        /// Bytes there are.
        found: usize,
        /// Bytes there should be.
        expected: usize,
    },
    /// They are something else, or of another version.
    #[error("not logits that this version kept")]
    Foreign,
    /// A number outside its bounds.
    #[error("{what} is {found}, {max} at most")]
    Bounds {
        /// Which.
        what: &'static str,
        /// As read.
        found: usize,
        /// The most.
        max: usize,
    },
    /// They were changed.
    #[error("the bytes were changed since they were written")]
    Changed,
}

/// What kept logits begin with. The number counts changes of the form, of the probe and of what is
/// kept of a row.
const MAGIC: [u8; 8] = *b"CandorF2";

/// Tokens of a probe that is kept: prompts longer than this are not.
const IDS_MAX: usize = 1 << 20;

/// Entries of a row that is kept; no vocabulary has more.
const VOCABULARY_MAX: usize = 1 << 24;

/// Best entries of a row, far above what is kept of one.
const BEST_MAX: usize = 1 << 12;

/// Routers of a model: one a layer.
const ROUTERS_MAX: usize = 1 << 12;

/// Experts of a router, far above those of any model.
const EXPERTS_MAX: usize = 1 << 16;

/// Nodes of all positions that ask for an excuse.
const NODES_MAX: usize = 1 << 24;

impl Remembered {
    pub(super) fn new(probe: &Probe, greedy: u32, rows: Vec<KeptRow>) -> Self {
        Self {
            ids: probe.ids().to_vec(),
            first_judged: probe.first_judged(),
            greedy,
            rows,
            routing: None,
        }
    }

    pub(super) fn set_routing(&mut self, routing: KeptRouting) {
        self.routing = Some(routing);
    }

    pub(super) fn routing(&self) -> Option<&KeptRouting> {
        self.routing.as_ref()
    }

    /// Whether it belongs to this probe, and is complete.
    pub(super) fn is_of(&self, probe: &Probe) -> bool {
        self.ids == probe.ids()
            && self.first_judged == probe.first_judged()
            && self.rows.len() == probe.judged()
    }

    /// What the reference likes best after the last token.
    pub(super) fn greedy(&self) -> u32 {
        self.greedy
    }

    /// The logits of a position.
    pub(super) fn row(&self, position: usize) -> Option<&KeptRow> {
        self.rows.get(position.checked_sub(self.first_judged)?)
    }

    /// To be kept in a file. All numbers are little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut put = |number: u32| out.extend(number.to_le_bytes());
        put(self.ids.len() as u32);
        put(self.first_judged as u32);
        put(self.greedy);
        put(self.rows.len() as u32);
        self.ids.iter().for_each(|id| put(*id));
        for row in &self.rows {
            put_row(row, &mut out);
        }
        put_routing(self.routing.as_ref(), &mut out);
        let sum = checksum(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// As kept.
    ///
    /// # Errors
    /// [`RememberedError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RememberedError> {
        let Some((body, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(RememberedError::Foreign);
        };
        if !body.starts_with(&MAGIC) {
            return Err(RememberedError::Foreign);
        }
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(RememberedError::Changed);
        }
        let mut reader = Reader {
            bytes: body,
            at: MAGIC.len(),
        };
        let n_ids = reader.count("the length of the probe", IDS_MAX)?;
        let first_judged = reader.count("the first position", n_ids)?;
        let greedy = reader.number()?;
        let n_rows = reader.count("the number of rows", n_ids + 1)?;
        let ids = (0..n_ids)
            .map(|_| reader.number())
            .collect::<Result<_, _>>()?;
        let rows = (0..n_rows)
            .map(|_| reader.row())
            .collect::<Result<_, _>>()?;
        let routing = reader.routing(n_ids + 1)?;
        if reader.at != body.len() {
            let (found, expected) = (bytes.len(), reader.at + sum.len());
            return Err(RememberedError::Length { found, expected });
        }
        Ok(Self {
            ids,
            first_judged,
            greedy,
            rows,
            routing,
        })
    }
}

fn put_row(row: &KeptRow, out: &mut Vec<u8>) {
    let (best, start, step) = match &row.entries {
        Entries::All => (&[][..], 0, 0),
        Entries::Some { best, start, step } => (&best[..], *start, *step),
    };
    let mut put = |number: u32| out.extend(number.to_le_bytes());
    put(row.vocabulary);
    put(row.argmax);
    put(row.lse.to_bits());
    put(start);
    put(step);
    put(best.len() as u32);
    best.iter().for_each(|id| put(*id));
    out.extend(
        row.values
            .iter()
            .flat_map(|value| value.to_bits().to_le_bytes()),
    );
}

fn put_routing(routing: Option<&KeptRouting>, out: &mut Vec<u8>) {
    let mut put = |number: usize| out.extend((number as u32).to_le_bytes());
    let Some(KeptRouting { numbers, nodes }) = routing else {
        return put(0);
    };
    put(numbers.len());
    for of_positions in numbers {
        put(of_positions.len());
        put(of_positions.first().map_or(0, Vec::len));
        for number in of_positions.iter().flatten() {
            put(number.to_bits() as usize);
        }
    }
    let mut keys: Vec<_> = nodes.keys().copied().collect();
    keys.sort_unstable();
    put(keys.len());
    for (position, node) in keys {
        let values = &nodes[&(position, node)];
        [position, node, values.len()]
            .into_iter()
            .for_each(&mut put);
        values.iter().for_each(|value| put(value.to_bits().into()));
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RememberedError> {
        let (found, expected) = (self.bytes.len(), self.at + N);
        let rest = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        let taken = rest.ok_or(RememberedError::Length { found, expected })?;
        self.at = expected;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u32, RememberedError> {
        self.take().map(u32::from_le_bytes)
    }

    fn count(&mut self, what: &'static str, max: usize) -> Result<usize, RememberedError> {
        let found = self.number()? as usize;
        if found > max {
            return Err(RememberedError::Bounds { what, found, max });
        }
        Ok(found)
    }

    fn row(&mut self) -> Result<KeptRow, RememberedError> {
        let vocabulary = self.count("the vocabulary", VOCABULARY_MAX)? as u32;
        let argmax = self.count("the best token", vocabulary as usize)? as u32;
        let lse = f32::from_bits(self.number()?);
        let (start, step) = (self.number()?, self.number()?);
        let n_best = self.count("the number of best tokens", BEST_MAX)?;
        let best = (0..n_best)
            .map(|_| self.number())
            .collect::<Result<_, _>>()?;
        let entries = match step {
            0 => Entries::All,
            _ => Entries::Some { best, start, step },
        };
        let n = entries.ids(vocabulary).count();
        if n == 0 {
            // Nothing to compare agrees with everything.
            return Err(RememberedError::Foreign);
        }
        let mut values = Vec::new();
        for _ in 0..n {
            let bits = self.take().map(u16::from_le_bytes)?;
            values.push(f16::from_bits(bits));
        }
        let inside = |id: u32| id < vocabulary;
        if let Some(found) = entries.ids(vocabulary).find(|id| !inside(*id)) {
            let (what, found, max) = ("a token", found as usize, vocabulary as usize);
            return Err(RememberedError::Bounds { what, found, max });
        }
        Ok(KeptRow {
            entries,
            values,
            lse,
            argmax,
            vocabulary,
        })
    }
}

impl Reader<'_> {
    fn routing(&mut self, positions: usize) -> Result<Option<KeptRouting>, RememberedError> {
        let n_routers = self.count("the number of routers", ROUTERS_MAX)?;
        if n_routers == 0 {
            return Ok(None);
        }
        let mut numbers = Vec::new();
        for _ in 0..n_routers {
            let n_positions = self.count("the positions of a router", positions)?;
            let n_experts = self.count("the number of experts", EXPERTS_MAX)?;
            if n_experts == 0 {
                // Nothing would be read for a position, so the file would not bound their number.
                return Err(RememberedError::Foreign);
            }
            let mut of_positions = Vec::new();
            for _ in 0..n_positions {
                let said = (0..n_experts).map(|_| self.number().map(f32::from_bits));
                of_positions.push(said.collect::<Result<_, _>>()?);
            }
            numbers.push(of_positions);
        }
        let mut nodes = HashMap::new();
        for _ in 0..self.count("the number of nodes", NODES_MAX)? {
            let position = self.count("the position of a node", positions)?;
            let node = self.count("a node", NODES_MAX)?;
            let n_values = self.count("the values of a node", SAMPLE)?;
            let value = |_| self.number().map(|bits| bf16::from_bits(bits as u16));
            let values = (0..n_values).map(value).collect::<Result<_, _>>()?;
            nodes.insert((position, node), values);
        }
        Ok(Some(KeptRouting { numbers, nodes }))
    }
}

/// FNV-1a over words of 8 bytes: against files that were cut or went bad, not against people.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const START: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let (words, rest) = bytes.as_chunks::<8>();
    let fold = |sum: u64, word: u64| (sum ^ word).wrapping_mul(PRIME).rotate_left(29);
    let sum = words
        .iter()
        .fold(START, |sum, word| fold(sum, u64::from_le_bytes(*word)));
    let sum = rest
        .iter()
        .fold(sum, |sum, byte| fold(sum, u64::from(*byte)));
    fold(sum, bytes.len() as u64)
}
