//! The harness itself: a scenario that goes wrong in any way is a test that fails.
#![cfg(target_os = "linux")]

use simcuda::{Library, scenario};

scenario!(
    #[should_panic(expected = "a_scenario_that_ends_the_process failed (exit status: 3)")]
    a_scenario_that_ends_the_process,
    "",
    |_: Library| std::process::exit(3)
);

scenario!(
    #[should_panic(expected = "a_scenario_that_crashes failed (signal: 6")]
    a_scenario_that_crashes,
    "",
    |_: Library| std::process::abort()
);

// The child does not find what it expects in this panic either, so it fails.
scenario!(
    #[should_panic(expected = "a_scenario_that_panics failed (exit status: 101)")]
    a_scenario_that_panics,
    "",
    |_: Library| panic!("for a reason")
);

scenario!(
    #[should_panic(expected = "a_scenario_with_a_wrong_machine failed (exit status: 101)")]
    a_scenario_with_a_wrong_machine,
    "odd=1",
    |_: Library| ()
);

#[test]
#[should_panic(expected = "nowhere did not run")]
fn a_scenario_that_is_not_there() {
    simcuda::scenario::run("harness::nowhere", "", |_| {
        unreachable!("no test has this name")
    });
}

scenario!(a_scenario_runs_alone, "name=Alone", |library: Library| {
    assert_eq!(library.counters().calls_of("cuInit"), 0);
    let settings = simcuda::Settings::default();
    library.configure(&settings);
    assert_eq!(cudarc::driver::CudaContext::device_count().unwrap(), 1);
    assert_eq!(library.counters().calls_of("cuInit"), 1);
    assert_eq!(library.fault(), None);
});

scenario!(
    a_machine_can_be_a_value,
    simcuda::Settings {
        devices: 3,
        ..Default::default()
    },
    |_: Library| {
        assert_eq!(cudarc::driver::CudaContext::device_count().unwrap(), 3);
    }
);
