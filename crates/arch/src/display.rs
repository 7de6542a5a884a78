//! Graphs as text: what the golden snapshots hold, and what people compare.

use std::fmt;

use crate::features::RopeScaling;
use crate::graph::{
    Activation, Graph, KeyOrder, Node, Op, Rope, RopeStyle, Routing, Shares, StateLayout,
};

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.hparams;
        writeln!(
            f,
            "{}: {} layers, width {}, vocabulary {}, context {}",
            self.architecture, h.n_layers, h.width, h.vocabulary, h.context_length
        )?;
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "%{i} {} [{}] = ", node.name, node.width)?;
            self.write_op(f, node)?;
            writeln!(f)?;
        }
        for (layer, layout) in self.state.iter().enumerate() {
            writeln!(f, "state {layer}: {layout}")?;
        }
        Ok(())
    }
}

impl Graph {
    fn write_op(&self, f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
        let inputs: Vec<String> = node.inputs.iter().map(|i| format!("%{}", i.0)).collect();
        write!(f, "{}({})", node.op.name(), inputs.join(", "))?;
        for id in node.op.weights() {
            let weight = self.weight(id);
            let dims: Vec<String> = weight.dims.iter().map(usize::to_string).collect();
            write!(f, " {}[{}]", weight.name, dims.join("×"))?;
            if let Some(part) = weight.part {
                write!(f, " from row {} of {}", part.first, part.total)?;
            }
        }
        match &node.op {
            Op::RmsNorm { eps, .. } => write!(f, " eps {eps:e}"),
            Op::Rope(rope) => write!(f, " {rope}"),
            Op::Attention {
                n_heads,
                n_kv_heads,
                head_dim,
                scale,
                softcap,
                sinks: _,
            } => {
                write!(
                    f,
                    " heads {n_heads}/{n_kv_heads} of {head_dim} scale {scale}"
                )?;
                write_softcap(f, *softcap)
            }
            Op::GatedFfn {
                activation, inner, ..
            } => {
                write!(f, " {activation} inner {inner}")
            }
            Op::Experts {
                routing,
                inner,
                activation,
                ..
            } => write!(f, " {activation} inner {inner} {routing}"),
            Op::Logits { softcap, .. } => write_softcap(f, *softcap),
            Op::Scale { factor } => write!(f, " by {factor}"),
            Op::Part { period, start, len } => {
                write!(f, " {start}..{} of {period}", start + len)
            }
            Op::Gate { activation } => write!(f, " {activation}"),
            Op::CausalConv { taps, .. } => write!(f, " taps {taps}"),
            Op::DeltaNet(net) => write!(
                f,
                " heads {}/{} of {}, keys {} eps {:e}",
                net.n_value_heads,
                net.n_key_heads,
                net.state_size,
                match net.key_order {
                    KeyOrder::Grouped => "grouped",
                    KeyOrder::Cyclic => "cyclic",
                },
                net.eps
            ),
            Op::Embed { .. } | Op::Linear { .. } | Op::Add => Ok(()),
        }
    }
}

fn write_softcap(f: &mut fmt::Formatter<'_>, softcap: Option<f32>) -> fmt::Result {
    match softcap {
        Some(cap) => write!(f, " within {cap}"),
        None => Ok(()),
    }
}

impl fmt::Display for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = match self.style {
            RopeStyle::Adjacent => "adjacent",
            RopeStyle::Halves => "halves",
        };
        let (n_rot, head_dim, base) = (self.n_rot, self.head_dim, self.base);
        write!(f, "{style} {n_rot} of {head_dim} base {base}")?;
        match self.scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => write!(f, " linear {factor}"),
            RopeScaling::Yarn {
                factor,
                trained_context,
            } => write!(f, " yarn {factor} of {trained_context}"),
            RopeScaling::LongRope {
                trained_context,
                length,
            } => write!(f, " long from {trained_context} length {length}"),
        }
    }
}

impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "best {}", self.n_used)?;
        if self.shares == Shares::OfAll {
            f.write_str(" of all")?;
        }
        if self.scale != 1.0 {
            write!(f, " by {}", self.scale)?;
        }
        Ok(())
    }
}

impl fmt::Display for StateLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full {
                n_kv_heads,
                head_dim,
            } => write!(f, "full, {n_kv_heads} heads of {head_dim}"),
            Self::Window {
                tokens,
                n_kv_heads,
                head_dim,
            } => write!(f, "window {tokens}, {n_kv_heads} heads of {head_dim}"),
            Self::Recurrent {
                channels,
                taps,
                n_heads,
                state_size,
            } => write!(
                f,
                "recurrent, {channels} channels, {taps} taps, {n_heads} heads of {state_size}"
            ),
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silu => "silu",
            Self::Gelu => "gelu",
            Self::Sigmoid => "sigmoid",
            Self::ClampedSwiglu => "clamped swiglu",
        })
    }
}
