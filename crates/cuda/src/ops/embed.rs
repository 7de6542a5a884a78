//! Embed: the rows of the table that belong to the tokens.

use candor_arch::{NodeId, Op};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::Prepare;
use crate::weights::Matrix;

/// Threads of a block, and values of a thread: 32 of the types of blocks, else eight.
const THREADS: usize = 128;

struct Embed {
    kernel: Kernel,
    table: Matrix,
    token: DevicePtr,
    out: DevicePtr,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let Op::Embed { table } = p.node(nodes[0]).op else {
        unreachable!("only embeddings come here");
    };
    let table = p.matrix(table);
    Ok(Box::new(Embed {
        kernel: p.kernel(&table.module("embed"), "embed_rows")?,
        table,
        token: p.step.token,
        out: p.value(nodes[0]),
    }))
}

impl Launch for Embed {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let of_thread = if self.table.takes_codes() { 32 } else { 8 };
        let parts = self.table.cols.div_ceil(of_thread * THREADS);
        let args = Args::new()
            .ptr(self.table.ptr)
            .u64(self.table.row_bytes as u64)
            .ptr(self.token)
            .ptr(self.out)
            .size(self.table.rows)
            .size(self.table.cols);
        let grid = Grid::of3([parts, f.rows, 1], THREADS as u32);
        f.device.launch(&self.kernel, grid, args)
    }
}
