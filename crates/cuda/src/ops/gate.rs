//! Gate: x ⊙ activation(gate), where a value of the gate may be for several of x.

use candor_arch::{Activation, NodeId, Op};

use super::flat::by_rows;
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Kernel};
use crate::prepare::Prepare;

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Gate { activation } = node.op else {
        unreachable!("only gates come here");
    };
    let [x, gates] = [node.inputs[0], node.inputs[1]];
    Ok(Box::new(Gate {
        kernel: p.kernel("gate", "gate")?,
        x: p.value(x),
        gates: p.value(gates),
        out: p.value(nodes[0]),
        width: node.width,
        n_gates: p.node(gates).width,
        activation,
    }))
}

struct Gate {
    kernel: Kernel,
    x: DevicePtr,
    gates: DevicePtr,
    out: DevicePtr,
    width: usize,
    n_gates: usize,
    activation: Activation,
}

impl Launch for Gate {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let args = Args::new()
            .ptr(self.x)
            .ptr(self.gates)
            .ptr(self.out)
            .size(self.width)
            .size(self.n_gates)
            .i32(number_of(self.activation));
        f.device.launch(&self.kernel, by_rows(f, self.width), args)
    }
}

/// As the kernels number them (kernels/include/activation.cuh).
pub(super) fn number_of(activation: Activation) -> i32 {
    match activation {
        Activation::Silu => 0,
        Activation::Gelu => 1,
        Activation::Sigmoid => 2,
        Activation::ClampedSwiglu => 3,
    }
}
