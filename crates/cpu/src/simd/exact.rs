//! The float32 arithmetic of the exact path.
//!
//! A sum over K is kept in 16 parts, element k in part k mod 16, which are added in a fixed order
//! at the end. Multiplication and addition are rounded apart. So every instruction set gives the
//! same bits, and so does every batch; the sets differ only in how many products they compute side
//! by side.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m512, _mm256_add_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_setzero_ps,
    _mm256_storeu_ps, _mm512_add_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_setzero_ps,
    _mm512_storeu_ps,
};

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
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has the instructions.
            return unsafe { products_avx512(w, x, cols, out) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the instructions.
            return unsafe { products_avx2(w, x, cols, out) };
        }
    }
    products_by::<Portable, 2, 2>(w, x, cols, out);
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
#[target_feature(enable = "avx512f")]
fn products_avx512(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    products_by::<__m512, 4, 4>(w, x, cols, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn products_avx2(w: &[f32], x: &[f32], cols: usize, out: &mut [f32]) {
    products_by::<[__m256; 2], 2, 2>(w, x, cols, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn weighted_sum_avx2(weights: &[f32], values: &[f32], sum: &mut [f32]) {
    weighted_sum_by(weights, values, sum);
}

/// The parts of a sum in registers.
trait Parts: Copy {
    fn zero() -> Self;
    fn load(values: &[f32; PARTS]) -> Self;
    /// self + w · x, rounded twice.
    fn add_product(self, w: Self, x: Self) -> Self;
    fn store(self) -> [f32; PARTS];
}

/// Registers of any machine.
type Portable = [f32; PARTS];

impl Parts for Portable {
    #[inline(always)]
    fn zero() -> Self {
        [0.0; PARTS]
    }

    #[inline(always)]
    fn load(values: &[f32; PARTS]) -> Self {
        *values
    }

    #[inline(always)]
    fn add_product(self, w: Self, x: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + w[lane] * x[lane])
    }

    #[inline(always)]
    fn store(self) -> [f32; PARTS] {
        self
    }
}

#[cfg(target_arch = "x86_64")]
impl Parts for __m512 {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: only `products_avx512` and what is inlined into it uses this type.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    fn load(values: &[f32; PARTS]) -> Self {
        // SAFETY: as for `zero`; the array has the sixteen values that are read.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn add_product(self, w: Self, x: Self) -> Self {
        // SAFETY: as for `zero`.
        unsafe { _mm512_add_ps(self, _mm512_mul_ps(w, x)) }
    }

    #[inline(always)]
    fn store(self) -> [f32; PARTS] {
        let mut values = [0.0; PARTS];
        // SAFETY: as for `zero`; the array has the sixteen places that are written.
        unsafe { _mm512_storeu_ps(values.as_mut_ptr(), self) };
        values
    }
}

#[cfg(target_arch = "x86_64")]
impl Parts for [__m256; 2] {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: only `products_avx2` and what is inlined into it uses this type.
        unsafe { [_mm256_setzero_ps(); 2] }
    }

    #[inline(always)]
    fn load(values: &[f32; PARTS]) -> Self {
        let start = values.as_ptr();
        // SAFETY: as for `zero`; the array has the sixteen values that are read.
        unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))] }
    }

    #[inline(always)]
    fn add_product(self, w: Self, x: Self) -> Self {
        // SAFETY: as for `zero`.
        unsafe {
            [
                _mm256_add_ps(self[0], _mm256_mul_ps(w[0], x[0])),
                _mm256_add_ps(self[1], _mm256_mul_ps(w[1], x[1])),
            ]
        }
    }

    #[inline(always)]
    fn store(self) -> [f32; PARTS] {
        let mut values = [0.0; PARTS];
        // SAFETY: as for `zero`; the array has the sixteen places that are written.
        unsafe {
            _mm256_storeu_ps(values.as_mut_ptr(), self[0]);
            _mm256_storeu_ps(values.as_mut_ptr().add(8), self[1]);
        }
        values
    }
}

/// `W` by `X` products at a time.
#[inline(always)]
fn products_by<P: Parts, const W: usize, const X: usize>(
    w: &[f32],
    x: &[f32],
    cols: usize,
    out: &mut [f32],
) {
    let n_w = w.len() / cols;
    for (x, out) in x.chunks(X * cols).zip(out.chunks_mut(X * n_w)) {
        for (w_block, w) in w.chunks(W * cols).enumerate() {
            if x.len() == X * cols && w.len() == W * cols {
                let sums = block::<P, W, X>(w, x, cols);
                for (i, sums) in sums.iter().enumerate() {
                    out[i * n_w + w_block * W..][..W].copy_from_slice(sums);
                }
                continue;
            }
            for (i, x) in x.chunks_exact(cols).enumerate() {
                for (j, w) in w.chunks_exact(cols).enumerate() {
                    out[i * n_w + w_block * W + j] = block::<P, 1, 1>(w, x, cols)[0][0];
                }
            }
        }
    }
}

#[inline(always)]
fn block<P: Parts, const W: usize, const X: usize>(
    w: &[f32],
    x: &[f32],
    cols: usize,
) -> [[f32; W]; X] {
    let w: [(&[[f32; PARTS]], [f32; PARTS]); W] =
        std::array::from_fn(|j| parts_of(&w[j * cols..][..cols]));
    let x: [(&[[f32; PARTS]], [f32; PARTS]); X] =
        std::array::from_fn(|i| parts_of(&x[i * cols..][..cols]));
    let mut sums = [[P::zero(); W]; X];
    for k in 0..cols / PARTS {
        let w: [P; W] = std::array::from_fn(|j| P::load(&w[j].0[k]));
        add_products(&mut sums, &w, std::array::from_fn(|i| P::load(&x[i].0[k])));
    }
    let w: [P; W] = std::array::from_fn(|j| P::load(&w[j].1));
    add_products(&mut sums, &w, std::array::from_fn(|i| P::load(&x[i].1)));
    std::array::from_fn(|i| std::array::from_fn(|j| total(sums[i][j].store())))
}

#[inline(always)]
fn add_products<P: Parts, const W: usize, const X: usize>(
    sums: &mut [[P; W]; X],
    w: &[P; W],
    x: [P; X],
) {
    for i in 0..X {
        for j in 0..W {
            sums[i][j] = sums[i][j].add_product(w[j], x[i]);
        }
    }
}

/// A row in whole steps, and its rest with zeros behind it.
#[inline(always)]
fn parts_of(row: &[f32]) -> (&[[f32; PARTS]], [f32; PARTS]) {
    let (whole, rest) = row.as_chunks::<PARTS>();
    let mut padded = [0.0; PARTS];
    padded[..rest.len()].copy_from_slice(rest);
    (whole, padded)
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
                let sum = block::<Portable, 1, 1>(&w[j * cols..], &x[i * cols..], cols)[0][0];
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
