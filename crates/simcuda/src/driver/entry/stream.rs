//! Streams and their capture.

use std::ffi::{c_int, c_uint};

use crate::driver::capture::Mode;
use crate::driver::codes::Code;
use crate::driver::work::{HostFunction, Work};
use crate::driver::{Handle, current};

use super::args::Out;
use super::context::PRIORITIES;
use super::entries;

entries! {
    fn cuStreamCreate(out: Out<Handle>, flags: c_uint) = current(|driver, context| {
        out.put(driver.create_stream(context, flags, 0)?)
    });

    fn cuStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) = current(|driver, context| {
        // A priority out of range is brought into it, as the interface says.
        let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
        out.put(driver.create_stream(context, flags, priority)?)
    });

    fn cuStreamDestroy_v2(stream: Handle) = current(|driver, context| {
        driver.destroy_stream(context, stream)
    });

    fn cuStreamGetCtx(stream: Handle, out: Out<Handle>) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        out.put(driver.streams.get(stream)?.context)
    });

    fn cuStreamGetFlags(stream: Handle, out: Out<c_uint>) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        out.put(driver.streams.get(stream)?.flags())
    });

    fn cuStreamGetPriority(stream: Handle, out: Out<c_int>) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        out.put(driver.streams.get(stream)?.priority)
    });

    fn cuStreamSynchronize(stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.not_while_capturing(stream)?;
        driver.counters.add("stream_syncs", 1);
        driver.synchronize(stream)
    });

    fn cuStreamQuery(stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.not_while_capturing(stream)?;
        let mark = driver.mark(stream)?;
        driver.step_to(mark)
    });

    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.wait_event(stream, event)
    });

    fn cuLaunchHostFunc(stream: Handle, function: Option<HostFunction>, data: usize) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        driver.counters.add("host_functions", 1);
        driver.submit(stream, Work::Host { function, data })
    });

    fn cuStreamBeginCapture_v2(stream: Handle, mode: c_int) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.begin_capture(context, stream, Mode::of(mode)?)
    });

    fn cuStreamEndCapture(stream: Handle, out: Out<Handle>) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        match driver.end_capture(stream) {
            Ok(graph) => out.put(graph),
            Err(code) => {
                out.put(0)?;
                Err(code)
            }
        }
    });

    fn cuStreamIsCapturing(stream: Handle, out: Out<c_int>) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        out.put(driver.capture_status(stream)? as c_int)
    });
}
