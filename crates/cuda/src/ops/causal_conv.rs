//! CausalConv: silu of a weighted sum over each channel's last values.

use candor_arch::{NodeId, Op};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Prepare, StepPtrs};
use crate::state::RecurrentPlace;

/// Channels of a block, and its threads: `CHANNELS` and `LANES` of the kernel's file.
const CHANNELS: usize = 32;
const THREADS: u32 = 256;

struct CausalConv {
    kernel: Kernel,
    input: DevicePtr,
    weight: DevicePtr,
    out: DevicePtr,
    state: RecurrentPlace,
    step: StepPtrs,
    channels: usize,
    taps: usize,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::CausalConv { weight, taps } = node.op else {
        unreachable!("only convolutions come here");
    };
    let layer = node.layer.expect("a convolution belongs to a layer");
    Ok(Box::new(CausalConv {
        kernel: p.kernel("causal_conv", "causal_conv")?,
        input: p.value(node.inputs[0]),
        weight: p.vector(weight).ptr,
        out: p.value(nodes[0]),
        state: p.recurrent(layer),
        step: p.step,
        channels: node.width,
        taps,
    }))
}

impl Launch for CausalConv {
    fn launch(&self, forward: &Forward<'_>) -> Result<(), Fault> {
        let runs = forward.runs_max();
        let grid = Grid::of3([self.channels.div_ceil(CHANNELS), runs, 1], THREADS);
        let args = Args::new()
            .ptr(self.input)
            .ptr(self.weight)
            .ptr(self.out)
            .ptr(self.state.conv)
            .u64(self.state.copy_values as u64)
            .u64(self.state.slot_values as u64)
            .runs(&self.step, runs)
            .size(self.channels)
            .size(self.taps);
        forward.device.launch(&self.kernel, grid, args)
    }
}
