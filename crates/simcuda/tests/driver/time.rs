//! When work runs: never before somebody waits for it, and never in another order than was asked.

use std::ptr::null_mut;

use cudarc::driver::sys;
use simcuda::{Library, scenario};

use crate::rig::{NON_BLOCKING, Rig, code, ok, peek, poke};

fn event(flags: u32) -> sys::CUevent {
    let mut event = null_mut();
    ok!(cuEventCreate(&raw mut event, flags));
    event
}

scenario!(page_locked_memory_is_late_both_ways, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[1.0, 2.0]);
    let pinned = rig.pinned(2);
    ok!(cuMemcpyDtoHAsync_v2(pinned.cast(), here, 8, rig.stream));
    assert!(
        peek(pinned, 2).iter().all(|value| value.is_nan()),
        "nobody has waited yet"
    );
    ok!(cuStreamSynchronize(rig.stream));
    assert_eq!(peek(pinned, 2), [1.0, 2.0]);
    ok!(cuMemcpyHtoDAsync_v2(here, pinned.cast(), 8, rig.stream));
    poke(pinned, &[5.0, 6.0]);
    assert_eq!(
        rig.read(here, 2),
        [5.0, 6.0],
        "it was overwritten before it was read"
    );
});

scenario!(ordinary_memory_is_taken_at_once, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let mut source = [1.0_f32; 4];
    ok!(cuMemcpyHtoDAsync_v2(
        here,
        source.as_ptr().cast(),
        16,
        rig.stream
    ));
    source.fill(2.0);
    assert_eq!(rig.read(here, 4), [1.0; 4]);
    assert_eq!(source, [2.0; 4]);
    // A copy to ordinary memory waits for the stream.
    assert_eq!(rig.launch(rig.function("add_one"), here, 4), 0);
    let mut target = [0.0_f32; 4];
    ok!(cuMemcpyDtoHAsync_v2(
        target.as_mut_ptr().cast(),
        here,
        16,
        rig.stream
    ));
    assert_eq!(target, [2.0; 4]);
});

scenario!(
    a_copy_that_waits_does_not_wait_for_other_streams,
    "",
    |_: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[1.0; 4]);
        assert_eq!(rig.launch(rig.function("add_one"), here, 4), 0);
        let mut early = [0.0_f32; 4];
        ok!(cuMemcpyDtoH_v2(early.as_mut_ptr().cast(), here, 16));
        assert_eq!(
            early, [1.0; 4],
            "the stream is none that the default stream waits for"
        );
        assert_eq!(rig.read(here, 4), [2.0; 4]);
    }
);

scenario!(
    the_default_stream_waits_for_blocking_ones,
    "",
    |_: Library| {
        let mut rig = Rig::new();
        ok!(cuStreamCreate(&raw mut rig.stream, 0));
        let here = rig.floats(&[1.0; 4]);
        assert_eq!(rig.launch(rig.function("add_one"), here, 4), 0);
        let mut values = [0.0_f32; 4];
        ok!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), here, 16));
        assert_eq!(values, [2.0; 4]);
        // And they for it.
        ok!(cuMemsetD32_v2(here, 0, 4));
        assert_eq!(rig.launch(rig.function("add_one"), here, 4), 0);
        ok!(cuStreamSynchronize(rig.stream));
        let pinned = rig.pinned(4);
        ok!(cuMemcpyDtoHAsync_v2(pinned.cast(), here, 16, rig.stream));
        ok!(cuStreamSynchronize(rig.stream));
        assert_eq!(peek(pinned, 4), [1.0; 4]);
    }
);

scenario!(
    one_stream_waits_for_another_only_if_told,
    "",
    |_: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[1.0; 4]);
        let function = rig.function("add_one");
        let mut other = null_mut();
        ok!(cuStreamCreate(&raw mut other, NON_BLOCKING));
        let pinned = rig.pinned(8);
        let done = event(2);
        assert_eq!(rig.launch(function, here, 4), 0);
        ok!(cuEventRecord(done, rig.stream));
        ok!(cuMemcpyDtoHAsync_v2(pinned.cast(), here, 16, other));
        ok!(cuStreamWaitEvent(other, done, 0));
        ok!(cuMemcpyDtoHAsync_v2(
            pinned.wrapping_add(4).cast(),
            here,
            16,
            other
        ));
        ok!(cuStreamSynchronize(other));
        assert_eq!(peek(pinned, 4), [1.0; 4], "nothing made it wait");
        assert_eq!(peek(pinned.wrapping_add(4), 4), [2.0; 4]);
    }
);

