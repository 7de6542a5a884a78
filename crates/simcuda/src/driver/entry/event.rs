//! Events.

use std::ffi::c_uint;

use crate::driver::codes::Code;
use crate::driver::stream::Event;
use crate::driver::work::Work;
use crate::driver::{Driver, Handle, Outcome, current};

use super::args::Out;
use super::entries;

/// `CU_EVENT_BLOCKING_SYNC`, `..DISABLE_TIMING` and `..INTERPROCESS`.
const BLOCKING: c_uint = 1;
const NO_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// What one piece of work counts for in the time between two events. The simulated card has no
/// time; that later events are later is all that can be relied on.
const MILLISECONDS_EACH: f32 = 0.001;

fn record(driver: &mut Driver, context: Handle, event: Handle, stream: Handle) -> Outcome<()> {
    let stream = driver.stream(context, stream)?;
    if driver.events.get(event)?.context != context {
        return Err(Code::INVALID_HANDLE);
    }
    let capture = driver.streams.get(stream)?.capture;
    match capture {
        // A captured record is a dependency, and a graph of one stream has its order already.
        Some(capture) => driver.capture_work(capture, Work::Nothing)?,
        None => driver.submit(stream, Work::Record(event))?,
    }
    let mark = driver.mark(stream)?;
    let event = driver.events.get_mut(event)?;
    event.capture = capture;
    event.mark = capture.is_none().then_some(mark);
    event.clock = None;
    Ok(())
}

fn elapsed(driver: &Driver, start: Handle, end: Handle) -> Outcome<f32> {
    let mut clocks = [0; 2];
    for (clock, handle) in clocks.iter_mut().zip([start, end]) {
        let event = driver.events.get(handle)?;
        if event.flags & NO_TIMING != 0 || event.mark.is_none() {
            return Err(Code::INVALID_HANDLE);
        }
        *clock = event.clock.ok_or(Code::NOT_READY)?;
    }
    let [start, end] = clocks;
    Ok((end as f32 - start as f32) * MILLISECONDS_EACH)
}

entries! {
    fn cuEventCreate(out: Out<Handle>, flags: c_uint) = current(|driver, context| {
        if flags & !(BLOCKING | NO_TIMING | INTERPROCESS) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let event = Event { context, flags, mark: None, clock: None, capture: None };
        out.put(driver.events.insert(event))
    });

    fn cuEventDestroy_v2(event: Handle) = current(|driver, _| {
        driver.events.remove(event).map(|_| ())
    });

    fn cuEventRecord(event: Handle, stream: Handle) = current(|driver, context| {
        record(driver, context, event, stream)
    });

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint) = current(|driver, context| {
        if flags != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        record(driver, context, event, stream)
    });

    fn cuEventQuery(event: Handle) = current(|driver, _| {
        driver.may_wait()?;
        driver.counters.add("event_queries", 1);
        match driver.event_mark(event)? {
            Some(mark) => driver.step_to(mark),
            None => Ok(()),
        }
    });

    fn cuEventSynchronize(event: Handle) = current(|driver, _| {
        driver.may_wait()?;
        let blocking = driver.events.get(event)?.flags & BLOCKING != 0;
        driver.counters.add(if blocking { "blocking_event_syncs" } else { "spinning_event_syncs" }, 1);
        match driver.event_mark(event)? {
            Some(mark) => driver.wait_for(mark),
            None => Ok(()),
        }
    });

    fn cuEventElapsedTime(out: Out<f32>, start: Handle, end: Handle) = current(|driver, _| {
        out.put(elapsed(driver, start, end)?)
    });
}
