//! Graphs as text: what the golden snapshots hold, and what people compare.

use std::fmt;

use crate::features::RopeScaling;
use crate::graph::{Activation, Graph, KeyOrder, Node, Op, RopeStyle, StateLayout};

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
        }
        match &node.op {
            Op::RmsNorm { eps, .. } => write!(f, " eps {eps:e}"),
            Op::Rope(rope) => {
                let style = match rope.style {
                    RopeStyle::Adjacent => "adjacent",
                    RopeStyle::Halves => "halves",
                };
                write!(
                    f,
                    " {style} {} of {} base {}",
                    rope.n_rot, rope.head_dim, rope.base
                )?;
                match rope.scaling {
                    RopeScaling::None => Ok(()),
                    RopeScaling::Linear { factor } => write!(f, " linear {factor}"),
                    RopeScaling::Yarn {
                        factor,
                        trained_context,
                    } => write!(f, " yarn {factor} of {trained_context}"),
                }
            }
            Op::Attention {
                n_heads,
                n_kv_heads,
                head_dim,
                scale,
            } => {
                write!(
                    f,
                    " heads {n_heads}/{n_kv_heads} of {head_dim} scale {scale}"
                )
            }
            Op::GatedFfn {
                activation, inner, ..
            } => {
                write!(f, " {activation} inner {inner}")
            }
            Op::Experts {
                n_used,
                inner,
                activation,
                ..
            } => write!(f, " {activation} inner {inner} best {n_used}"),
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
            Op::Embed { .. } | Op::Linear { .. } | Op::Add | Op::Logits { .. } => Ok(()),
        }
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
        })
    }
}
