//! The rules by which a device is accepted, as a table. Pure.
//!
//! Each rule alone rejects something that no other one does; a test takes them out one at a time
//! and shows what would be accepted without.

use candor_backend::{Arithmetic, Numerics};

use super::compare::Measure;
use super::verdict::Path;

/// The seed's limits: what it rejected, and what it rejected where both sides like different tokens
/// best. They are the outer ones: ours lie within, which is checked when this is compiled.
const COSINE_OUTER: f64 = 0.98;

/// What is allowed of one arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Least cosine of the centred logits.
    pub(crate) cosine: f64,
    /// Largest divergence at one position, in nats.
    pub(crate) kl: f64,
    /// By how much the reference may like its token better than the candidate's, in nats.
    pub(crate) margin: f64,
    /// Largest mean of the divergences, in nats.
    pub(crate) mean_kl: f64,
    /// Relative distance of a node's values from which on it counts as different.
    pub(crate) node: f64,
    /// Relative distance of what goes into a router, and of its numbers without what they have in
    /// common, up to which another choice of experts is a near tie.
    pub(crate) router: f64,
    /// Up to which distance of the numbers of two experts, in units of the spread of all of them on
    /// the reference's side, it is one. A device whose numbers are that right exchanges no others.
    pub(crate) router_gap: f64,
    /// Least cosine where a near tie went the other way: one of several experts is another, which
    /// may count for as much.
    pub(crate) cosine_tied: f64,
    /// Share of the positions that near ties may excuse. Where it is more, what is judged is no
    /// longer the device.
    pub(crate) excused: f64,
}

/// float32 activations and state: what is left is the order of the sums. No device of that kind
/// exists yet; the processor against itself gives a cosine of 1 and a divergence below 1e-6.
const OF_F32: Limits = Limits {
    cosine: 0.9999,
    kl: 0.001,
    margin: 0.05,
    mean_kl: 0.0002,
    node: 0.002,
    router: 0.002,
    router_gap: 0.005,
    cosine_tied: 0.5,
    excused: 0.05,
};

/// 16-bit activations and state. Measured with the kernels as they ship on the simulated card, over
/// a model whose weights are not quantised (so that replies too are written that finely): least
/// cosine 0.999998, largest divergence 0.00002. Real models and real cards may need more, so the
/// limits are a third of the coarser ones and not what that would allow.
///
/// Near ties of experts there: 5 positions of 289 at most, routers off by 0.036, gaps of 0.035; in
/// Qwen3-Next, whose state carries what a tie left on from position to position, 16 positions, 0.081
/// and 0.099. The limits are half as much again.
const OF_F16: Limits = Limits {
    cosine: 0.995,
    kl: 0.05,
    margin: 0.5,
    mean_kl: 0.005,
    node: 0.03,
    router: 0.12,
    router_gap: 0.15,
    cosine_tied: 0.5,
    excused: 0.1,
};

/// Anything coarser. Measured with 8-bit activations with a scale for every 32 and 16-bit state on
/// the processor, 289 positions each (`guard/tests/measured.rs`, `docs/f2-guard.md`):
///
/// | | cosine, least | divergence, most | mean | same token |
/// | --- | --- | --- | --- | --- |
/// | SmolLM2 135M Q4_1 | 0.9973 | 0.038 | 0.0036 | 96.5 % |
/// | Gemma 3 270M Q4_K_M | 0.9988 | 0.020 | 0.0021 | 97.9 % |
/// | tiny random models, dense | 0.9992 | 0.017 | 0.0025 | 96.9 % |
/// | tiny random hybrid | 0.9957 | 0.059 | 0.0053 | 94.1 % |
/// | tiny random mixture and hybrid, where no tie is near | – | – | 0.0154 | – |
///
/// The limits leave a right device about four times what real models were seen to need.
///
/// Near ties of experts, on the same path: 1 position of 289 in the Qwen3 MoE with routers off by
/// 0.003, 33 in gpt-oss (0.114), 67 in the hybrid mixture (0.179). The gaps were 0.002, 0.230 and
/// 0.311; one of 0.489 came with numbers 0.199 apart, which the limits just hold. The least cosine
/// there is 0.79; a tiny Mixtral of two experts a row gave 0.63 on the simulated card.
const OF_COARSE: Limits = Limits {
    cosine: 0.985,
    kl: 0.15,
    margin: 1.0,
    mean_kl: 0.02,
    node: 0.1,
    router: 0.2,
    router_gap: 0.5,
    cosine_tied: 0.5,
    excused: 0.25,
};

