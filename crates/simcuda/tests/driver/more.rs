//! What fewer programs use: barriers and variables of modules, launches with a configuration, memory of the
//! caller's that is made page-locked, and what can be asked about pointers, streams and functions.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys;
use simcuda::{Library, scenario};

use crate::rig::{NON_BLOCKING, Rig, code, ok};

/// Copies a variable of the module to where its parameter points.
const WITH_VARIABLE: &str = ".version 8.0
.target sm_75
.address_size 64
.global .align 4 .u32 answer = 42;
.visible .entry tell(.param .u64 tell_at)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [tell_at];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [answer];
    st.global.u32 [%rd2], %r1;
    ret;
}
";

/// Each of 64 threads tells its number to the thread as far from the other end, which writes it.
const MIRROR: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry mirror(.param .u64 mirror_at)
{
    .shared .align 4 .b8 room[256];
    .reg .b32 %r<8>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [mirror_at];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, room;
    shl.b32 %r3, %r1, 2;
    add.s32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    add.s32 %r7, %r2, 252;
    sub.s32 %r5, %r7, %r3;
    ld.shared.u32 %r6, [%r5];
    cvt.rn.f32.u32 %f1, %r6;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.f32 [%rd4], %f1;
    ret;
}
";

/// Runs the mirror, and tells how waiting for it ended and whether it did its work.
fn mirrors() -> (i32, bool) {
    let rig = Rig::new();
    let (mut module, mut function) = (null_mut(), null_mut());
    let text = CString::new(MIRROR).unwrap();
    ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    ok!(cuModuleGetFunction(
        &raw mut function,
        module,
        c"mirror".as_ptr()
    ));
    let there = rig.floats(&[-1.0; 64]);
    assert_eq!(rig.launch_shape(function, [1, 64, 0], there, 0), 0);
    let pinned = rig.pinned(64);
    ok!(cuMemcpyDtoHAsync_v2(pinned.cast(), there, 256, rig.stream));
    let code = code!(cuStreamSynchronize(rig.stream));
    let expected = (0..64).rev().map(|i| i as f32);
    (code, crate::rig::peek(pinned, 64).into_iter().eq(expected))
}

scenario!(threads_of_a_block_meet_at_a_barrier, "", |_: Library| {
    assert_eq!(mirrors(), (0, true));
});

scenario!(
    a_missing_barrier_is_a_race,
    "mutate=mirror:drop:bar.sync:1",
    |library: Library| {
        assert_eq!(mirrors(), (719, false));
        let fault = library.fault().unwrap();
        assert!(
            fault.contains("mirror") && fault.contains("without a barrier"),
            "{fault}"
        );
    }
);

scenario!(
    a_missing_barrier_gives_wrong_numbers_where_nobody_looks,
    "mutate=mirror:drop:bar.sync:1,races=off",
    |_: Library| assert_eq!(mirrors(), (0, false))
);

/// As `CUlaunchConfig` is for these launches.
fn config(stream: sys::CUstream) -> sys::CUlaunchConfig {
    sys::CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: null_mut(),
        numAttrs: 0,
    }
}

scenario!(a_module_has_variables, "", |library: Library| {
    let rig = Rig::new();
    let (mut module, mut function) = (null_mut(), null_mut());
    let text = CString::new(WITH_VARIABLE).unwrap();
    ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    ok!(cuModuleGetFunction(
        &raw mut function,
        module,
        c"tell".as_ptr()
    ));
    let (mut variable, mut bytes) = (0, 0);
    ok!(cuModuleGetGlobal_v2(
        &raw mut variable,
        &raw mut bytes,
        module,
        c"answer".as_ptr()
    ));
    assert_eq!(bytes, 4);
    let mut there = rig.floats(&[0.0]);
    let mut values: [*mut c_void; 1] = [(&raw mut there).cast()];
    let tell = |values: *mut *mut c_void| {
        let config = config(rig.stream);
        ok!(cuLaunchKernelEx(
            &raw const config,
            function,
            values,
            null_mut()
        ));
        rig.read(there, 1)[0].to_bits()
    };
    assert_eq!(tell(values.as_mut_ptr()), 42);
    ok!(cuMemcpyHtoD_v2(variable, (&raw const bytes).cast(), 4));
    assert_eq!(tell(values.as_mut_ptr()), 4);
    ok!(cuModuleUnload(module));
    assert_eq!(code!(cuModuleUnload(module)), 400);
    let config = config(rig.stream);
    let gone = code!(cuLaunchKernelEx(
        &raw const config,
        function,
        values.as_mut_ptr(),
        null_mut()
    ));
    assert_eq!(gone, 400);
    assert_eq!(library.counters().launches_of("tell"), 2);
});

