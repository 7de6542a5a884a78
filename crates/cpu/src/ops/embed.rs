//! Embed: a row of the table for each token, read from the file on either path.
//!
//! The fast path holds the table once more where it is the output matrix too. So it lets go of the
//! file's pages behind the rows, which touch a new one with nearly every token.

use candor_arch::{NodeId, WeightId};

use crate::forward::{Forward, Stopped, each_row};

/// Rows between two releases: their pages, and what is mapped around them, are 4 MB.
const ROWS_KEPT: usize = 64;

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId, table: WeightId) -> Result<(), Stopped> {
    let stored = f.machine.weights.stored(table);
    let tokens: Vec<usize> = (0..f.n_rows()).map(|row| f.token(row)).collect();
    let width = stored.cols;
    let mut out = f.work.values.take(node, tokens.len() * width);
    let threads = &mut f.work.threads;
    let rows = tokens.chunks(ROWS_KEPT);
    let filled = rows
        .zip(out.chunks_mut(ROWS_KEPT * width))
        .try_for_each(|(tokens, out)| {
            let of_row = |row: usize, out: &mut [f32]| {
                stored.dequantize(tokens[row]..tokens[row] + 1, out);
            };
            each_row(&f.machine, f.cancel, threads, (out, width), of_row)?;
            if let (false, Some(first), Some(last)) = (
                f.machine.is_exact(),
                tokens.iter().min(),
                tokens.iter().max(),
            ) {
                f.machine.weights.release_rows(table, *first..last + 1);
            }
            Ok(())
        });
    f.work.values.put(node, out);
    filled
}
