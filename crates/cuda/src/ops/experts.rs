//! The operation `experts`.

use candor_arch::NodeId;

use crate::device::Fault;
use crate::forward::Launch;
use crate::prepare::Prepare;

pub(crate) fn prepare(_p: &mut Prepare<'_>, _nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    Err(Fault::NoKernel {
        name: String::from("experts"),
    })
}
