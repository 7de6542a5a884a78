//! Embed: a row of the table for each token, read from the file on either path.

use candor_arch::{NodeId, WeightId};

use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId, table: WeightId) -> Result<(), Stopped> {
    let table = f.machine.weights.stored(table);
    let tokens: Vec<usize> = (0..f.n_rows()).map(|row| f.token(row)).collect();
    let width = table.cols;
    let mut out = f.work.values.take(node, tokens.len() * width);
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            table.dequantize(tokens[row]..tokens[row] + 1, out);
        },
    );
    f.work.values.put(node, out);
    filled
}
