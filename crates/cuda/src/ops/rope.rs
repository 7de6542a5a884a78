//! Rope: turns every head by the angle of the row's position; alone, or on the way of query, key
//! and value to the attention, in one launch with the heads' norms and the append to the state.

use candor_arch::{NodeId, Op, Rope, RopeAngles, RopeStyle};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Prepare, StepPtrs};
use crate::state::KvPlace;

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Rope(rope) = node.op else {
        unreachable!("only rotations come here");
    };
    let heads = Heads {
        x: Some(p.value(node.inputs[0])),
        turned: Some(p.value(nodes[0])),
        ..Heads::default()
    };
    let turns = Turns::prepare(p, Some(&rope));
    let it = Append {
        kernel: kernel(p)?,
        step: p.step,
        q: heads,
        k: Heads::default(),
        v: None,
        turns,
        kv: NOWHERE,
        n_heads: node.width / rope.head_dim,
        head_dim: rope.head_dim,
    };
    Ok(Box::new(it))
}

fn kernel(p: &Prepare<'_>) -> Result<Kernel, Fault> {
    p.kernel("rope", "rope_append")
}

/// No pages: nothing is appended.
const NOWHERE: KvPlace = KvPlace {
    keys: DevicePtr(0),
    values: DevicePtr(0),
    pages: DevicePtr(0),
    pages_max: 0,
    n_kv_heads: 0,
    head_dim: 0,
    window: 0,
};

/// The heads of query or key, and where they go on the way; nowhere where nothing is said.
#[derive(Clone, Copy, Debug, Default)]
struct Heads {
    x: Option<DevicePtr>,
    /// Of their norms, with what is added to the mean of the squares.
    weight: Option<(DevicePtr, f32)>,
    normed: Option<DevicePtr>,
    turned: Option<DevicePtr>,
}

/// The heads of one attention, on their way from the projections.
pub(super) struct Append {
    kernel: Kernel,
    step: StepPtrs,
    q: Heads,
    k: Heads,
    v: Option<DevicePtr>,
    turns: Turns,
    kv: KvPlace,
    n_heads: usize,
    head_dim: usize,
}

impl Append {
    /// Of the nodes of a step that ends with an attention: the norms of query and key, their
    /// rotations, the attention; or without the norms; or the attention alone.
    pub(super) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Self, Fault> {
        let Some((mixed, before)) = nodes.split_last() else {
            unreachable!("a step has a node");
        };
        let mixed = p.node(*mixed);
        let layer = mixed.layer.expect("attention belongs to a layer");
        let kv = p.kv(layer);
        let (q, k) = match before {
            [] => (Heads::default(), of_input(p, mixed.inputs[1])),
            [q, k] => (turned(p, *q), turned(p, *k)),
            [q_norm, k_norm, q, k] => (normed(p, *q_norm, *q), normed(p, *k_norm, *k)),
            _ => unreachable!("no pattern has other nodes before the attention"),
        };
        let rope = before.last().map(|id| match &p.node(*id).op {
            Op::Rope(rope) => rope,
            _ => unreachable!("the patterns have rotations before the attention"),
        });
        let n_heads = match rope {
            Some(_) => mixed.width / kv.head_dim,
            None => 0,
        };
        Ok(Self {
            kernel: kernel(p)?,
            step: p.step,
            q,
            k,
            v: Some(p.value(mixed.inputs[2])),
            turns: Turns::prepare(p, rope),
            kv,
            n_heads,
            head_dim: kv.head_dim,
        })
    }
}

fn of_input(p: &Prepare<'_>, id: NodeId) -> Heads {
    Heads {
        x: Some(p.value(id)),
        ..Heads::default()
    }
}

fn turned(p: &Prepare<'_>, id: NodeId) -> Heads {
    Heads {
        turned: Some(p.value(id)),
        ..of_input(p, p.node(id).inputs[0])
    }
}

fn normed(p: &Prepare<'_>, norm: NodeId, turned: NodeId) -> Heads {
    let Op::RmsNorm { weight, eps } = p.node(norm).op else {
        unreachable!("the pattern begins with the norms");
    };
    Heads {
        weight: Some((p.vector(weight).ptr, eps)),
        normed: Some(p.value(norm)),
        turned: Some(p.value(turned)),
        ..of_input(p, p.node(norm).inputs[0])
    }
}

/// Heads of a block: a warp each.
const HEADS: usize = 4;
const THREADS: u32 = 128;

