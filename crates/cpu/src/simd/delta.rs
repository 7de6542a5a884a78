//! One token of the gated delta rule for one head.
//!
//! The head's matrix lies row after row by the elements of the key, so that a row has a column for
//! each element of the value: every sum over the key then goes down the columns, side by side, and
//! none goes across a register. A column's sum is kept in two parts, even and odd rows, which are
//! added at the end; multiplication and addition are rounded apart. So every instruction set gives
//! the same bits, whichever width it takes the columns in.

/// What one token tells the matrix of one head, and what it reads from it.
pub(crate) struct DeltaStep<'a> {
    /// Rows by the key's elements, columns by the value's.
    pub(crate) state: &'a mut [f32],
    pub(crate) query: &'a [f32],
    pub(crate) key: &'a [f32],
    pub(crate) value: &'a [f32],
    /// What stays of the matrix.
    pub(crate) decay: f32,
    /// How much of the difference is taken in.
    pub(crate) beta: f32,
    /// What the result is multiplied with.
    pub(crate) scale: f32,
    /// One number for each element of the value.
    pub(crate) out: &'a mut [f32],
}

impl DeltaStep<'_> {
    /// Whether the shapes belong together.
    pub(super) fn fits(&self) -> bool {
        let n = self.key.len();
        self.query.len() == n
            && self.value.len() == self.out.len()
            && self.state.len() == n * self.value.len()
    }
}

/// # Safety
/// None is needed; it is as unsafe as the others of the table.
pub(super) unsafe fn portable(step: &mut DeltaStep<'_>) {
    columns_by::<16>(step);
}

/// Takes `WIDE` columns at a time, and what is left in smaller parts.
#[inline(always)]
pub(super) fn columns_by<const WIDE: usize>(step: &mut DeltaStep<'_>) {
    let n = step.value.len();
    let mut first = 0;
    while first < n {
        first += match n - first {
            left if left >= WIDE => columns::<WIDE>(step, first),
            8.. => columns::<8>(step, first),
            _ => columns::<1>(step, first),
        };
    }
}

/// `C` columns from `first` on; gives `C`. Rows go in pairs, each with sums of its own that stay in
/// registers.
#[inline(always)]
fn columns<const C: usize>(step: &mut DeltaStep<'_>, first: usize) -> usize {
    let n = step.value.len();
    let (decay, mut told) = (step.decay, [[0.0f32; C]; 2]);
    let pairs = step.state.chunks_exact(2 * n);
    let last = pairs.remainder();
    let (keys, odd_key) = step.key.as_chunks::<2>();
    for (rows, k) in pairs.zip(keys) {
        let rows = [of::<C>(&rows[first..]), of::<C>(&rows[n + first..])];
        for c in 0..C {
            told[0][c] += rows[0][c] * k[0];
            told[1][c] += rows[1][c] * k[1];
        }
    }
    for (row, k) in last.chunks_exact(n).zip(odd_key) {
        let row = of::<C>(&row[first..]);
        for c in 0..C {
            told[0][c] += row[c] * k;
        }
    }
    let value = of::<C>(&step.value[first..]);
    let mut change = [0.0f32; C];
    for c in 0..C {
        change[c] = (value[c] - (told[0][c] + told[1][c]) * decay) * step.beta;
    }
    let mut read = [[0.0f32; C]; 2];
    let (queries, odd_query) = step.query.as_chunks::<2>();
    let mut pairs = step.state.chunks_exact_mut(2 * n);
    for (rows, (k, q)) in pairs.by_ref().zip(keys.iter().zip(queries)) {
        let (even, odd) = rows.split_at_mut(n);
        let rows = [
            of_mut::<C>(&mut even[first..]),
            of_mut::<C>(&mut odd[first..]),
        ];
        for c in 0..C {
            let kept = [
                rows[0][c] * decay + change[c] * k[0],
                rows[1][c] * decay + change[c] * k[1],
            ];
            rows[0][c] = kept[0];
            rows[1][c] = kept[1];
            read[0][c] += kept[0] * q[0];
            read[1][c] += kept[1] * q[1];
        }
    }
    let last = pairs.into_remainder().chunks_exact_mut(n);
    for (row, (k, q)) in last.zip(odd_key.iter().zip(odd_query)) {
        let row = of_mut::<C>(&mut row[first..]);
        for c in 0..C {
            row[c] = row[c] * decay + change[c] * k;
            read[0][c] += row[c] * q;
        }
    }
    for (c, out) in step.out[first..][..C].iter_mut().enumerate() {
        *out = (read[0][c] + read[1][c]) * step.scale;
    }
    C
}

/// The first `C` of some numbers, of which there are so many.
#[inline(always)]
fn of<const C: usize>(numbers: &[f32]) -> &[f32; C] {
    numbers.first_chunk().expect("the columns are there")
}

/// The same to be written.
#[inline(always)]
fn of_mut<const C: usize>(numbers: &mut [f32]) -> &mut [f32; C] {
    numbers.first_chunk_mut().expect("the columns are there")
}
