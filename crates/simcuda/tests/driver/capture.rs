//! What a capture takes, and what ends it.

use std::ptr::null_mut;

use cudarc::driver::sys;
use simcuda::{Library, scenario};

use crate::rig::{NON_BLOCKING, Rig, code, ok, peek, poke};

/// Does something while the rig's stream captures: the call's code has to be this one, and the
/// capture has to be lost, or kept.
#[track_caller]
fn check(rig: &Rig, what: &str, call: impl FnOnce() -> i32, expected: i32, lost: bool) {
    assert_eq!(rig.begin_capture(), 0, "{what}");
    assert_eq!(call(), expected, "{what}");
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    ok!(cuStreamIsCapturing(rig.stream, &raw mut status));
    assert_eq!(status as i32, if lost { 2 } else { 1 }, "{what}");
    let (code, graph) = rig.end_capture();
    assert_eq!(
        (code, graph.is_null()),
        if lost { (901, true) } else { (0, false) },
        "{what}"
    );
    // The stream is of use again.
    ok!(cuStreamSynchronize(rig.stream));
}

scenario!(what_may_wait_ends_a_capture, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let (mut address, mut at, mut event, mut old) = (0, null_mut(), null_mut(), null_mut());
    ok!(cuEventCreate(&raw mut event, 2));
    ok!(cuEventCreate(&raw mut old, 2));
    ok!(cuEventRecord(old, rig.stream));
    let mut host = [0.0_f32; 4];
    let to = host.as_mut_ptr().cast();
    let stream = rig.stream;
    check(
        &rig,
        "waiting for it",
        || code!(cuStreamSynchronize(stream)),
        900,
        true,
    );
    check(
        &rig,
        "asking it",
        || code!(cuStreamQuery(stream)),
        900,
        true,
    );
    check(
        &rig,
        "waiting for all",
        || code!(cuCtxSynchronize()),
        900,
        true,
    );
    check(
        &rig,
        "allocating",
        || code!(cuMemAlloc_v2(&raw mut address, 16)),
        900,
        true,
    );
    check(
        &rig,
        "allocating in it",
        || code!(cuMemAllocAsync(&raw mut address, 16, stream)),
        900,
        true,
    );
    check(&rig, "freeing", || code!(cuMemFree_v2(here)), 900, true);
    check(
        &rig,
        "page-locking",
        || code!(cuMemHostAlloc(&raw mut at, 16, 0)),
        900,
        true,
    );
    check(
        &rig,
        "copying at once",
        || code!(cuMemcpyDtoH_v2(to, here, 16)),
        900,
        true,
    );
    check(
        &rig,
        "ordinary memory",
        || code!(cuMemcpyHtoDAsync_v2(here, to, 16, stream)),
        900,
        true,
    );
    check(
        &rig,
        "to ordinary memory",
        || code!(cuMemcpyDtoHAsync_v2(to, here, 16, stream)),
        900,
        true,
    );
    check(
        &rig,
        "asking an event",
        || code!(cuEventQuery(old)),
        900,
        true,
    );
    check(
        &rig,
        "an event of before",
        || code!(cuStreamWaitEvent(stream, old, 0)),
        905,
        true,
    );
    check(&rig, "beginning again", || rig.begin_capture(), 401, false);
    check(
        &rig,
        "a fill",
        || code!(cuMemsetD8Async(here, 0, 16, stream)),
        0,
        false,
    );
    check(
        &rig,
        "an event never recorded",
        || code!(cuStreamWaitEvent(stream, event, 0)),
        0,
        false,
    );
    check(
        &rig,
        "recording",
        || code!(cuEventRecord(event, stream)),
        0,
        false,
    );
    assert_eq!(
        code!(cuEventSynchronize(event)),
        907,
        "last recorded in a capture"
    );
    assert_eq!(rig.read(here, 4), [0.0; 4]);
});

scenario!(after_it_is_lost_everything_is_refused, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let function = rig.function("add_one");
    assert_eq!(rig.begin_capture(), 0);
    assert_eq!(rig.launch(function, here, 4), 0);
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), 900);
    assert_eq!(rig.launch(function, here, 4), 901);
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), 901);
    assert_eq!(rig.end_capture().0, 901);
    assert_eq!(rig.end_capture().0, 401, "none goes on");
    assert_eq!(
        rig.read(here, 4),
        [0.0; 4],
        "what was captured does not run"
    );
});

