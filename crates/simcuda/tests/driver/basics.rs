//! The first steps of every program, through cudarc's own wrappers.

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use simcuda::{Library, scenario};

use crate::rig::module_text;

scenario!(
    a_kernel_computes_on_what_was_copied,
    "name=Card A,memory=64M",
    |library: Library| {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.name().unwrap(), "Card A");
        assert_eq!(context.compute_capability().unwrap(), (8, 6));
        assert_eq!(context.total_mem().unwrap(), 64 << 20);
        let text = module_text("8.0", "sm_80").into_string().unwrap();
        let module = context.load_module(Ptx::from_src(text)).unwrap();
        let function = module.load_function("add_one").unwrap();
        let stream = context.new_stream().unwrap();
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let mut there = stream.clone_htod(&values).unwrap();
        let count = 1000_u32;
        let mut launch = stream.launch_builder(&function);
        launch.arg(&mut there).arg(&count);
        // SAFETY: the kernel takes a pointer and a count.
        unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }.unwrap();
        let expected: Vec<f32> = values.iter().map(|value| value + 1.0).collect();
        assert_eq!(stream.clone_dtoh(&there).unwrap(), expected);

        let counters = library.counters();
        assert_eq!(counters.launches_of("add_one"), 1);
        assert_eq!(counters.launched().collect::<Vec<_>>(), [("add_one", 1)]);
        assert_eq!((counters.uploads(), counters.uploaded_bytes()), (1, 4000));
        assert_eq!(
            (counters.downloads(), counters.downloaded_bytes()),
            (1, 4000)
        );
        assert_eq!((counters.alive(), counters.modules()), (1, 1));
        drop(there);
        stream.synchronize().unwrap();
        assert_eq!(library.counters().alive(), 0);
    }
);

scenario!(
    a_captured_graph_gives_the_same_bits,
    "",
    |library: Library| {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: one stream is used for everything.
        unsafe { context.disable_event_tracking() };
        let text = module_text("8.0", "sm_80").into_string().unwrap();
        let module = context.load_module(Ptx::from_src(text)).unwrap();
        let stream = context.new_stream().unwrap();
        let values: Vec<f32> = (0..64).map(|i| i as f32 * 0.37).collect();
        let mut there = stream.clone_htod(&values).unwrap();
        let functions = ["add_one", "twice"].map(|name| module.load_function(name).unwrap());
        let shape = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (64, 1, 1),
            shared_mem_bytes: 0,
        };
        let count = 64_u32;
        let mut run = || {
            for function in &functions {
                let mut launch = stream.launch_builder(function);
                launch.arg(&mut there).arg(&count);
                // SAFETY: both kernels take a pointer and a count.
                unsafe { launch.launch(shape) }.unwrap();
            }
        };
        run();
        let mode = cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let flags = cudarc::driver::sys::CUgraphInstantiate_flags(0);
        stream.begin_capture(mode).unwrap();
        run();
        let graph = stream.end_capture(flags).unwrap().unwrap();
        let plain = stream.clone_dtoh(&there).unwrap();
        let expected: Vec<f32> = values.iter().map(|value| (value + 1.0) * 2.0).collect();
        assert_eq!(plain, expected, "a captured launch does not run");
        stream.memcpy_htod(&values, &mut there).unwrap();
        graph.upload().unwrap();
        graph.launch().unwrap();
        assert_eq!(stream.clone_dtoh(&there).unwrap(), plain);
        let counters = library.counters();
        assert_eq!(
            (counters.graph_launches(), counters.launches_of("twice")),
            (1, 2)
        );
        assert_eq!(counters.runs(), 4);
    }
);