scenario!(asking_again_and_again_comes_to_an_end, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let function = rig.function("add_one");
    let done = event(2);
    ok!(cuEventQuery(done));
    for _ in 0..3 {
        assert_eq!(rig.launch(function, here, 4), 0);
    }
    ok!(cuEventRecord(done, rig.stream));
    assert_eq!(rig.launch(function, here, 4), 0);
    let mut asked = 0;
    while code!(cuEventQuery(done)) == 600 {
        asked += 1;
    }
    assert_eq!(asked, 4, "three kernels and the record");
    assert_eq!(code!(cuStreamQuery(rig.stream)), 600);
    assert_eq!(code!(cuStreamQuery(rig.stream)), 0);
    assert_eq!(rig.read(here, 4), [4.0; 4]);
});

scenario!(time_is_counted_in_work, "", |library: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let function = rig.function("add_one");
    let (start, end, untimed) = (event(1), event(1), event(2));
    let mut elapsed = 0.0;
    assert_eq!(
        code!(cuEventElapsedTime(&raw mut elapsed, start, end)),
        400,
        "not recorded"
    );
    ok!(cuEventRecord(start, rig.stream));
    assert_eq!(rig.launch(function, here, 4), 0);
    ok!(cuEventRecord(end, rig.stream));
    assert_eq!(code!(cuEventElapsedTime(&raw mut elapsed, start, end)), 600);
    ok!(cuEventSynchronize(end));
    ok!(cuEventElapsedTime(&raw mut elapsed, start, end));
    assert!(elapsed > 0.0, "{elapsed}");
    ok!(cuEventRecord(untimed, rig.stream));
    ok!(cuEventSynchronize(untimed));
    assert_eq!(
        code!(cuEventElapsedTime(&raw mut elapsed, start, untimed)),
        400
    );
    let counters = library.counters();
    assert_eq!(
        (
            counters.blocking_event_syncs(),
            counters.spinning_event_syncs()
        ),
        (1, 1)
    );
});

scenario!(freeing_waits_for_the_work_that_uses_it, "", |_: Library| {
    let rig = Rig::new();
    let (here, kept) = (rig.floats(&[3.0; 4]), rig.floats(&[0.0; 4]));
    ok!(cuMemcpyDtoDAsync_v2(kept, here, 16, rig.stream));
    ok!(cuMemFree_v2(here));
    assert_eq!(rig.read(kept, 4), [3.0; 4]);
    let pinned = rig.pinned(4);
    poke(pinned, &[7.0; 4]);
    ok!(cuMemcpyHtoDAsync_v2(kept, pinned.cast(), 16, rig.stream));
    ok!(cuMemFreeHost(pinned.cast()));
    assert_eq!(rig.read(kept, 4), [7.0; 4]);
});

scenario!(
    memory_of_a_pool_goes_in_the_order_of_its_stream,
    "memory=1M",
    |library: Library| {
        let rig = Rig::new();
        let info = || {
            let (mut free, mut total) = (0, 0);
            ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
            (free, total)
        };
        let mut address = 0;
        ok!(cuMemAllocAsync(&raw mut address, 1000, rig.stream));
        assert_eq!(info(), ((1 << 20) - 1024, 1 << 20));
        ok!(cuMemsetD8Async(address, 0, 1000, rig.stream));
        ok!(cuMemFreeAsync(address, rig.stream));
        assert_eq!(code!(cuMemFreeAsync(address, rig.stream)), 1, "twice");
        assert_eq!(
            library.counters().alive(),
            1,
            "the stream has not got there"
        );
        ok!(cuStreamSynchronize(rig.stream));
        assert_eq!((library.counters().alive(), info().0), (0, 1 << 20));
        // A pool that keeps what it got counts as used.
        let (mut pool, mut keep) = (null_mut(), u64::MAX);
        ok!(cuDeviceGetDefaultMemPool(&raw mut pool, 0));
        let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        ok!(cuMemPoolSetAttribute(
            pool,
            threshold,
            (&raw mut keep).cast()
        ));
        ok!(cuMemAllocAsync(&raw mut address, 1000, rig.stream));
        ok!(cuMemFreeAsync(address, rig.stream));
        ok!(cuStreamSynchronize(rig.stream));
        assert_eq!(
            (library.counters().alive(), info().0),
            (0, (1 << 20) - 1024)
        );
        ok!(cuMemPoolTrimTo(pool, 0));
        assert_eq!(info().0, 1 << 20);
    }
);

scenario!(a_host_function_may_not_call_the_driver, "", |_: Library| {
    unsafe extern "C" fn called(data: *mut std::ffi::c_void) {
        // SAFETY: it was queued with a pointer to a number.
        let answer = unsafe { &mut *data.cast::<i32>() };
        *answer = code!(cuCtxSynchronize());
    }
    let rig = Rig::new();
    let mut answer = -1;
    ok!(cuLaunchHostFunc(
        rig.stream,
        Some(called),
        (&raw mut answer).cast()
    ));
    assert_eq!(answer, -1);
    ok!(cuStreamSynchronize(rig.stream));
    assert_eq!(answer, 800);
});
