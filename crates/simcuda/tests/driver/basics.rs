//! The first steps of every program.

use cudarc::driver::CudaContext;
use simcuda::scenario;

scenario!(
    bytes_come_back_as_they_went,
    "name=Card A,memory=64M",
    |library: simcuda::Library| {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.name().unwrap(), "Card A");
        let stream = context.new_stream().unwrap();
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let there = stream.clone_htod(&values).unwrap();
        assert_eq!(stream.clone_dtoh(&there).unwrap(), values);
        let counters = library.counters();
        assert_eq!((counters.uploads(), counters.downloads()), (1, 1));
        assert_eq!(counters.uploaded_bytes(), 4000);
        assert_eq!(counters.alive(), 1);
    }
);