scenario!(
    memory_of_the_callers_is_late_once_it_is_registered,
    "",
    |_: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[5.0; 4]);
        let mut own = [0.0_f32; 4];
        let at: *mut c_void = own.as_mut_ptr().cast();
        ok!(cuMemHostRegister_v2(at, 16, 0));
        assert_eq!(code!(cuMemHostRegister_v2(at, 4, 0)), 712);
        ok!(cuMemcpyDtoHAsync_v2(at, here, 16, rig.stream));
        assert_eq!(own, [0.0; 4], "nobody has waited yet");
        ok!(cuMemHostUnregister(at));
        assert_eq!(own, [5.0; 4], "all work has run before it was given back");
        assert_eq!(code!(cuMemHostUnregister(at)), 713);
        assert_eq!(
            code!(cuMemFreeHost(at)),
            1,
            "the driver did not allocate it"
        );
    }
);

scenario!(a_pointer_says_what_it_points_to, "", |_: Library| {
    use sys::CUpointer_attribute as A;
    let rig = Rig::new();
    let (here, pinned) = (rig.floats(&[0.0; 4]), rig.pinned(4));
    let ask = |attribute, address: u64| {
        let mut answer = 0_u64;
        let code = code!(cuPointerGetAttribute(
            (&raw mut answer).cast(),
            attribute,
            address
        ));
        (code, answer)
    };
    for (attribute, address, expected) in [
        (A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, here + 4, (0, 2)),
        (A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned as u64, (0, 1)),
        (A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 8, (1, 0)),
        (
            A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            here + 4,
            (0, here),
        ),
        (A::CU_POINTER_ATTRIBUTE_RANGE_SIZE, here + 4, (0, 16)),
        (A::CU_POINTER_ATTRIBUTE_BUFFER_ID, here, (801, 0)),
    ] {
        assert_eq!(ask(attribute, address), expected, "{attribute:?}");
    }
    // In the one space of addresses a copy finds out by itself where it goes.
    ok!(cuMemcpy(pinned as u64, here, 16));
    assert_eq!(crate::rig::peek(pinned, 4), [0.0; 4]);
});

scenario!(
    streams_and_functions_say_what_they_are,
    "driver=12000",
    |_: Library| {
        use sys::CUfunction_attribute as A;
        let rig = Rig::new();
        let (mut stream, mut flags, mut priority) = (null_mut(), 9, 9);
        ok!(cuStreamCreateWithPriority(
            &raw mut stream,
            NON_BLOCKING,
            -100
        ));
        ok!(cuStreamGetFlags(stream, &raw mut flags));
        ok!(cuStreamGetPriority(stream, &raw mut priority));
        assert_eq!((flags, priority), (NON_BLOCKING, -5));
        assert_eq!(code!(cuStreamCreate(&raw mut stream, 4)), 1);
        let function = rig.function("add_one");
        for (attribute, expected) in [
            (A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
            (A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 0),
            (A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 0),
            (A::CU_FUNC_ATTRIBUTE_NUM_REGS, 40),
            (A::CU_FUNC_ATTRIBUTE_PTX_VERSION, 80),
            (A::CU_FUNC_ATTRIBUTE_BINARY_VERSION, 86),
        ] {
            let mut value = -1;
            ok!(cuFuncGetAttribute(&raw mut value, attribute, function));
            assert_eq!(value, expected, "{attribute:?}");
        }
    }
);

scenario!(
    the_primary_context_takes_flags_before_it_is_made,
    "",
    |_: Library| {
        let (mut flags, mut active) = (9, 9);
        ok!(cuInit(0));
        ok!(cuDevicePrimaryCtxSetFlags_v2(0, 4));
        ok!(cuDevicePrimaryCtxGetState(
            0,
            &raw mut flags,
            &raw mut active
        ));
        assert_eq!((flags, active), (4, 0));
        let _rig = Rig::new();
        ok!(cuCtxGetFlags(&raw mut flags));
        ok!(cuDevicePrimaryCtxGetState(
            0,
            &raw mut flags,
            &raw mut active
        ));
        assert_eq!((flags, active), (4, 1));
    }
);
