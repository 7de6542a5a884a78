//! Part: some values of every period of a row.

use candor_arch::{NodeId, Op};

use super::flat::by_rows;
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Kernel};
use crate::prepare::Prepare;

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Part { period, start, len } = node.op else {
        unreachable!("only parts come here");
    };
    Ok(Box::new(Part {
        kernel: p.kernel("part", "part")?,
        x: p.value(node.inputs[0]),
        out: p.value(nodes[0]),
        input_width: p.node(node.inputs[0]).width,
        width: node.width,
        places: [period, start, len],
    }))
}

struct Part {
    kernel: Kernel,
    x: DevicePtr,
    out: DevicePtr,
    input_width: usize,
    width: usize,
    /// Period, start and length.
    places: [usize; 3],
}

impl Launch for Part {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let [period, start, len] = self.places;
        let args = Args::new()
            .ptr(self.x)
            .ptr(self.out)
            .size(self.input_width)
            .size(self.width)
            .size(period)
            .size(start)
            .size(len);
        f.device.launch(&self.kernel, by_rows(f, self.width), args)
    }
}
