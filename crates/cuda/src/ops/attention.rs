//! Attention over the pages of the state, whose new rows are appended first: for few rows in parts
//! of the context that are merged, for many rows on the tensor cores.

use candor_arch::{NodeId, Op};

use super::rope::Append;
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{DECODE_ROWS_MAX, Forward, Launch, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Panels, Prepare, StepPtrs};
use crate::state::KvPlace;

/// Values of a head: as many as the kernels have room for, in 16-byte pieces.
const HEAD_DIM_MAX: usize = 256;
const HEAD_DIM_STEP: usize = 8;

/// Whether there are kernels for heads of so many values.
pub(crate) fn fits(head_dim: usize) -> bool {
    head_dim <= HEAD_DIM_MAX && head_dim.is_multiple_of(HEAD_DIM_STEP)
}

/// Tokens of a part, from an absolute multiple of as many.
const SPLIT_TOKENS: usize = 128;

/// Threads of a block, in both ways.
const THREADS: u32 = 128;

/// Threads of the kernel that merges, and columns of its block: those that share a scale.
const COMBINE_THREADS: u32 = 256;
const COMBINE_COLS: usize = 32;

/// Rows of a block of the tensor cores' kernel.
const TILE_ROWS: usize = 64;

/// Kernels for so many query heads of a key head at once.
const DECODE: [(usize, &str); 3] = [
    (1, "attention_decode_1"),
    (4, "attention_decode_4"),
    (8, "attention_decode_8"),
];

/// Kernels for heads of up to so many values.
const PREFILL: [(usize, &str); 3] = [
    (64, "attention_prefill_64"),
    (128, "attention_prefill_128"),
    (256, "attention_prefill_256"),
];

/// The first that is large enough, or the last.
fn fitting(kernels: &[(usize, &'static str)], needed: usize) -> (usize, &'static str) {
    let found = kernels.iter().find(|(room, _)| *room >= needed);
    *found.unwrap_or(&kernels[kernels.len() - 1])
}

/// The step ends with the attention; see [`Append::prepare`] for what may stand before it.
pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let append = Append::prepare(p, nodes)?;
    let attend = Attend::prepare(p, nodes[nodes.len() - 1])?;
    Ok(Box::new((append, attend)))
}

struct Attend {
    decode: Kernel,
    /// Query heads that a block of it takes.
    decode_heads: usize,
    combine: Kernel,
    prefill: Kernel,
    step: StepPtrs,
    query: DevicePtr,
    out: DevicePtr,
    panels: Panels,
    sinks: Option<DevicePtr>,
    kv: KvPlace,
    n_heads: usize,
    scale: f32,
    /// 0 where there is none.
    softcap: f32,
    ctx_len: usize,
    /// `float [rows][n_heads][splits][head_dim]` and `[rows][n_heads][splits][2]`.
    parts: [DevicePtr; 2],
}

impl Attend {
    fn prepare(p: &mut Prepare<'_>, id: NodeId) -> Result<Self, Fault> {
        let node = p.node(id);
        let Op::Attention {
            n_heads,
            head_dim,
            scale,
            softcap,
            sinks,
            ..
        } = node.op
        else {
            unreachable!("only attention nodes come here");
        };
        let layer = node.layer.expect("attention belongs to a layer");
        let kv = p.kv(layer);
        let (decode_heads, decode) = fitting(&DECODE, n_heads / kv.n_kv_heads);
        let (_, prefill) = fitting(&PREFILL, head_dim);
        let ctx_len = p.options.ctx_len;
        let parts = DECODE_ROWS_MAX * n_heads * splits(kv.window, ctx_len);
        let panels = p.panels(id);
        p.fills_panels(id);
        Ok(Self {
            decode: p.kernel("attention", decode)?,
            decode_heads,
            combine: p.kernel("attention", "attention_combine")?,
            prefill: p.kernel("attention", prefill)?,
            step: p.step,
            query: p.value(node.inputs[0]),
            out: p.value(id),
            panels,
            sinks: sinks.map(|id| p.vector(id).ptr),
            kv,
            n_heads,
            scale,
            softcap: softcap.unwrap_or(0.0),
            ctx_len,
            parts: [
                p.scratch(parts * head_dim * size_of::<f32>()),
                p.scratch(parts * 2 * size_of::<f32>()),
            ],
        })
    }

    /// `struct Scores`.
    fn scores(&self) -> [u64; 2] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(self.scale.to_bits(), self.softcap.to_bits()),
            pair(self.kv.window as u32, self.n_heads as u32),
        ]
    }

    fn decode(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let splits = splits(self.kv.window, f.context.min(self.ctx_len));
        let parts = [self.parts[0].0, self.parts[1].0, splits as u64];
        let group = self.n_heads / self.kv.n_kv_heads;
        let blocks_of_group = group.div_ceil(self.decode_heads);
        let grid = Grid::of3(
            [splits, self.kv.n_kv_heads * blocks_of_group, f.rows],
            THREADS,
        );
        let args = Args::new()
            .ptr(self.query)
            .step(&self.step)
            .kv(&self.kv)
            .words(&self.scores())
            .words(&parts);
        f.device.launch(&self.decode, grid, args)?;
        let codes = &self.panels.codes;
        let args = Args::new()
            .words(&parts)
            .step(&self.step)
            .words(&self.scores())
            .ptr_or_null(self.sinks)
            .ptr(self.out)
            .codes(Some(codes))
            .size(self.kv.head_dim);
        let grid = Grid::of3([codes.stride / COMBINE_COLS, f.rows, 1], COMBINE_THREADS);
        f.device.launch(&self.combine, grid, args)
    }

    fn prefill(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let halves = &self.panels.halves;
        let output = [
            self.out.0,
            halves.halves.0,
            halves.row_scales.0,
            halves.stride as u64,
        ];
        let args = Args::new()
            .ptr(self.query)
            .size(f.rows)
            .step(&self.step)
            .kv(&self.kv)
            .words(&self.scores())
            .ptr_or_null(self.sinks)
            .words(&output);
        let grid = Grid::of3([f.rows.div_ceil(TILE_ROWS), self.n_heads, 1], THREADS);
        f.device.launch(&self.prefill, grid, args)
    }
}

impl Launch for Attend {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        match f.path {
            Path::Decode => self.decode(f),
            Path::Prefill => self.prefill(f),
        }
    }
}

/// Parts that a row may see in so long a context; `window` is 0 where it sees all of it.
fn splits(window: usize, context: usize) -> usize {
    let all = context.div_ceil(SPLIT_TOKENS);
    match window {
        0 => all,
        _ => all.min((window - 1).div_ceil(SPLIT_TOKENS) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_part_for_all_that_a_row_sees() {
        for window in [0, 1, 2, 127, 128, 129, 130, 256, 257, 1_000] {
            for position in 0..1_500_usize {
                let first = match window {
                    0 => 0,
                    _ => (position + 1).saturating_sub(window),
                };
                let needed = position / SPLIT_TOKENS - first / SPLIT_TOKENS + 1;
                let room = splits(window, position + 1);
                assert!(needed <= room, "window {window}, position {position}");
            }
        }
    }

    #[test]
    fn the_smallest_kernel_with_room_is_taken() {
        let check = |needed, room| assert_eq!(fitting(&DECODE, needed).0, room, "{needed}");
        for (needed, room) in [(1, 1), (2, 4), (4, 4), (5, 8), (8, 8), (16, 8)] {
            check(needed, room);
        }
    }
}
