//! Attention over the state: every query against the keys up to its own position.
//!
//! Float16 state goes through the kernels, and so does 8-bit state once a thread has unfolded what
//! one of its tiles sees. Float32 state goes through this file: page by page, scores, their
//! exponentials against the page's largest score, the weighted sum of the values; then the pages
//! are merged in their order. So a query's result depends on nothing but its slot.

use candor_arch::{NodeId, Op};
use candor_backend::Run;

use crate::forward::{Forward, Stopped};
use crate::simd::{Attention, CodedHead, Kernels, KvHead, Tile, TileQueue, exact};
use crate::state::{FloatHead, Head, PAGE_TOKENS, Place};

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

impl Shape<'_> {
    /// The sinks of the heads that share a key head, of which the first is given.
    fn sinks(&self, first_head: usize) -> Option<&[f32]> {
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
    let mut items = items(&heads, (queries, &mut out, width), shape);
    let kernels = f.machine.kernels;
    let threads = &mut f.work.threads;
    let done = f
        .machine
        .pool
        .each(&mut items, threads, f.cancel, |scratch, item| {
            let skipped = item.skipped;
            match item.head {
                Head::F16(pages) => attend_halves(kernels, item, &pages[skipped..], shape),
                Head::Q8(pages) => {
                    let (keys, values) = unfold(kernels, item, &pages[skipped..], shape, scratch);
                    let numbers = PAGE_TOKENS * head_dim;
                    let pages = keys.chunks_exact(numbers).zip(values.chunks_exact(numbers));
                    let pages = pages.map(|(keys, values)| KvHead { keys, values });
                    attend_halves(kernels, item, &pages.collect::<Vec<_>>(), shape);
                }
                Head::F32(pages) => attend(item, &pages[skipped..], shape, scratch),
            }
        });
    drop(items);
    f.work.values.put(node, out);
    Ok(done?)
}

/// Cuts the output of all runs into tiles. `heads` has the pages of each run's key heads.
fn items<'a>(
    heads: &'a [(&Run, Vec<Head<'a>>)],
    (queries, out, width): (&'a [f32], &'a mut [f32], usize),
    shape: Shape<'_>,
) -> Vec<Item<'a>> {
    let group_width = shape.group * shape.head_dim;
    let mut items = Vec::new();
    let mut rest = out;
    for (run, heads) in heads {
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
        first_position: item.first_position,
        window: shape.window,
        scale: shape.scale,
        softcap: shape.softcap,
        sinks: shape.sinks(item.tile.cols().start / shape.head_dim),
    };
    kernels.attend(&attention, &mut item.tile);
}

/// The pages that a tile sees, from 8 bits to float16: keys and values.
fn unfold<'a>(
    kernels: &Kernels,
    item: &Item<'_>,
    pages: &[CodedHead<'_>],
    shape: Shape<'_>,
    scratch: &'a mut Vec<f32>,
) -> (&'a [u16], &'a [u16]) {
    let positions = item.first_position + item.tile.rows().len();
    let numbers = PAGE_TOKENS * shape.head_dim;
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
        kernels.unfold(*page, (shape.head_dim, seen), keys, values);
    }
    (keys, values)
}

/// What is known of one query after some pages.
struct Sums<'a> {
    largest: &'a mut f32,
    total: &'a mut f32,
    values: &'a mut [f32],
}

/// The float32 arithmetic for one tile.
fn attend(item: &mut Item<'_>, pages: &[FloatHead<'_>], shape: Shape<'_>, scratch: &mut Vec<f32>) {
    let Shape {
        head_dim, group, ..
    } = shape;
    let rows = item.tile.rows();
    let first_col = item.tile.cols().start;
    // For each query: largest score, sum of exponentials, sum of values. Then for one page: the
    // scores, and the sum of values.
    let n_queries = rows.len() * group;
    scratch.clear();
    scratch.resize(n_queries * (2 + head_dim) + PAGE_TOKENS + head_dim, 0.0);
    let (largest, rest) = scratch.split_at_mut(n_queries);
    let (totals, rest) = rest.split_at_mut(n_queries);
    let (sums, rest) = rest.split_at_mut(n_queries * head_dim);
    let (scores, page_sum) = rest.split_at_mut(PAGE_TOKENS);
    start(shape.sinks(first_col / head_dim), largest, totals);
    for (page_idx, page) in pages.iter().enumerate() {
        for (i, row) in rows.clone().enumerate() {
            let position = item.first_position + i;
            let seen = (position + 1)
                .saturating_sub(page_idx * PAGE_TOKENS)
                .min(PAGE_TOKENS);
            let hidden = (position + 1)
                .saturating_sub(shape.window)
                .saturating_sub(page_idx * PAGE_TOKENS);
            if seen <= hidden {
                continue;
            }
            for head in 0..group {
                let at = i * group + head;
                let query = &item.queries[row * item.width + first_col + head * head_dim..];
                let sums = Sums {
                    largest: &mut largest[at],
                    total: &mut totals[at],
                    values: &mut sums[at * head_dim..][..head_dim],
                };
                let query = &query[..head_dim];
                let page = FloatHead {
                    keys: &page.keys[hidden * head_dim..],
                    values: &page.values[hidden * head_dim..],
                };
                let scores = &mut scores[..seen - hidden];
                add_page(sums, query, &page, shape, (scores, page_sum));
            }
        }
    }
    for (i, row) in rows.enumerate() {
        for (head, out) in item.tile.row(row).chunks_exact_mut(head_dim).enumerate() {
            let at = i * group + head;
            for (out, sum) in out.iter_mut().zip(&sums[at * head_dim..]) {
                *out = sum / totals[at];
            }
        }
    }
}

/// What is known of the queries before the first page: nothing, or their heads' sinks.
fn start(sinks: Option<&[f32]>, largest: &mut [f32], totals: &mut [f32]) {
    let Some(sinks) = sinks else {
        return largest.fill(f32::NEG_INFINITY);
    };
    for largest in largest.chunks_exact_mut(sinks.len()) {
        largest.copy_from_slice(sinks);
    }
    totals.fill(1.0);
}

/// Adds a page to what is known of a query. `scores` has a place for each token that it sees.
fn add_page(
    sums: Sums<'_>,
    query: &[f32],
    page: &FloatHead<'_>,
    shape: Shape<'_>,
    (scores, page_sum): (&mut [f32], &mut [f32]),
) {
    let head_dim = query.len();
    exact::products(
        &page.keys[..scores.len() * head_dim],
        query,
        head_dim,
        scores,
    );
    scores.iter_mut().for_each(|score| *score *= shape.scale);
    if let Some(cap) = shape.softcap {
        bound(cap, scores);
    }
    let page_largest = scores.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let mut page_total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - page_largest).exp();
        page_total += *score;
    }
    page_sum.fill(0.0);
    exact::weighted_sum(scores, page.values, page_sum);
    let largest = sums.largest.max(page_largest);
    let (old, new) = (
        (*sums.largest - largest).exp(),
        (page_largest - largest).exp(),
    );
    *sums.largest = largest;
    *sums.total = *sums.total * old + page_total * new;
    for (sum, page_sum) in sums.values.iter_mut().zip(page_sum.iter()) {
        *sum = *sum * old + page_sum * new;
    }
}

/// Values become cap · tanh(value / cap).
pub(super) fn bound(cap: f32, values: &mut [f32]) {
    values
        .iter_mut()
        .for_each(|value| *value = cap * (*value / cap).tanh());
}
