//! Attention over half-precision pages.

use half::f16;

use super::super::attention::{AttendTask, KV_PAGE, key_place};

/// # Safety
/// The task's pointers must be to live matrices of its shapes, and nobody else may touch the
/// outputs.
pub(super) unsafe fn attend(task: &AttendTask) {
    let head_dim = task.attention.head_dim;
    for row in 0..task.rows {
        for head in 0..task.heads {
            let place = task.place(row, head);
            // SAFETY: the place lies in both matrices, the output is the tile's.
            let (query, out) = unsafe {
                (
                    std::slice::from_raw_parts(task.queries.add(place), head_dim),
                    std::slice::from_raw_parts_mut(task.out.add(place), head_dim),
                )
            };
            attend_one(task, (row, head), query, out);
        }
    }
}

fn attend_one(task: &AttendTask, (row, head): (usize, usize), query: &[f32], out: &mut [f32]) {
    let head_dim = query.len();
    let mut scores = [0.0f32; KV_PAGE];
    let (mut maximum, mut total) = task.start(head);
    out.fill(0.0);
    for (page_idx, page) in task.attention.pages.iter().enumerate() {
        let seen = task.seen(row, page_idx);
        if seen == 0 {
            break;
        }
        let hidden = task.hidden(row, page_idx);
        if hidden >= seen {
            continue;
        }
        let before = maximum;
        let scores = &mut scores[hidden..seen];
        for (pos, score) in (hidden..).zip(scores.iter_mut()) {
            *score = 0.0;
            for (d, q) in query.iter().enumerate() {
                *score += q * f16::from_bits(page.keys[key_place(head_dim, pos, d)]).to_f32();
            }
            *score *= task.attention.scale;
            if let Some(cap) = task.attention.softcap {
                *score = cap * (*score / cap).tanh();
            }
            maximum = maximum.max(*score);
        }
        let kept = (before - maximum).exp();
        total *= kept;
        out.iter_mut().for_each(|o| *o *= kept);
        let values = page.values[hidden * head_dim..].chunks_exact(head_dim);
        for (score, value) in scores.iter_mut().zip(values) {
            let weight = (*score - maximum).exp();
            total += weight;
            for (o, v) in out.iter_mut().zip(value) {
                *o += weight * f16::from_bits(*v).to_f32();
            }
        }
    }
    out.iter_mut().for_each(|o| *o /= total);
}