impl Launch for Append {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let weight = |heads: &Heads| heads.weight.map(|(ptr, _)| ptr);
        let eps = self.k.weight.map_or(0.0, |(_, eps)| eps);
        let args = Args::new()
            .ptr_or_null(self.q.x)
            .ptr_or_null(self.k.x)
            .ptr_or_null(self.v)
            .ptr_or_null(weight(&self.q))
            .ptr_or_null(weight(&self.k))
            .f32(eps)
            .ptr_or_null(self.q.normed)
            .ptr_or_null(self.k.normed)
            .ptr_or_null(self.q.turned)
            .ptr_or_null(self.k.turned)
            .ptr(self.turns.coarse)
            .ptr(self.turns.fine)
            .size(self.turns.pairs)
            .i32(self.turns.style)
            .step(&self.step)
            .kv(&self.kv)
            .size(self.n_heads)
            .size(self.head_dim);
        let heads = self.n_heads + 2 * self.kv.n_kv_heads;
        let grid = Grid::of3([heads.div_ceil(HEADS), f.rows, 1], THREADS);
        f.device.launch(&self.kernel, grid, args)
    }
}

/// The angles of one rotation, on the device.
struct Turns {
    coarse: DevicePtr,
    fine: DevicePtr,
    pairs: usize,
    /// As the kernel numbers them.
    style: i32,
}

/// From one entry of the coarse table to the next; as many entries has the fine one.
const ANGLE_STEPS: usize = 256;

impl Turns {
    fn prepare(p: &mut Prepare<'_>, rope: Option<&Rope>) -> Self {
        let Some(rope) = rope else {
            return Self {
                coarse: DevicePtr(0),
                fine: DevicePtr(0),
                pairs: 0,
                style: 0,
            };
        };
        let ctx_len = p.options.ctx_len;
        let angles = RopeAngles::new(rope, ctx_len, |id| p.weights.host_vector(id));
        let (coarse, fine) = tables(&angles, ctx_len);
        Self {
            coarse: p.constant(coarse),
            fine: p.constant(fine),
            pairs: angles.pairs(),
            style: match rope.style {
                RopeStyle::Adjacent => 0,
                RopeStyle::Halves => 1,
            },
        }
    }
}

/// Cosine and sine, `[entry][pair][2]`: of every 256th position, with the length of the rotated
/// values; of the 256 from 0 on.
fn tables(angles: &RopeAngles, ctx_len: usize) -> (Vec<f32>, Vec<f32>) {
    let coarse = (0..ctx_len.div_ceil(ANGLE_STEPS))
        .flat_map(|entry| angles.turns(entry * ANGLE_STEPS))
        .flat_map(<[f32; 2]>::from);
    let fine = (0..ANGLE_STEPS)
        .flat_map(|entry| angles.unit_turns(entry))
        .flat_map(<[f32; 2]>::from);
    (coarse.collect(), fine.collect())
}

#[cfg(test)]
mod tests {
    use candor_arch::RopeScaling;

    use super::*;

    /// What the kernel makes of the two entries against the angle itself.
    #[test]
    fn two_entries_give_the_turn_of_their_sum() {
        let rope = Rope {
            style: RopeStyle::Halves,
            head_dim: 128,
            n_rot: 128,
            base: 1e6,
            scaling: RopeScaling::Yarn {
                factor: 4.0,
                trained_context: 32_768,
            },
            factors: None,
            long_factors: None,
        };
        let ctx_len = 131_072;
        let angles = RopeAngles::new(&rope, ctx_len, |_| unreachable!("it has no factors"));
        let (coarse, fine) = tables(&angles, ctx_len);
        let entry = |table: &[f32], at: usize, pair: usize| -> [f32; 2] {
            let at = 2 * (at * angles.pairs() + pair);
            [table[at], table[at + 1]]
        };
        for position in [0, 1, 255, 256, 4_097, 70_001, ctx_len - 1] {
            for (pair, (cos, sin)) in angles.turns(position).enumerate() {
                let [a, b] = entry(&coarse, position / ANGLE_STEPS, pair);
                let [c, d] = entry(&fine, position % ANGLE_STEPS, pair);
                let off = (a * c - b * d - cos).abs().max((a * d + b * c - sin).abs());
                assert!(
                    off < 3e-7,
                    "position {position}, pair {pair}: off by {off:e}"
                );
            }
        }
    }
}
