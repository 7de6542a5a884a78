//! Attention over half-precision pages.

use std::ops::Range;

use half::f16;

use super::super::attention::{AttendTask, Exp, Join, KV_PAGE, Known, KvHead, Target, key_place};

/// # Safety
/// The task's pointers must be to live matrices of its shapes, and nobody else may touch the
/// outputs.
pub(super) unsafe fn attend(task: &AttendTask) {
    let head_dim = task.attention.head_dim;
    let mut sums = vec![0.0; head_dim];
    for query in 0..task.rows * task.heads {
        let (row, head) = (query / task.heads, query % task.heads);
        let place = task.place(row, head);
        let mut known = task.start(head);
        // SAFETY: the place lies in both matrices, and the parts are those of the task.
        let slice = |start: *mut f32, at: usize, len: usize| unsafe {
            std::slice::from_raw_parts_mut(start.add(at), len)
        };
        // SAFETY: as above.
        let values = unsafe { std::slice::from_raw_parts(task.queries.add(place), head_dim) };
        if let Target::Output(out) = task.target {
            slice(out, place, head_dim).fill(0.0);
        }
        for (page_idx, page) in task.attention.pages.iter().enumerate() {
            let seen = task.seen(row, page_idx);
            if seen == 0 {
                break;
            }
            let seen = task.hidden(row, page_idx)..seen;
            let of_page = add_page(task, (values, page), seen, &mut sums);
            match task.target {
                Target::Output(out) => {
                    // SAFETY: no instructions are needed.
                    let factors = unsafe { known.add::<Libm>(of_page) };
                    add_sums(factors, &sums, slice(out, place, head_dim));
                }
                Target::Parts(parts) => {
                    let part = slice(parts, task.part_place(page_idx, query), head_dim + 2);
                    part[..head_dim].copy_from_slice(&sums);
                    part[head_dim..].copy_from_slice(&[of_page.maximum, of_page.total]);
                }
            }
        }
        if let Target::Output(out) = task.target {
            let out = slice(out, place, head_dim);
            out.iter_mut().for_each(|o| *o /= known.total);
        }
    }
}

/// The exponential of the standard library.
struct Libm;

impl Exp for Libm {
    unsafe fn exp(x: f32) -> f32 {
        x.exp()
    }
}

/// What a page gives to a query: the weighted sum of its values to `sums`.
fn add_page(
    task: &AttendTask,
    (query, page): (&[f32], &KvHead<'_>),
    seen: Range<usize>,
    sums: &mut [f32],
) -> Known {
    let head_dim = query.len();
    let mut scores = [0.0f32; KV_PAGE];
    let mut known = Known::start(None);
    sums.fill(0.0);
    let (first, count) = (seen.start, seen.len());
    let scores = &mut scores[..count];
    for (pos, score) in seen.zip(scores.iter_mut()) {
        for (d, q) in query.iter().enumerate() {
            *score += q * f16::from_bits(page.keys[key_place(head_dim, pos, d)]).to_f32();
        }
        *score *= task.attention.scale;
        if let Some(cap) = task.attention.softcap {
            *score = cap * (*score / cap).tanh();
        }
        known.maximum = known.maximum.max(*score);
    }
    let values = page.values[first * head_dim..].chunks_exact(head_dim);
    for (score, value) in scores.iter().zip(values) {
        let weight = (*score - known.maximum).exp();
        known.total += weight;
        for (sum, v) in sums.iter_mut().zip(value) {
            *sum += weight * f16::from_bits(*v).to_f32();
        }
    }
    known
}

fn add_sums((old, new): (f32, f32), sums: &[f32], out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = *out * old + sum * new;
    }
}

/// # Safety
/// None is needed; it is as unsafe as the others of the table.
pub(super) unsafe fn join(join: &mut Join<'_>) {
    let mut known = join.start;
    let mut out = vec![0.0; join.out.len()];
    for number in 0..join.n_parts {
        let (sums, of_page) = join.part(number);
        // SAFETY: no instructions are needed.
        add_sums(unsafe { known.add::<Libm>(of_page) }, sums, &mut out);
    }
    for (out, sum) in join.out.iter_mut().zip(&out) {
        *out = sum / known.total;
    }
}
