//! What the guard says, and what it saw.

use std::fmt;

use candor_backend::{DeviceInfo, DeviceKind, Numerics};

/// When a device is held against the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// When the model is loaded, on a built-in text: proven before the first token.
    #[default]
    Probe,
    /// On the first prompt, before its reply.
    FirstPrompt,
    /// On every prompt, before its reply: what the seed did.
    EveryPrompt,
}

impl Mode {
    /// As it stands in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::FirstPrompt => "first-prompt",
            Self::EveryPrompt => "every-prompt",
        }
    }
}

/// Tells the verdicts of one engine apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerdictId(pub u64);

/// What computed the tokens of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// What kind of device.
    pub device: DeviceKind,
    /// The verdict by which it may; none for the reference, and for what was never judged.
    pub verdict: Option<VerdictId>,
    /// Tokens that another device had written before this one took over.
    pub moved_at: Option<usize>,
}

impl Default for Served {
    /// The reference on the processor.
    fn default() -> Self {
        Self {
            device: DeviceKind::Cpu,
            verdict: None,
            moved_at: None,
        }
    }
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Reference and candidate were both run.
    Computed,
    /// The candidate was run against logits of the reference that were kept.
    Remembered,
    /// Nothing was compared. Only measurements can have that.
    Skipped {
        /// Why not.
        reason: &'static str,
    },
}

/// Which way of computing a position was judged on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Many rows together.
    Prefill,
    /// A few rows, or one.
    Decode,
    /// The step after the last token, with the token that the reference chose.
    Greedy,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Greedy => "greedy step",
        })
    }
}

/// What was compared, and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Which verdict.
    pub id: VerdictId,
    /// When the device is judged.
    pub mode: Mode,
    /// When it was judged, in milliseconds since 1970.
    pub judged_ms: i64,
    /// What it rests on.
    pub basis: Basis,
    /// What was judged.
    pub device: DeviceInfo,
    /// What it computes with.
    pub numerics: Numerics,
    /// Positions that were judged, the greedy step among them.
    pub positions: usize,
    /// Positions that were to be judged.
    pub asked: usize,
    /// The last position that was judged, counted from 0.
    pub reach: usize,
    /// Forwards of a few rows that were repeated in the way in which longer contexts are computed.
    pub ways: usize,
    /// The lowest cosine between the centred logits of both sides.
    pub min_cosine: f64,
    /// The largest divergence of the probabilities, in nats.
    pub max_kl: f64,
    /// The mean of the divergences.
    pub mean_kl: f64,
    /// Share of the positions at which both like the same token best.
    pub argmax_agreement: f64,
    /// Positions that were measured less strictly, because a router had two experts all but tied.
    pub near_ties: usize,
    /// How far the numbers of those routers were from the reference's at most, in proportion.
    pub tie_distance: f64,
    /// How far the numbers of the experts that were exchanged lay apart at most on the reference's
    /// side, in units of the spread of all of its router's numbers.
    pub tie_gap: f64,
    /// Where it was rejected first.
    pub first_bad: Option<FirstBad>,
    /// Time of the reference; 0 where its logits were remembered.
    pub reference_ms: f64,
    /// Time of the candidate.
    pub candidate_ms: f64,
}

/// The first position that a rule rejects.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstBad {
    /// Counted from 0; that of the greedy step is the length of the probe.
    pub position: usize,
    /// How it was computed.
    pub path: Path,
    /// The length of context in whose way it was computed, where that was another one than fits.
    pub way: Option<usize>,
    /// The name of the rule.
    pub rule: &'static str,
    /// What the rule saw, in words.
    pub found: String,
    /// Cosine there; none where there is none.
    pub cosine: Option<f64>,
    /// Divergence there; none where there is none.
    pub kl: Option<f64>,
    /// What the reference likes best there.
    pub reference_token: Option<u32>,
    /// What the candidate likes best there.
    pub candidate_token: Option<u32>,
    /// Where in the graph it begins.
    pub located: Located,
}

/// Where in the graph two computations part.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// The first node whose values differ, and those after it, in the order of the graph.
    Nodes(Vec<NodeDistance>),
    /// Taken step by step the candidate is right: the fault is in how the steps run together.
    OnlyTogether,
    /// It could not be looked for.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Located {
    /// The name of the first node that differs.
    pub fn first(&self) -> Option<&str> {
        match self {
            Self::Nodes(nodes) => nodes.first().map(|node| node.node.as_str()),
            Self::OnlyTogether | Self::Unknown { .. } => None,
        }
    }
}

