//! DeltaNet: the gated delta rule, head by head, token after token.

use candor_arch::{DeltaNet, KeyOrder, NodeId, Op};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Prepare, StepPtrs};
use crate::state::RecurrentPlace;

/// Threads of a block: `THREADS` of the kernel's file.
const THREADS: u32 = 256;

/// Columns of a head's matrix that a block keeps in shared memory, at most: a warp reads a row of
/// them at once.
const COLUMNS_MAX: usize = 32;

/// What the matrix of a block may take: with the rest it stays below the 48 KB that every card has
/// without being asked.
const MATRIX_BYTES_MAX: usize = 32 << 10;

struct Told {
    kernel: Kernel,
    net: DeltaNet,
    inputs: [DevicePtr; 5],
    out: DevicePtr,
    state: RecurrentPlace,
    step: StepPtrs,
    columns: usize,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::DeltaNet(net) = node.op else {
        unreachable!("only delta nets come here");
    };
    let layer = node.layer.expect("a delta net belongs to a layer");
    let columns = columns(net.state_size);
    Ok(Box::new(Told {
        kernel: p.kernel_with_shared("delta_net", "delta_net", shared(net.state_size, columns))?,
        net,
        inputs: [
            p.value(node.inputs[0]),
            p.value(node.inputs[1]),
            p.value(node.inputs[2]),
            p.vector(net.a).ptr,
            p.vector(net.dt).ptr,
        ],
        out: p.value(nodes[0]),
        state: p.recurrent(layer),
        step: p.step,
        columns,
    }))
}

/// A power of two, so that the threads of a block share the columns out evenly.
fn columns(size: usize) -> usize {
    let fit = (MATRIX_BYTES_MAX / (4 * size)).clamp(1, COLUMNS_MAX);
    1 << fit.ilog2()
}

/// Dynamic shared memory of a block: the matrix, query and key, a number for each thread, and one
/// for each column.
fn shared(size: usize, columns: usize) -> usize {
    4 * ((columns + 2) * size + THREADS as usize + columns)
}

impl Launch for Told {
    fn launch(&self, forward: &Forward<'_>) -> Result<(), Fault> {
        let (net, runs) = (&self.net, forward.runs_max());
        let tiles = net.state_size.div_ceil(self.columns);
        let grid = Grid::of3([tiles * net.n_value_heads, runs, 1], THREADS)
            .shared(shared(net.state_size, self.columns));
        let pair = |low: usize, high: u32| low as u64 | u64::from(high) << 32;
        let is_grouped = u32::from(net.key_order == KeyOrder::Grouped);
        let args = Args::new()
            .words(&self.inputs.map(|ptr| ptr.0))
            .ptr(self.out)
            .ptr(self.state.heads)
            .u64(self.state.copy_values as u64)
            .u64(self.state.slot_values as u64)
            .runs(&self.step, runs)
            .words(&[
                pair(net.n_key_heads, net.n_value_heads as u32),
                pair(net.state_size, is_grouped),
                pair(net.eps.to_bits() as usize, self.columns as u32),
            ]);
        forward.device.launch(&self.kernel, grid, args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fits_the_smallest_card_whatever_the_size_of_a_head() {
        for (size, expected) in [
            (1, 32),
            (32, 32),
            (128, 32),
            (256, 32),
            (384, 16),
            (1024, 8),
        ] {
            assert_eq!(columns(size), expected, "{size}");
            assert!(shared(size, columns(size)) <= 48 << 10, "{size}");
        }
    }
}
