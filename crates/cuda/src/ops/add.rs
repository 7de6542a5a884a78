//! Add: the residual, alone or in one launch with the normalisation of its sum.

use candor_arch::{NodeId, Op};

use super::flat::Flat;
use super::rms_norm::{Addend, PartNorm, RowNorm};
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::{Args, Kernel};
use crate::prepare::Prepare;

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let sum = Sum::prepare(p, nodes[0])?;
    let Some(normed) = nodes.get(1) else {
        return Ok(Box::new(sum));
    };
    let Op::RmsNorm { weight, .. } = p.node(*normed).op else {
        unreachable!("the pattern ends with a normalisation");
    };
    if p.vector(weight).len == p.node(*normed).width {
        let addend = Addend {
            inputs: sum.inputs,
            sum: sum.out,
        };
        Ok(Box::new(RowNorm::prepare(p, *normed, Some(addend))?))
    } else {
        Ok(Box::new((sum, PartNorm::prepare(p, *normed)?)))
    }
}

struct Sum {
    kernel: Kernel,
    inputs: [DevicePtr; 2],
    out: DevicePtr,
    width: usize,
}

impl Sum {
    fn prepare(p: &mut Prepare<'_>, id: NodeId) -> Result<Self, Fault> {
        let node = p.node(id);
        Ok(Self {
            kernel: p.kernel("add", "add")?,
            inputs: [p.value(node.inputs[0]), p.value(node.inputs[1])],
            out: p.value(id),
            width: node.width,
        })
    }
}

impl Launch for Sum {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let flat = Flat::of(f, self.width);
        let args = Args::new()
            .ptr(self.inputs[0])
            .ptr(self.inputs[1])
            .ptr(self.out)
            .u64(flat.values);
        f.device.launch(&self.kernel, flat.grid, args)
    }
}