const _: () = assert!(OF_F32.cosine > COSINE_OUTER);
const _: () = assert!(OF_F16.cosine > COSINE_OUTER);
const _: () = assert!(OF_COARSE.cosine > COSINE_OUTER);

/// Of the arithmetic of a path.
pub(crate) fn limits(numerics: Numerics, path: Path) -> &'static Limits {
    let arithmetic = match path {
        Path::Prefill => numerics.prefill,
        Path::Decode | Path::Greedy => numerics.decode,
    };
    match (arithmetic, numerics.kv) {
        (Arithmetic::F32, Arithmetic::F32) => &OF_F32,
        (Arithmetic::F32 | Arithmetic::F16, Arithmetic::F32 | Arithmetic::F16) => &OF_F16,
        _ => &OF_COARSE,
    }
}

/// What was seen of a candidate.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) numerics: Numerics,
    pub(crate) positions: Vec<Seen>,
    /// Spots that were to be judged.
    pub(crate) asked: usize,
    /// The next one that would have been judged.
    pub(crate) next: Spot,
    pub(crate) best: Option<OwnBest>,
}

/// Where a row of logits is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) position: usize,
    pub(crate) path: Path,
    /// The least context that it was computed for; 0 for what fits.
    pub(crate) way: usize,
}

/// What was seen at one spot.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) spot: Spot,
    pub(crate) row: Row,
    /// Whether a near tie of experts explains a difference.
    pub(crate) excused: bool,
}

/// A row of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Row {
    Compared(Measure),
    /// It has another length.
    Length {
        found: usize,
        expected: usize,
    },
    /// It holds something that is no number.
    NotFinite,
}

/// The same forward asked for its logits, and for its best token alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnBest {
    pub(crate) spot: Spot,
    pub(crate) by_logits: Option<u32>,
    pub(crate) by_device: Option<u32>,
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Broken {
    pub(crate) spot: Spot,
    pub(crate) rule: &'static str,
    pub(crate) found: String,
}

/// One rule.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// The first spot that breaks it, and what was found there.
    pub(crate) broken: fn(&Evidence) -> Found,
}

/// All rules.
pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "every position is there",
        broken: |e| {
            let missing = e.positions.len() < e.asked;
            let found = || format!("{} of {} positions", e.positions.len(), e.asked);
            missing.then(|| (e.next, found()))
        },
    },
    Rule {
        name: "every logit is there",
        broken: |e| {
            first(e, |seen| match seen.row {
                Row::Length { found, expected } => Some(format!("{found} of {expected} logits")),
                _ => None,
            })
        },
    },
    Rule {
        name: "logits are numbers",
        broken: |e| {
            first(e, |seen| {
                (seen.row == Row::NotFinite).then(|| String::from("a value that is no number"))
            })
        },
    },
    Rule {
        name: "cosine",
        broken: |e| strictly(e, |m, limits| below("cosine", m.cosine, limits.cosine)),
    },
    Rule {
        name: "divergence",
        broken: |e| strictly(e, |m, limits| above("divergence", m.kl, limits.kl)),
    },
    Rule {
        name: "best token",
        broken: |e| strictly(e, |m, limits| above("margin", m.margin, limits.margin)),
    },
    Rule {
        name: "mean divergence",
        broken: mean_divergence,
    },
    Rule {
        name: "cosine at a near tie",
        broken: |e| {
            measured(e, |m, seen| {
                let limits = limits(e.numerics, seen.spot.path);
                below("cosine", m.cosine, limits.cosine_tied)
            })
        },
    },
    Rule {
        name: "few near ties",
        broken: |e| {
            let excused = e.positions.iter().filter(|seen| seen.excused);
            let share = e
                .positions
                .iter()
                .map(|s| limits(e.numerics, s.spot.path).excused);
            let share = share.sum::<f64>() / e.positions.len().max(1) as f64;
            let most = (share * e.asked as f64) as usize;
            let one_more = excused.clone().nth(most)?;
            let found = format!("{} positions excused, {most} at most", excused.count());
            Some((one_more.spot, found))
        },
    },
    Rule {
        name: "own best token",
        broken: |e| {
            let best = e.best?;
            let found = format!("{:?} of the logits {:?}", best.by_device, best.by_logits);
            (best.by_device != best.by_logits).then_some((best.spot, found))
        },
    },
];

