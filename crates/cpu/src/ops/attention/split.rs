//! Few rows: the threads divide the pages of their context. Each page leaves a part for each query,
//! and the parts are joined once all are there. Pages are summed apart in either case, so this gives
//! the bits that one thread would give.

use std::ops::Range;

use super::{Shape, Task, Tools, unfold};
use crate::forward::Stopped;
use crate::simd::{Attention, Kernels, KvHead, part_numbers};
use crate::state::{Head, PAGE_TOKENS};

/// Spans of pages for each thread: enough that one that was kept from working does not leave the
/// others waiting long.
const SPANS: usize = 4;

/// Numbers of parts that may be held: 32 MB, as many as 64 heads of 128 leave of a context of
/// 250,000 tokens.
const PARTS_MAX: usize = 8 << 20;

/// Numbers of parts that one thread joins as fast as several, which would have to be woken.
const ALONE_MAX: usize = 1 << 15;

/// How many pages are a span, if it is worth it: not where there is a tile of rows for every thread
/// anyway, or nothing to divide.
pub(super) fn plan(task: &Task<'_>, threads: usize) -> Option<usize> {
    let mut tiles = 0;
    let (mut pages, mut most, mut numbers) = (0, 0, 0);
    for (run, heads) in task.heads {
        tiles += run.rows.len().div_ceil(super::TILE_QUERIES) * heads.len();
        for head in heads {
            let of_head = n_pages(head)?;
            pages += of_head;
            most = most.max(of_head);
            numbers += of_head * part_stride(task.shape, run.rows.len());
        }
    }
    let worth_it = threads > 1 && most > 1 && tiles < SPANS * threads && numbers <= PARTS_MAX;
    worth_it.then(|| pages.div_ceil(SPANS * threads))
}

/// Pages of a head; `None` for those in float32, which the kernels do not read.
fn n_pages(head: &Head<'_>) -> Option<usize> {
    match head {
        Head::F16(pages) => Some(pages.len()),
        Head::Q8(pages) => Some(pages.len()),
        Head::F32(_) => None,
    }
}

/// Numbers of the parts that a page leaves for some rows and the heads that share a key head.
fn part_stride(shape: Shape<'_>, rows: usize) -> usize {
    rows * shape.group * part_numbers(shape.head_dim)
}

/// Some pages of one key head, and some rows of a run.
struct Span<'a> {
    head: &'a Head<'a>,
    /// Those of the head that are summed.
    pages: Range<usize>,
    /// Of the first row, counted from the first page of the head.
    first_position: usize,
    /// The rows and columns of the queries.
    rows: Range<usize>,
    cols: Range<usize>,
    parts: &'a mut [f32],
}

/// Attends by spans of so many pages. `parts` is memory that is used again.
pub(super) fn run(
    task: &Task<'_>,
    pages_per_span: usize,
    (machine, cancel, threads): Tools<'_>,
    parts: &mut Vec<f32>,
    out: &mut [f32],
) -> Result<(), Stopped> {
    let shape = task.shape;
    let numbers = task.heads.iter().flat_map(|(run, heads)| {
        let stride = part_stride(shape, run.rows.len());
        heads
            .iter()
            .map(move |head| stride * n_pages(head).unwrap_or(0))
    });
    parts.resize(numbers.sum(), 0.0);
    let mut spans = spans(task, pages_per_span, parts);
    let kernels = machine.kernels;
    machine
        .pool
        .each(&mut spans, threads, cancel, |scratch, span| {
            span.sum(task, kernels, scratch);
        })?;
    drop(spans);
    let group_width = shape.group * shape.head_dim;
    let outputs_at_once = if parts.len() <= ALONE_MAX {
        out.len()
    } else {
        group_width
    };
    let mut outputs: Vec<_> = out.chunks_mut(outputs_at_once).enumerate().collect();
    let parts = &parts[..];
    machine
        .pool
        .each(&mut outputs, threads, cancel, |_, (at, out)| {
            let first = *at * outputs_at_once / group_width;
            for (i, out) in out.chunks_exact_mut(group_width).enumerate() {
                join(task, kernels, parts, (first + i, out));
            }
        })?;
    Ok(())
}