scenario!(other_threads_and_streams_go_on, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let (context, stream) = (rig.context as u64, rig.stream as u64);
    assert_eq!(rig.begin_capture(), 0);
    let other = std::thread::spawn(move || {
        ok!(cuCtxSetCurrent(context as sys::CUcontext));
        let (mut address, mut graph) = (0, null_mut());
        ok!(cuMemAlloc_v2(&raw mut address, 16));
        code!(cuStreamEndCapture(stream as sys::CUstream, &raw mut graph))
    });
    assert_eq!(
        other.join().unwrap(),
        908,
        "it may not end what this thread began"
    );
    let mut beside = null_mut();
    ok!(cuStreamCreate(&raw mut beside, NON_BLOCKING));
    ok!(cuMemsetD32Async(here, 0x3f80_0000, 4, beside));
    ok!(cuStreamSynchronize(beside));
    assert_eq!(rig.end_capture().0, 0);
    assert_eq!(rig.read(here, 4), [1.0; 4]);
});

scenario!(the_default_stream_captures_nothing, "", |_: Library| {
    let mut rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let own = rig.stream;
    rig.stream = null_mut();
    assert_eq!(rig.begin_capture(), 900);
    ok!(cuStreamCreate(&raw mut rig.stream, 0));
    assert_eq!(rig.begin_capture(), 0);
    let implicit = code!(cuMemsetD8Async(here, 0, 16, null_mut()));
    assert_eq!(
        implicit, 906,
        "the default stream would have to wait for the captured one"
    );
    assert_eq!(rig.end_capture().0, 901);
    ok!(cuStreamSynchronize(own));
});

scenario!(
    a_graph_reads_and_writes_what_stands_there_then,
    "",
    |library: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[0.0; 4]);
        let function = rig.function("add_one");
        let (from, to) = (rig.pinned(4), rig.pinned(4));
        assert_eq!(rig.begin_capture(), 0);
        ok!(cuMemcpyHtoDAsync_v2(here, from.cast(), 16, rig.stream));
        assert_eq!(rig.launch(function, here, 4), 0);
        ok!(cuMemcpyDtoHAsync_v2(to.cast(), here, 16, rig.stream));
        let (code, graph) = rig.end_capture();
        assert_eq!(code, 0);
        let mut nodes = 0;
        ok!(cuGraphGetNodes(graph, null_mut(), &raw mut nodes));
        assert_eq!(nodes, 3);
        let exec = rig.instantiate(graph);
        ok!(cuGraphDestroy(graph));
        for value in [1.0, 10.0] {
            poke(from, &[value; 4]);
            ok!(cuGraphLaunch(exec, rig.stream));
            ok!(cuStreamSynchronize(rig.stream));
            assert_eq!(peek(to, 4), [value + 1.0; 4]);
        }
        ok!(cuGraphLaunch(exec, rig.stream));
        // What is queued runs although its graph is gone.
        ok!(cuGraphExecDestroy(exec));
        assert_eq!(code!(cuGraphLaunch(exec, rig.stream)), 400);
        ok!(cuStreamSynchronize(rig.stream));
        let counters = library.counters();
        assert_eq!((counters.graph_launches(), counters.runs()), (3, 3));
        assert_eq!(
            counters.launches_of("add_one"),
            3,
            "capturing is not launching"
        );
    }
);

scenario!(
    a_graph_does_not_outlive_its_host_memory,
    "",
    |library: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[0.0; 4]);
        let from = rig.pinned(4);
        assert_eq!(rig.begin_capture(), 0);
        ok!(cuMemcpyHtoDAsync_v2(here, from.cast(), 16, rig.stream));
        let exec = rig.instantiate(rig.end_capture().1);
        ok!(cuMemFreeHost(from.cast()));
        ok!(cuGraphLaunch(exec, rig.stream));
        assert_eq!(code!(cuStreamSynchronize(rig.stream)), 700);
        assert!(library.fault().is_some());
    }
);
