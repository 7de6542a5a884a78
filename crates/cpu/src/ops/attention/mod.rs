//! Attention over the state: every query against the keys up to its own position.
//!
//! Float16 state goes through the kernels, and so does 8-bit state once a thread has unfolded what
//! it reads of it. Float32 state goes through `exact.rs`. In all of them each page is summed by
//! itself, and then the pages are joined in their order, so that a query's result depends on
//! nothing but its slot.
//!
//! The rows of a prompt are work enough for all threads: a tile of them goes through all of its
//! pages. Where there are few rows, as in a reply, the threads divide the pages: `split.rs`.

mod exact;
mod split;

use candor_arch::{NodeId, Op};
use candor_backend::{CancelToken, Run};

use crate::forward::{Forward, Machine, Stopped};
use crate::simd::{Attention, CodedHead, Kernels, KvHead, Tile, TileQueue};
use crate::state::{Head, PAGE_TOKENS, Place};

/// Queries of a slot that a thread takes at once, so that a page is read once for all of them.
const TILE_QUERIES: usize = 32;

/// The shape of one attention node.
#[derive(Clone, Copy)]
struct Shape<'a> {
    head_dim: usize,
    /// Query heads that share a key head.
    group: usize,
    scale: f32,
    /// How many positions a query sees, its own among them.
    window: usize,
    softcap: Option<f32>,
    /// A score for each query head.
    sinks: Option<&'a [f32]>,
}

impl<'a> Shape<'a> {
    /// The sinks of the heads that share a key head, of which the first is given.
    fn sinks(&self, first_head: usize) -> Option<&'a [f32]> {
        let sinks = self.sinks?;
        Some(&sinks[first_head..][..self.group])
    }

    /// The first page that a query at this position sees something of.
    fn first_page(&self, position: usize) -> usize {
        (position + 1).saturating_sub(self.window) / PAGE_TOKENS
    }
}

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let it = graph.node(node);
    let Op::Attention {
        n_heads,
        n_kv_heads,
        head_dim,
        scale,
        softcap,
        sinks,
    } = it.op
    else {
        unreachable!("only attention nodes come here");
    };
    let layer = it.layer.expect("attention belongs to a layer");
    append(f, layer, node, n_kv_heads * head_dim);
    let shape = Shape {
        head_dim,
        group: n_heads / n_kv_heads,
        scale,
        window: f.state.window(layer),
        softcap,
        sinks: sinks.map(|id| f.machine.weights.vector(id)),
    };
    let width = it.width;
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let queries = f.work.values.of(it.inputs[0]);
    let state = &*f.state;
    let heads: Vec<(&Run, Vec<Head<'_>>)> = f
        .runs
        .iter()
        .map(|run| {
            let end = (run.first_position + run.rows.len()).div_ceil(PAGE_TOKENS);
            let pages = shape.first_page(run.first_position)..end;
            let heads = (0..n_kv_heads).map(|h| state.head(layer, h, run.slot, pages.clone()));
            (run, heads.collect())
        })
        .collect();
    let task = Task {
        heads: &heads,
        queries,
        width,
        shape,
    };
    let tools = (&f.machine, f.cancel, &mut f.work.threads[..]);
    let done = match split::plan(&task, f.machine.pool.threads()) {
        Some(pages) => split::run(&task, pages, tools, &mut f.work.inner[0], &mut out),
        None => whole(&task, tools, &mut out),
    };
    f.work.values.put(node, out);
    done
}

/// What is to be attended to.
struct Task<'a> {
    /// The pages of each run's key heads.
    heads: &'a [(&'a Run, Vec<Head<'a>>)],
    queries: &'a [f32],
    /// Of a row of queries, and of outputs.
    width: usize,
    shape: Shape<'a>,
}

/// Who computes, until when, and with a scratch for each thread.
type Tools<'a> = (&'a Machine<'a>, &'a CancelToken, &'a mut [Vec<f32>]);

/// A tile of rows on each thread, through all of its pages.
fn whole(
    task: &Task<'_>,
    (machine, cancel, threads): Tools<'_>,
    out: &mut [f32],
) -> Result<(), Stopped> {
    let (shape, kernels) = (task.shape, machine.kernels);
    let mut items = items(task, out);
    machine
        .pool
        .each(&mut items, threads, cancel, |scratch, item| {
            let skipped = item.skipped;
            match item.head {
                Head::F16(pages) => attend_halves(kernels, item, &pages[skipped..], shape),
                Head::Q8(pages) => {
                    let positions = item.first_position + item.tile.rows().len();
                    let pages = &pages[skipped..];
                    let (keys, values) = unfold(kernels, positions, pages, shape.head_dim, scratch);
                    let numbers = PAGE_TOKENS * shape.head_dim;
                    let pages = keys.chunks_exact(numbers).zip(values.chunks_exact(numbers));
                    let pages = pages.map(|(keys, values)| KvHead { keys, values });
                    attend_halves(kernels, item, &pages.collect::<Vec<_>>(), shape);
                }
                Head::F32(pages) => exact::attend(item, &pages[skipped..], shape, scratch),
            }
        })?;
    Ok(())
}