/// How far the values of a node are from the reference's.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDistance {
    /// Its dotted name.
    pub node: String,
    /// The length of the difference over the length of the reference's values.
    pub distance: f64,
    /// What it may be there.
    pub limit: f64,
}

/// Why nothing was judged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotJudged {
    /// Somebody stopped it.
    #[error("the check was stopped")]
    Stopped,
    /// The reference did not open, or failed.
    #[error("the reference failed: {reason}")]
    Reference {
        /// What it said.
        reason: String,
    },
    /// The device failed.
    #[error("the device failed: {reason}")]
    Candidate {
        /// What it said.
        reason: String,
    },
    /// Too few tokens to judge anything by.
    #[error("the check needs {needed} tokens, the context holds {found}")]
    TooShort {
        /// Tokens there are.
        found: usize,
        /// Tokens it takes.
        needed: usize,
    },
}

impl Report {
    /// In one line.
    pub fn headline(&self) -> String {
        match (&self.first_bad, &self.basis) {
            (Some(bad), _) => {
                let node = bad.located.first();
                let at = node.map_or_else(String::new, |node| format!(" at {node}"));
                format!(
                    "its results differ{at} (position {}, {}{})",
                    bad.position,
                    bad.path,
                    in_a_way(bad.way)
                )
            }
            (None, Basis::Skipped { reason }) => format!("never compared: {reason}"),
            (None, Basis::Computed | Basis::Remembered) => format!(
                "agrees on {} positions (lowest cosine {:.4})",
                self.positions, self.min_cosine
            ),
        }
    }
}

fn in_a_way(way: Option<usize>) -> String {
    way.map_or_else(String::new, |way| format!(" as in a context of {way}"))
}

/// For a report that somebody copies.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let basis = match &self.basis {
            Basis::Computed => String::from("computed"),
            Basis::Remembered => String::from("against remembered logits"),
            Basis::Skipped { reason } => format!("skipped: {reason}"),
        };
        let verdict = if self.first_bad.is_some() {
            "rejected"
        } else {
            "accepted"
        };
        writeln!(f, "{verdict}: {}", self.headline())?;
        writeln!(f, "device: {} ({})", self.device.name, self.device.isa)?;
        writeln!(f, "mode: {}, {basis}", self.mode.name())?;
        let Numerics {
            prefill,
            decode,
            kv,
        } = self.numerics;
        writeln!(
            f,
            "arithmetic: prefill {prefill:?}, decode {decode:?}, keys and values {kv:?}"
        )?;
        writeln!(f, "positions: {} of {}", self.positions, self.asked)?;
        writeln!(f, "repeated as in longer contexts: {} times", self.ways)?;
        writeln!(f, "lowest cosine: {:.6}", self.min_cosine)?;
        writeln!(
            f,
            "divergence: {:.6} at most, {:.6} on average",
            self.max_kl, self.mean_kl
        )?;
        writeln!(f, "same best token: {:.1} %", 100.0 * self.argmax_agreement)?;
        writeln!(
            f,
            "near ties of experts: {} (routers off by {:.4} at most, gaps of {:.4})",
            self.near_ties, self.tie_distance, self.tie_gap
        )?;
        writeln!(
            f,
            "time: reference {:.0} ms, device {:.0} ms",
            self.reference_ms, self.candidate_ms
        )?;
        match &self.first_bad {
            Some(bad) => bad.fmt(f),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FirstBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "first bad: position {} ({}{}), rule {}: {}",
            self.position,
            self.path,
            in_a_way(self.way),
            self.rule,
            self.found
        )?;
        if let (Some(reference), Some(candidate)) = (self.reference_token, self.candidate_token) {
            writeln!(
                f,
                "best tokens there: reference {reference}, device {candidate}"
            )?;
        }
        match &self.located {
            Located::Nodes(nodes) => nodes.iter().try_for_each(|node| {
                writeln!(
                    f,
                    "{}: distance {:.4} (limit {:.4})",
                    node.node, node.distance, node.limit
                )
            }),
            Located::OnlyTogether => {
                writeln!(
                    f,
                    "step by step it is right: the fault is in how the steps run together"
                )
            }
            Located::Unknown { reason } => writeln!(f, "not located: {reason}"),
        }
    }
}
