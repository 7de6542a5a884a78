//! The operations, one file each: which kernels a step launches, with what.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod causal_conv;
pub(crate) mod delta_net;
pub(crate) mod embed;
pub(crate) mod experts;
pub(crate) mod flat;
pub(crate) mod gate;
pub(crate) mod gated_ffn;
pub(crate) mod linear;
pub(crate) mod logits;
pub(crate) mod part;
mod products;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod scale;

use candor_arch::{Graph, Op, Pattern, Step, WeightKind};
use candor_backend::Unsupported;
use candor_modelfile::Index;

use crate::device::Fault;
use crate::forward::Launch;
use crate::prepare::Prepare;
use crate::ptx;

/// The patterns that the operations know.
pub(crate) const PATTERNS: &[Pattern] = &[
    Pattern::SharedInput,
    Pattern::AddNorm,
    Pattern::RopeAttention,
    Pattern::NormRopeAttention,
];

/// Looks up what a step needs.
pub(crate) fn prepare(p: &mut Prepare<'_>, step: &Step) -> Result<Box<dyn Launch>, Fault> {
    let nodes = &step.nodes[..];
    match step.pattern {
        Some(Pattern::SharedInput) => return linear::prepare(p, nodes),
        // The sum and its norm.
        Some(Pattern::AddNorm) => return add::prepare(p, nodes),
        // The query and the key on their way through norms and rotations, then the attention.
        Some(Pattern::RopeAttention | Pattern::NormRopeAttention) => {
            return attention::prepare(p, nodes);
        }
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

/// What of a model no kernel computes.
pub(crate) fn unsupported(graph: &Graph, index: &Index) -> Vec<Unsupported> {
    let mut missing = Vec::new();
    let mut add = |it: Unsupported| {
        if !missing.contains(&it) {
            missing.push(it);
        }
    };
    for node in &graph.nodes {
        if let Op::Attention { head_dim, .. } = node.op
            && !attention::fits(head_dim)
        {
            add(Unsupported::Op("attention with heads of this size"));
        }
        for weight in node.op.weights() {
            let weight = graph.weight(weight);
            let quant = index.tensor(&weight.name).map(|tensor| tensor.quant);
            let quant = quant.filter(|_| weight.kind == WeightKind::Matrix);
            let Some((stem, quant)) = per_type(&node.op).zip(quant) else {
                continue;
            };
            let module = format!("{stem}_{}", quant.name.to_ascii_lowercase());
            if ptx::text(&module, OLDEST).is_none() {
                add(Unsupported::Type(quant.name.to_owned()));
            }
        }
    }
    missing
}

/// Every module is there for it if it is there at all.
const OLDEST: (i32, i32) = (7, 5);

/// The first word of the modules of an operation that there are for every storage type.
fn per_type(op: &Op) -> Option<&'static str> {
    match op {
        Op::Embed { .. } => Some("embed"),
        Op::Linear { .. } | Op::GatedFfn { .. } | Op::Logits { .. } => Some("linear"),
        Op::Experts { .. } => Some("experts"),
        _ => None,
    }
}