/// Cuts the output of all runs into tiles.
fn items<'a>(task: &'a Task<'_>, out: &'a mut [f32]) -> Vec<Item<'a>> {
    let (shape, queries, width) = (task.shape, task.queries, task.width);
    let group_width = shape.group * shape.head_dim;
    let mut items = Vec::new();
    let mut rest = out;
    for (run, heads) in task.heads {
        let (part, after) = rest.split_at_mut(run.rows.len() * width);
        rest = after;
        let queue = TileQueue::new(part, width, TILE_QUERIES, group_width);
        let queries = &queries[run.rows.start * width..run.rows.end * width];
        items.extend(std::iter::from_fn(|| queue.take()).map(|tile| {
            let position = run.first_position + tile.rows().start;
            let first_page = shape.first_page(position);
            Item {
                head: &heads[tile.cols().start / group_width],
                skipped: first_page - shape.first_page(run.first_position),
                queries,
                width,
                first_position: position - first_page * PAGE_TOKENS,
                tile,
            }
        }));
    }
    items
}

/// Some queries of one run and one key head.
struct Item<'a> {
    head: &'a Head<'a>,
    /// Pages of the run at the front that none of them sees.
    skipped: usize,
    /// Of the run, all heads.
    queries: &'a [f32],
    width: usize,
    /// Of the first row, counted from the first page that it sees.
    first_position: usize,
    tile: Tile<'a>,
}

/// Puts the rows' keys and values into the state.
fn append(f: &mut Forward<'_>, layer: usize, node: NodeId, width: usize) {
    let inputs = &f.machine.weights.model.graph.node(node).inputs;
    let (keys, values) = (f.work.values.of(inputs[1]), f.work.values.of(inputs[2]));
    for run in f.runs {
        for (i, row) in run.rows.clone().enumerate() {
            let at = Place {
                layer,
                slot: run.slot,
                position: run.first_position + i,
            };
            let place = row * width..(row + 1) * width;
            f.state
                .append(f.machine.kernels, at, &keys[place.clone()], &values[place]);
        }
    }
}

/// The float16 arithmetic for one tile.
fn attend_halves(kernels: &Kernels, item: &mut Item<'_>, pages: &[KvHead<'_>], shape: Shape<'_>) {
    let attention = Attention {
        queries: item.queries,
        head_dim: shape.head_dim,
        pages,
        first_page: 0,
        first_position: item.first_position,
        window: shape.window,
        scale: shape.scale,
        softcap: shape.softcap,
        sinks: shape.sinks(item.tile.cols().start / shape.head_dim),
    };
    kernels.attend(&attention, &mut item.tile);
}

/// The pages of a head, from 8 bits to float16, as far as some positions: keys and values.
fn unfold<'a>(
    kernels: &Kernels,
    positions: usize,
    pages: &[CodedHead<'_>],
    head_dim: usize,
    scratch: &'a mut Vec<f32>,
) -> (&'a [u16], &'a [u16]) {
    let numbers = PAGE_TOKENS * head_dim;
    let halves = positions.div_ceil(PAGE_TOKENS) * numbers;
    // A float has room for two: one of a key, one of a value.
    if scratch.len() < halves {
        scratch.resize(halves, 0.0);
    }
    let (keys, values) = bytemuck::cast_slice_mut(&mut scratch[..halves]).split_at_mut(halves);
    let unfolded = keys
        .chunks_exact_mut(numbers)
        .zip(values.chunks_exact_mut(numbers));
    for ((page_idx, page), (keys, values)) in pages.iter().enumerate().zip(unfolded) {
        let seen = (positions - page_idx * PAGE_TOKENS).min(PAGE_TOKENS);
        kernels.unfold(*page, (head_dim, seen), keys, values);
    }
    (keys, values)
}

/// Values become cap · tanh(value / cap).
pub(super) fn bound(cap: f32, values: &mut [f32]) {
    values
        .iter_mut()
        .for_each(|value| *value = cap * (*value / cap).tanh());
}
