//! Which call is refused with which code.

use std::ptr::{null, null_mut};

use cudarc::driver::sys;
use simcuda::{Library, scenario};

use crate::rig::{Rig, code, described, module_text, ok};

scenario!(nothing_works_before_the_start, "", |_: Library| {
    let (mut count, mut context) = (0, null_mut());
    assert_eq!(code!(cuDeviceGetCount(&raw mut count)), 3);
    assert_eq!(code!(cuDevicePrimaryCtxRetain(&raw mut context, 0)), 3);
    ok!(cuDriverGetVersion(&raw mut count));
    assert_eq!(count, 12_040);
    assert_eq!(code!(cuInit(1)), 1);
    ok!(cuInit(0));
    ok!(cuInit(0));
    ok!(cuDeviceGetCount(&raw mut count));
    assert_eq!(count, 1);
});

scenario!(each_thread_needs_a_context_of_its_own, "", |_: Library| {
    let rig = Rig::new();
    let context = rig.context as u64;
    let fresh = std::thread::spawn(move || {
        let (mut address, mut current) = (0, null_mut());
        let before = code!(cuMemAlloc_v2(&raw mut address, 16));
        ok!(cuCtxGetCurrent(&raw mut current));
        ok!(cuCtxSetCurrent(context as sys::CUcontext));
        (
            before,
            current.is_null(),
            code!(cuMemAlloc_v2(&raw mut address, 16)),
        )
    });
    assert_eq!(fresh.join().unwrap(), (201, true, 0));
    ok!(cuDevicePrimaryCtxRelease_v2(0));
    let mut address = 0;
    assert_eq!(code!(cuMemAlloc_v2(&raw mut address, 16)), 709);
    assert_eq!(code!(cuDevicePrimaryCtxRelease_v2(0)), 201);
});

scenario!(contexts_are_a_stack, "devices=2", |_: Library| {
    let rig = Rig::new();
    let (mut other, mut current, mut device) = (null_mut(), null_mut(), 7);
    ok!(cuCtxCreate_v3(&raw mut other, null_mut(), 0, 0, 1));
    ok!(cuCtxGetDevice(&raw mut device));
    assert_eq!(device, 1);
    // A stream of the other device's context is not known in this one.
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), 400);
    let mut far = 0;
    ok!(cuMemAlloc_v2(&raw mut far, 16));
    ok!(cuCtxPopCurrent_v2(&raw mut current));
    assert_eq!(current, other);
    ok!(cuCtxGetCurrent(&raw mut current));
    assert_eq!(current, rig.context);
    let near = rig.floats(&[0.0; 4]);
    assert_eq!(
        code!(cuMemcpyDtoD_v2(near, far, 16)),
        1,
        "memory of another device"
    );
    ok!(cuCtxDestroy_v2(other));
    assert_eq!(code!(cuCtxSetCurrent(other)), 201);
    assert_eq!(code!(cuDeviceGet(&raw mut device, 2)), 101);
});

scenario!(wrong_arguments_are_refused, "memory=1M", |_: Library| {
    let rig = Rig::new();
    let mut address = 0;
    let here = rig.floats(&[1.0; 8]);
    let mut host = [0_u8; 64];
    let to = host.as_mut_ptr().cast();
    assert_eq!(code!(cuMemAlloc_v2(&raw mut address, 0)), 1);
    assert_eq!(code!(cuMemAlloc_v2(&raw mut address, 2 << 20)), 2);
    assert_eq!(code!(cuMemAlloc_v2(null_mut(), 16)), 1);
    assert_eq!(code!(cuMemcpyDtoH_v2(to, here, 33)), 1, "past the end");
    assert_eq!(code!(cuMemcpyDtoH_v2(to, 12345, 4)), 1);
    assert_eq!(code!(cuMemcpyHtoDAsync_v2(here + 1, to, 32, rig.stream)), 1);
    assert_eq!(code!(cuMemsetD8Async(here, 0, 33, rig.stream)), 1);
    assert_eq!(
        code!(cuMemsetD32_v2(here + 2, 0, 1)),
        1,
        "not a multiple of four"
    );
    assert_eq!(code!(cuMemFreeAsync(here, rig.stream)), 1, "not of a pool");
    assert_eq!(code!(cuMemFree_v2(here + 4)), 1);
    ok!(cuMemFree_v2(here));
    assert_eq!(code!(cuMemFree_v2(here)), 1, "twice");
    ok!(cuMemFree_v2(0));
    assert_eq!(code!(cuStreamSynchronize(8 as sys::CUstream)), 400);
    assert_eq!(code!(cuEventQuery(8 as sys::CUevent)), 400);
    ok!(cuStreamDestroy_v2(rig.stream));
    assert_eq!(code!(cuStreamDestroy_v2(rig.stream)), 400);
});

scenario!(what_is_not_simulated_says_so, "", |library: Library| {
    let rig = Rig::new();
    let (mut address, mut at) = (0, null_mut());
    assert_eq!(code!(cuMemAllocManaged(&raw mut address, 16, 1)), 801);
    assert_eq!(code!(cuProfilerStart()), 801);
    assert_eq!(code!(cuMemHostAlloc(&raw mut at, 16, 2)), 801, "mapped");
    assert_eq!(code!(cuStreamWriteValue32_v2(rig.stream, 0, 0, 0)), 801);
    assert_eq!(library.counters().calls_of("cuProfilerStart"), 1);
});

