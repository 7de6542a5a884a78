//! The operations, one file each: which kernels a step launches, with what.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod causal_conv;
pub(crate) mod delta_net;
pub(crate) mod embed;
pub(crate) mod experts;
pub(crate) mod gate;
pub(crate) mod gated_ffn;
pub(crate) mod linear;
pub(crate) mod logits;
pub(crate) mod part;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod scale;

use candor_arch::{Op, Pattern, Step};

use crate::device::Fault;
use crate::forward::Launch;
use crate::prepare::Prepare;

/// The patterns that the operations know.
pub(crate) const PATTERNS: &[Pattern] = &[
    Pattern::SharedInput,
    Pattern::AddNorm,
    Pattern::RopeAttention,
];

/// Looks up what a step needs.
pub(crate) fn prepare(p: &mut Prepare<'_>, step: &Step) -> Result<Box<dyn Launch>, Fault> {
    let nodes = &step.nodes[..];
    match step.pattern {
        Some(Pattern::SharedInput) => return linear::prepare(p, nodes),
        // The sum and its norm.
        Some(Pattern::AddNorm) => return add::prepare(p, nodes),
        // The rotated query, the rotated key, and the attention.
        Some(Pattern::RopeAttention) => return attention::prepare(p, nodes),
        None => {}
    }
    let prepare = match &p.node(nodes[0]).op {
        Op::Embed { .. } => embed::prepare,
        Op::RmsNorm { .. } => rms_norm::prepare,
        Op::Linear { .. } => linear::prepare,
        Op::Rope(_) => rope::prepare,
        Op::Attention { .. } => attention::prepare,
        Op::GatedFfn { .. } => gated_ffn::prepare,
        Op::Experts { .. } => experts::prepare,
        Op::Add => add::prepare,
        Op::Scale { .. } => scale::prepare,
        Op::Part { .. } => part::prepare,
        Op::Gate { .. } => gate::prepare,
        Op::CausalConv { .. } => causal_conv::prepare,
        Op::DeltaNet(_) => delta_net::prepare,
        Op::Logits { .. } => logits::prepare,
    };
    prepare(p, nodes)
}