/// Cuts the pages of all heads into spans, each with the place of its parts.
fn spans<'a>(task: &'a Task<'_>, pages_per_span: usize, parts: &'a mut [f32]) -> Vec<Span<'a>> {
    let shape = task.shape;
    let group_width = shape.group * shape.head_dim;
    let mut spans = Vec::new();
    let mut rest = parts;
    for (run, heads) in task.heads {
        let first_page = shape.first_page(run.first_position);
        for (head_idx, head) in heads.iter().enumerate() {
            let end = n_pages(head).unwrap_or(0);
            for first in (0..end).step_by(pages_per_span) {
                let pages = first..(first + pages_per_span).min(end);
                let numbers = pages.len() * part_stride(shape, run.rows.len());
                let (parts, after) = rest.split_at_mut(numbers);
                rest = after;
                spans.push(Span {
                    head,
                    pages,
                    first_position: run.first_position - first_page * PAGE_TOKENS,
                    rows: run.rows.clone(),
                    cols: head_idx * group_width..(head_idx + 1) * group_width,
                    parts,
                });
            }
        }
    }
    spans
}

impl Span<'_> {
    /// Leaves the parts.
    fn sum(&mut self, task: &Task<'_>, kernels: &Kernels, scratch: &mut Vec<f32>) {
        let shape = task.shape;
        let stride = part_stride(shape, self.rows.len());
        match self.head {
            Head::F16(pages) => {
                let attention = self.attention(task, &pages[self.pages.clone()], self.pages.start);
                let place = (self.rows.clone(), self.cols.clone());
                kernels.attend_parts(&attention, place, task.width, self.parts);
            }
            // Page by page, so that what is unfolded is still in the cache.
            Head::Q8(pages) => {
                let end = self.first_position + self.rows.len();
                for (page, parts) in self.pages.clone().zip(self.parts.chunks_exact_mut(stride)) {
                    let seen = (end - page * PAGE_TOKENS).min(PAGE_TOKENS);
                    let coded = &pages[page..=page];
                    let (keys, values) = unfold(kernels, seen, coded, shape.head_dim, scratch);
                    let pages = [KvHead { keys, values }];
                    let attention = Attention {
                        pages: &pages,
                        first_page: page,
                        first_position: self.first_position,
                        ..attention_of(task, &self.cols)
                    };
                    let place = (self.rows.clone(), self.cols.clone());
                    kernels.attend_parts(&attention, place, task.width, parts);
                }
            }
            Head::F32(_) => unreachable!("float32 is not split"),
        }
    }

    fn attention<'b>(
        &self,
        task: &Task<'b>,
        pages: &'b [KvHead<'b>],
        first_page: usize,
    ) -> Attention<'b> {
        Attention {
            pages,
            first_page,
            first_position: self.first_position,
            ..attention_of(task, &self.cols)
        }
    }
}

/// What the spans of some columns have in common.
fn attention_of<'b>(task: &Task<'b>, cols: &Range<usize>) -> Attention<'b> {
    let shape = task.shape;
    Attention {
        queries: task.queries,
        head_dim: shape.head_dim,
        pages: &[],
        first_page: 0,
        first_position: 0,
        window: shape.window,
        scale: shape.scale,
        softcap: shape.softcap,
        sinks: shape.sinks(cols.start / shape.head_dim),
    }
}

/// Joins the parts of one row and key head; they are counted row by row.
fn join(task: &Task<'_>, kernels: &Kernels, parts: &[f32], (number, out): (usize, &mut [f32])) {
    let shape = task.shape;
    let n_heads = task.width / out.len();
    let (row, head) = (number / n_heads, number % n_heads);
    let mut before = 0;
    for (run, heads) in task.heads {
        let stride = part_stride(shape, run.rows.len());
        let of = |heads: &[Head<'_>]| -> usize {
            heads.iter().map(|head| n_pages(head).unwrap_or(0)).sum()
        };
        if !run.rows.contains(&row) {
            before += of(heads) * stride;
            continue;
        }
        let first = before + of(&heads[..head]) * stride;
        let in_run = row - run.rows.start;
        let position = run.first_position + in_run;
        let (first_page, skipped) = (
            shape.first_page(run.first_position),
            shape.first_page(position),
        );
        let pages = skipped - first_page..position / PAGE_TOKENS + 1 - first_page;
        let sinks = shape.sinks(head * shape.group);
        for (g, out) in out.chunks_exact_mut(shape.head_dim).enumerate() {
            let part = (in_run * shape.group + g) * part_numbers(shape.head_dim);
            let from = &parts[first + pages.start * stride + part..];
            let sink = sinks.map(|sinks| sinks[g]);
            kernels.join((from, stride, pages.len()), sink, out);
        }
        return;
    }
}
