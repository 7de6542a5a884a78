//! Scale: factor · x.

use candor_arch::{NodeId, Op};

use super::flat::Flat;
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Kernel};
use crate::prepare::Prepare;

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Scale { factor } = node.op else {
        unreachable!("only scales come here");
    };
    Ok(Box::new(Scale {
        kernel: p.kernel("scale", "scale")?,
        x: p.value(node.inputs[0]),
        out: p.value(nodes[0]),
        width: node.width,
        factor,
    }))
}

struct Scale {
    kernel: Kernel,
    x: DevicePtr,
    out: DevicePtr,
    width: usize,
    factor: f32,
}

impl Launch for Scale {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let flat = Flat::of(f, self.width);
        let args = Args::new()
            .ptr(self.x)
            .ptr(self.out)
            .u64(flat.values)
            .f32(self.factor);
        f.device.launch(&self.kernel, flat.grid, args)
    }
}