/// The first thing that one of these rules rejects, by position; of several the first rule.
pub(crate) fn judge<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    evidence: &Evidence,
) -> Option<Broken> {
    let broken = rules.into_iter().filter_map(|rule| {
        let (spot, found) = (rule.broken)(evidence)?;
        Some(Broken {
            spot,
            rule: rule.name,
            found,
        })
    });
    broken.min_by_key(|broken| broken.spot.position)
}

/// Whether a position would be rejected if nothing explains it, but not by an outer limit.
pub(crate) fn asks_for_an_excuse(numerics: Numerics, seen: &Seen) -> bool {
    let evidence = Evidence {
        numerics,
        positions: vec![seen.clone()],
        asked: 1,
        next: seen.spot,
        best: None,
    };
    let excused = Evidence {
        positions: vec![Seen {
            excused: true,
            ..seen.clone()
        }],
        // One of one would be too many.
        asked: usize::MAX,
        ..evidence.clone()
    };
    let outer = RULES.iter().skip(1);
    judge(RULES, &evidence).is_some() && judge(outer, &excused).is_none()
}

fn mean_divergence(e: &Evidence) -> Found {
    let strict = || e.positions.iter().filter(|seen| !seen.excused);
    let (mut sum, mut limit, mut n) = (0.0, 0.0, 0.0);
    let mut worst: Option<(&Seen, f64)> = None;
    for seen in strict() {
        let Row::Compared(m) = seen.row else {
            continue;
        };
        sum += m.kl;
        limit += limits(e.numerics, seen.spot.path).mean_kl;
        n += 1.0;
        if worst.is_none_or(|(_, kl)| m.kl > kl) {
            worst = Some((seen, m.kl));
        }
    }
    let (seen, _) = worst?;
    let found = above("mean divergence", sum / n, limit / n)?;
    Some((seen.spot, found))
}

/// Where a rule is broken, and what was found there.
type Found = Option<(Spot, String)>;

fn first(e: &Evidence, rule: impl Fn(&Seen) -> Option<String>) -> Found {
    let found = |seen: &Seen| Some((seen.spot, rule(seen)?));
    e.positions.iter().find_map(found)
}

/// Of every position that was compared.
fn measured(e: &Evidence, rule: impl Fn(&Measure, &Seen) -> Option<String>) -> Found {
    first(e, |seen| match &seen.row {
        Row::Compared(measure) => rule(measure, seen),
        Row::Length { .. } | Row::NotFinite => None,
    })
}

/// Of those that nothing excuses.
fn strictly(e: &Evidence, rule: impl Fn(&Measure, &Limits) -> Option<String>) -> Found {
    measured(e, |measure, seen| {
        let limits = limits(e.numerics, seen.spot.path);
        rule(measure, limits).filter(|_| !seen.excused)
    })
}

/// Rejects NaN too.
fn below(what: &str, found: f64, limit: f64) -> Option<String> {
    let holds = found >= limit;
    (!holds).then(|| format!("{what} {found:.6}, {limit} at least"))
}

/// Rejects NaN too.
fn above(what: &str, found: f64, limit: f64) -> Option<String> {
    let holds = found <= limit;
    (!holds).then(|| format!("{what} {found:.6}, {limit} at most"))
}
