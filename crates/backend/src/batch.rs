//! What a session is fed and what it gives back.

/// One independent sequence inside a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub usize);

/// What a row computes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// A token id of the model's vocabulary.
    Token(u32),
}

/// What the caller wants to know of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Only that the row enters the state: a prompt token before the last.
    Nothing,
    /// The logits over the whole vocabulary.
    Logits,
    /// The `k` largest logits and the log of the sum of exponentials over all.
    Top {
        /// How many, at most the vocabulary.
        k: usize,
    },
    /// What the model made of the row before it becomes logits: the input of the output matrix.
    Hidden,
}

/// One token of one slot. Rows of one slot stand in the order of their positions, and the first
/// takes the slot's present position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose row it is.
    pub slot: SlotId,
    /// What goes in.
    pub feed: Feed,
    /// What is to come out.
    pub want: Want,
}

/// The rows of one forward. Their results do not depend on each other but through a slot's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In any mix of slots.
    pub rows: Vec<Row>,
}

impl Batch {
    /// Tokens of one slot of which only the last gives something.
    pub fn of_slot(slot: SlotId, tokens: &[u32], last: Want) -> Self {
        let end = tokens.len();
        let rows = tokens.iter().enumerate().map(|(i, &token)| Row {
            slot,
            feed: Feed::Token(token),
            want: if i + 1 == end { last } else { Want::Nothing },
        });
        Self {
            rows: rows.collect(),
        }
    }
}

/// What one row gave.
#[derive(Clone, Debug, PartialEq)]
pub enum RowOutput {
    /// One value per token of the vocabulary.
    Logits(Vec<f32>),
    /// The largest logits, best first, ties to the lower id.
    Top {
        /// Token id and logit.
        best: Vec<(u32, f32)>,
        /// Log of the sum of exponentials over the vocabulary.
        lse: f32,
    },
    /// One value per element of the row.
    Hidden(Vec<f32>),
}

/// The outputs of a forward, in the order of the rows that wanted one. Reused between forwards, so
/// that a token costs no allocation of the size of the vocabulary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// One entry per row whose [`Want`] is not `Nothing`.
    pub outputs: Vec<RowOutput>,
}
