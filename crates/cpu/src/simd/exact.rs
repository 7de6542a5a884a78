//! The float32 arithmetic of the exact path.
//!
//! A sum over K is kept in 16 parts, element k in part k mod 16, which are added in a fixed order
//! at the end. Multiplication and addition are rounded apart. So every instruction set gives the
//! same bits, and so does every batch; the sets differ only in how many products they compute side
//! by side.

/// Parts of a sum.
const PARTS: usize = 16;

/// Every row of `x` times every row of `w`, all of `cols` values; `out` holds a row for each row of
/// `x`, with a value for each row of `w`.
///
/// # Panics
/// If `out` is too short.
pub(crate) fn products(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    let n_w = w.len() / cols;
    assert!(out.len() >= x.len() / cols * n_w, "room for every product");
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the machine has the instructions.
            return unsafe { products_avx512(w, x, cols, out) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the instructions.
            return unsafe { products_avx2(w, x, cols, out) };
        }
    }
    products_by::<2, 2>(w, x, cols, out);
}

/// `sum` becomes the sum of the rows of `values`, each times its weight, row after row.
pub(crate) fn weighted_sum(weights: &[f32], values: &[f32], sum: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has the instructions.
        return unsafe { weighted_sum_avx2(weights, values, sum) };
    }
    weighted_sum_by(weights, values, sum);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn products_avx512(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    products_by::<4, 4>(w, x, cols, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn products_avx2(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    products_by::<2, 3>(w, x, cols, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn weighted_sum_avx2(weights: &[f32], values: &[f32], sum: &mut [f32]) {
    weighted_sum_by(weights, values, sum);
}

/// `W` by `X` products at a time.
#[inline(always)]
fn products_by<const W: usize, const X: usize>(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    let n_w = w.len() / cols;
    for (x, out) in x.chunks(X * cols).zip(out.chunks_mut(X * n_w)) {
        for (w_block, w) in w.chunks(W * cols).enumerate() {
            if x.len() == X * cols && w.len() == W * cols {
                let sums = block::<W, X>(w, x, cols);
                for (i, sums) in sums.iter().enumerate() {
                    out[i * n_w + w_block * W..][..W].copy_from_slice(sums);
                }
                continue;
            }
            for (i, x) in x.chunks_exact(cols).enumerate() {
                for (j, w) in w.chunks_exact(cols).enumerate() {
                    out[i * n_w + w_block * W + j] = block::<1, 1>(w, x, cols)[0][0];
                }
            }
        }
    }
}

#[inline(always)]
fn block<const W: usize, const X: usize>(w: &[f32], x: &[f32], cols: usize) -> [[f32; W]; X] {
    let w: [&[f32]; W] = std::array::from_fn(|j| &w[j * cols..][..cols]);
    let x: [&[f32]; X] = std::array::from_fn(|i| &x[i * cols..][..cols]);
    let mut sums = [[[0.0f32; PARTS]; W]; X];
    let whole = cols - cols % PARTS;
    for k in (0..whole).step_by(PARTS) {
        for i in 0..X {
            let x: &[f32; PARTS] = part(x[i], k);
            for j in 0..W {
                let w: &[f32; PARTS] = part(w[j], k);
                for lane in 0..PARTS {
                    sums[i][j][lane] += w[lane] * x[lane];
                }
            }
        }
    }
    for i in 0..X {
        for j in 0..W {
            for k in whole..cols {
                sums[i][j][k - whole] += w[j][k] * x[i][k];
            }
        }
    }
    sums.map(|row| row.map(total))
}

#[inline(always)]
fn part(row: &[f32], k: usize) -> &[f32; PARTS] {
    match row[k..].first_chunk() {
        Some(part) => part,
        // The callers walk whole parts.
        None => unreachable!("a whole part"),
    }
}

/// The parts, halved until one is left.
#[inline(always)]
fn total(mut parts: [f32; PARTS]) -> f32 {
    let mut n = PARTS;
    while n > 1 {
        n /= 2;
        for lane in 0..n {
            parts[lane] += parts[lane + n];
        }
    }
    parts[0]
}

#[inline(always)]
fn weighted_sum_by(weights: &[f32], values: &[f32], sum: &mut [f32]) {
    for (weight, row) in weights.iter().zip(values.chunks_exact(sum.len())) {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All widths of the walk give the bits of the narrowest one.
    fn check(n_w: usize, n_x: usize, cols: usize) {
        let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 311.0 - 1.6;
        let w: Vec<f32> = (0..n_w * cols).map(value).collect();
        let x: Vec<f32> = (0..n_x * cols).map(|i| value(i + 5)).collect();
        let mut expected = vec![0.0; n_x * n_w];
        for i in 0..n_x {
            for j in 0..n_w {
                let sum = block::<1, 1>(&w[j * cols..], &x[i * cols..], cols)[0][0];
                expected[i * n_w + j] = sum;
                let truth: f64 = (0..cols)
                    .map(|k| f64::from(w[j * cols + k]) * f64::from(x[i * cols + k]))
                    .sum();
                // 16 parts: the error grows with a sixteenth of the length.
                let limit = 1e-6 * (cols as f64 + 16.0);
                assert!((f64::from(sum) - truth).abs() < limit, "{sum} {truth}");
            }
        }
        let mut found = vec![0.0; n_x * n_w];
        products(&w, &x, cols, &mut found);
        assert_eq!(found, expected, "{n_w} {n_x} {cols}");
    }

    #[test]
    fn every_way_to_walk_gives_the_same_bits() {
        for (n_w, n_x, cols) in [(1, 1, 1), (4, 4, 64), (5, 7, 96), (16, 1, 100), (3, 9, 15)] {
            check(n_w, n_x, cols);
        }
    }
}