scenario!(
    modules_have_to_fit_driver_and_card,
    "capability=7.5,driver=12000",
    |_: Library| {
        let rig = Rig::new();
        let load = |version, target| {
            let text = module_text(version, target);
            let mut module = null_mut();
            code!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()))
        };
        for (version, target, expected) in [
            ("8.0", "sm_75", 0),
            ("7.0", "sm_70", 0),
            ("8.1", "sm_75", 222),
            ("9.0", "sm_75", 222),
            ("8.0", "sm_80", 209),
        ] {
            assert_eq!(load(version, target), expected, "{version} {target}");
        }
        let mut function = null_mut();
        assert_eq!(
            code!(cuModuleGetFunction(
                &raw mut function,
                rig.module(),
                c"no".as_ptr()
            )),
            500
        );
        let mut module = null_mut();
        assert_eq!(
            code!(cuModuleLoad(&raw mut module, c"/nowhere.ptx".as_ptr())),
            301
        );
    }
);

scenario!(a_refused_module_says_why_in_the_log, "", |_: Library| {
    let _rig = Rig::new();
    let text = c".version 8.0\n.target sm_75\n.address_size 64\n\
        .visible .entry k()\n{\n    frobnicate.u32 %r1, 0;\n    ret;\n}\n";
    let mut log = [0x2a_u8; 512];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast(), log.len() as *mut std::ffi::c_void];
    let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
    let mut module = null_mut();
    let image = text.as_ptr().cast();
    assert_eq!(
        code!(cuModuleLoadDataEx(
            &raw mut module,
            image,
            2,
            options,
            values
        )),
        218
    );
    let said = std::ffi::CStr::from_bytes_until_nul(&log)
        .unwrap()
        .to_str()
        .unwrap();
    assert!(
        said.contains("frobnicate") && said.contains("line 6"),
        "{said}"
    );
});

scenario!(a_launch_stays_within_its_limits, "", |_: Library| {
    let rig = Rig::new();
    let function = rig.function("add_one");
    let here = rig.floats(&[0.0; 4]);
    let launch = |shape| rig.launch_shape(function, shape, here, 4);
    for (shape, expected) in [
        ([1, 32, 0], 0),
        ([0, 32, 0], 1),
        ([1, 0, 0], 1),
        ([1, 1025, 0], 1),
        ([1, 1024, 0], 0),
        ([1, 32, 48 << 10], 0),
        ([1, 32, (48 << 10) + 1], 1),
    ] {
        assert_eq!(launch(shape), expected, "{shape:?}");
    }
    let shared = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_eq!(code!(cuFuncSetAttribute(function, shared, 100 << 10)), 1);
    ok!(cuFuncSetAttribute(function, shared, 99 << 10));
    assert_eq!(launch([1, 32, 99 << 10]), 0);
    let mut value = 0;
    ok!(cuFuncGetAttribute(&raw mut value, shared, function));
    assert_eq!(value, 99 << 10);
    ok!(cuStreamSynchronize(rig.stream));
});

scenario!(
    a_multiprocessor_holds_so_many_blocks,
    "multiprocessors=3",
    |_: Library| {
        let rig = Rig::new();
        let function = rig.function("add_one");
        let blocks = |threads, shared| {
            let mut blocks = 0;
            ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function,
                threads,
                shared
            ));
            blocks
        };
        for (threads, shared, expected) in [
            (32, 0, 16),
            (256, 0, 6),
            (1024, 0, 1),
            (32, 48 << 10, 2),
            (32, 99 << 10, 1),
        ] {
            assert_eq!(blocks(threads, shared), expected, "{threads} {shared}");
        }
        let (mut grid, mut block) = (0, 0);
        ok!(cuOccupancyMaxPotentialBlockSize(
            &raw mut grid,
            &raw mut block,
            function,
            None,
            0,
            0
        ));
        assert_eq!((grid, block), (6, 768));
    }
);

scenario!(
    a_device_says_what_it_is,
    "capability=9.0,multiprocessors=7",
    |_: Library| {
        use sys::CUdevice_attribute as A;
        ok!(cuInit(0));
        for (attribute, expected) in [
            (A::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
            (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
            (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 7),
            (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9),
            (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
            (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10),
            (
                A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                227 << 10,
            ),
            (
                A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
                228 << 10,
            ),
            (A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
            (A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0),
            (A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0),
        ] {
            let mut value = -1;
            ok!(cuDeviceGetAttribute(&raw mut value, attribute, 0));
            assert_eq!(value, expected, "{attribute:?}");
        }
        let mut name = [1_i8; 9];
        ok!(cuDeviceGetName(name.as_mut_ptr(), 9, 0));
        assert_eq!(name.map(|byte| byte as u8), *b"Simulate\0");
    }
);

scenario!(codes_have_names_and_texts, "", |_: Library| {
    use sys::CUresult as C;
    for (code, name, text) in [
        (
            C::CUDA_ERROR_NO_DEVICE,
            "CUDA_ERROR_NO_DEVICE",
            "no CUDA-capable device is detected",
        ),
        (
            C::CUDA_ERROR_LAUNCH_FAILED,
            "CUDA_ERROR_LAUNCH_FAILED",
            "unspecified launch failure",
        ),
        (C::CUDA_SUCCESS, "CUDA_SUCCESS", "no error"),
    ] {
        assert_eq!(described(code), (String::from(name), String::from(text)));
    }
    let mut name = null();
    assert_eq!(
        code!(cuGetErrorName(
            C::CUDA_ERROR_ECC_UNCORRECTABLE,
            &raw mut name
        )),
        1
    );
});
