//! Graphs, which are only ever captured here, never built node by node.

use std::ffi::c_ulonglong;
use std::sync::Arc;

use crate::driver::capture::{Graph, GraphExec};
use crate::driver::codes::Code;
use crate::driver::{Handle, current};

use super::args::Out;
use super::entries;

/// Flags of `cuGraphInstantiate`: to free at a launch, to upload, to launch from the device, and to
/// heed priorities.
const KNOWN: c_ulonglong = 0xf;
const FROM_DEVICE: c_ulonglong = 4;

entries! {
    fn cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: c_ulonglong) = current(|driver, _| {
        if flags & !KNOWN != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & FROM_DEVICE != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let Graph { context, nodes } = driver.graphs.get(graph)?;
        let exec = GraphExec { context: *context, nodes: Arc::clone(nodes), flags };
        driver.counters.add("graphs", 1);
        out.put(driver.execs.insert(exec))
    });

    fn cuGraphExecGetFlags(exec: Handle, out: Out<c_ulonglong>) = current(|driver, _| {
        out.put(driver.execs.get(exec)?.flags)
    });

    fn cuGraphLaunch(exec: Handle, stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        if driver.execs.get(exec)?.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        driver.launch_graph(exec, stream)
    });

    fn cuGraphUpload(exec: Handle, stream: Handle) = current(|driver, context| {
        driver.stream(context, stream)?;
        driver.execs.get(exec)?;
        driver.counters.add("graph_uploads", 1);
        Ok(())
    });

    fn cuGraphExecDestroy(exec: Handle) = current(|driver, _| driver.execs.remove(exec).map(|_| ()));

    fn cuGraphDestroy(graph: Handle) = current(|driver, _| driver.graphs.remove(graph).map(|_| ()));

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) = current(|driver, _| {
        if !nodes.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        count.put(driver.graphs.get(graph)?.nodes.len())
    });
}
