//! What can be told to go wrong, and what a fault does to the device.

use std::process::Command;
use std::ptr::null_mut;

use simcuda::{Driver, Folder, Library, scenario};

use crate::rig::{Rig, code, ok};

/// A machine on which the start already fails.
macro_rules! starts_with {
    ($($name:ident: $settings:literal => $expected:literal;)*) => {
        $(scenario!($name, $settings, |_: Library| {
            assert_eq!(code!(cuInit(0)), $expected);
        });)*
    };
}

starts_with! {
    no_device: "devices=0" => 100;
    no_device_by_code: "init=100" => 100;
    a_start_without_a_reason: "init=999" => 999;
    parts_that_do_not_fit: "init=803" => 803;
    a_start_that_succeeds: "" => 0;
}

scenario!(an_old_driver_says_its_age, "driver=11040", |_: Library| {
    let mut version = 0;
    ok!(cuDriverGetVersion(&raw mut version));
    assert_eq!(version, 11_040);
});

scenario!(
    others_hold_memory,
    "memory=8G,used=7M,name=Small Card",
    |library: Library| {
        let _rig = Rig::new();
        let (mut free, mut total) = (0, 0);
        ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
        assert_eq!((free, total), ((8 << 30) - (7 << 20), 8 << 30));
        library.apply("used=8191M").unwrap();
        let mut address = 0;
        assert_eq!(code!(cuMemAlloc_v2(&raw mut address, (1 << 20) + 1)), 2);
        ok!(cuMemAlloc_v2(&raw mut address, 1 << 20));
        ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
        assert_eq!(free, 0);
    }
);

scenario!(
    the_named_allocation_finds_no_memory,
    "allocation=2",
    |library: Library| {
        let _rig = Rig::new();
        let allocate = || {
            let mut address = 0;
            code!(cuMemAlloc_v2(&raw mut address, 16))
        };
        assert_eq!([allocate(), allocate(), allocate()], [0, 2, 0]);
        library.apply("allocation=1").unwrap();
        assert_eq!(
            [allocate(), allocate()],
            [2, 0],
            "counted from when it was said"
        );
    }
);

scenario!(
    the_named_call_fails,
    "fail=cuStreamCreate:2:304",
    |_: Library| {
        let _rig = Rig::new();
        let create = || {
            let mut stream = null_mut();
            code!(cuStreamCreate(&raw mut stream, 1))
        };
        assert_eq!([create(), create()], [304, 0], "the rig made the first one");
    }
);

/// Five launches of which the third is told to fail, by themselves or as a graph.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Plain,
    Graph,
}

#[track_caller]
fn third_launch(library: Library, how: How, code: i32) {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    let function = rig.function("add_one");
    let sticky = code == 719;
    let exec = (how == How::Graph).then(|| {
        assert_eq!(rig.begin_capture(), 0);
        for _ in 0..5 {
            assert_eq!(rig.launch(function, here, 4), 0);
        }
        rig.instantiate(rig.end_capture().1)
    });
    library.apply(&format!("launch=3:{code}")).unwrap();
    match exec {
        Some(exec) => {
            let expected = if sticky { 0 } else { code };
            assert_eq!(code!(cuGraphLaunch(exec, rig.stream)), expected);
        }
        None => {
            let codes = [(); 5].map(|()| rig.launch(function, here, 4));
            let third = if sticky { 0 } else { code };
            assert_eq!(codes, [0, 0, third, 0, 0]);
        }
    }
    let end = code!(cuStreamSynchronize(rig.stream));
    if !sticky {
        let ran = if how == How::Graph { 0.0 } else { 4.0 };
        assert_eq!((end, rig.read(here, 4)), (0, vec![ran; 4]));
        return;
    }
    assert_eq!(end, code);
    assert_eq!(library.counters().runs(), 2, "nothing runs after it");
    let (mut address, mut current, mut stream) = (0, null_mut(), null_mut());
    assert_eq!(code!(cuMemAlloc_v2(&raw mut address, 16)), code);
    assert_eq!(code!(cuMemFree_v2(here)), code);
    assert_eq!(code!(cuStreamCreate(&raw mut stream, 1)), code);
    assert_eq!(rig.launch(function, here, 4), code);
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), code);
    // Nor does a new context help: the process has to end.
    ok!(cuDevicePrimaryCtxRelease_v2(0));
    assert_eq!(code!(cuDevicePrimaryCtxRetain(&raw mut current, 0)), code);
}

scenario!(
    a_launch_fails_and_kills_the_device,
    "",
    |library: Library| {
        third_launch(library, How::Plain, 719);
    }
);
scenario!(
    a_launch_fails_and_harms_nothing_else,
    "",
    |library: Library| {
        third_launch(library, How::Plain, 701);
    }
);
scenario!(
    a_launch_within_a_graph_kills_the_device,
    "",
    |library: Library| {
        third_launch(library, How::Graph, 719);
    }
);
scenario!(
    a_graph_is_refused_for_one_of_its_launches,
    "",
    |library: Library| {
        third_launch(library, How::Graph, 701);
    }
);

scenario!(
    a_step_past_the_end_is_told_with_its_place,
    "",
    |library: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[0.0; 4]);
        assert_eq!(rig.launch(rig.function("add_one"), here, 5), 0);
        assert_eq!(code!(cuStreamSynchronize(rig.stream)), 700);
        let fault = library.fault().unwrap();
        for part in [
            "add_one",
            "4 bytes past the end",
            "thread [4, 0, 0]",
            "line",
        ] {
            assert!(fault.contains(part), "{part}: {fault}");
        }
        assert_eq!(code!(cuCtxSynchronize()), 700);
    }
);

scenario!(an_odd_address_is_told_apart, "", |_: Library| {
    let rig = Rig::new();
    let here = rig.floats(&[0.0; 4]);
    assert_eq!(rig.launch(rig.function("add_one"), here + 2, 1), 0);
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), 716);
});

scenario!(memory_that_was_given_back_is_no_memory, "", |_: Library| {
    let rig = Rig::new();
    let mut address = 0;
    ok!(cuMemAllocAsync(&raw mut address, 16, rig.stream));
    ok!(cuMemFreeAsync(address, rig.stream));
    assert_eq!(rig.launch(rig.function("add_one"), address, 4), 0);
    assert_eq!(code!(cuStreamSynchronize(rig.stream)), 700);
});

scenario!(a_kernel_goes_wrong_in_silence, "", |library: Library| {
    let rig = Rig::new();
    let function = rig.function("add_one");
    let here = rig.floats(&[0.0; 4]);
    let check = |settings: &str, expected: [f32; 4]| {
        ok!(cuMemcpyHtoD_v2(
            here,
            [1.0_f32, 2.0, 3.0, 4.0].as_ptr().cast(),
            16
        ));
        library.apply(&format!("reset,{settings}")).unwrap();
        assert_eq!(rig.launch(function, here, 4), 0);
        let found = rig.read(here, 4);
        let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        assert!(
            found.iter().zip(&expected).all(same),
            "{settings}: {found:?}"
        );
    };
    check("", [2.0, 3.0, 4.0, 5.0]);
    check("kernel=add_one:nothing", [1.0, 2.0, 3.0, 4.0]);
    check("kernel=add_one:nan", [f32::NAN; 4]);
    check("kernel=add*:scaled", [3.0, 4.5, 6.0, 7.5]);
    check("kernel=add_one:first", [3.0, 3.0, 4.0, 5.0]);
    check("kernel=add_one:nan:2", [2.0, 3.0, 4.0, 5.0]);
    check("kernel=twice:nan", [2.0, 3.0, 4.0, 5.0]);
    let refused = library.apply("kernel=add_one:odd").unwrap_err();
    assert_eq!(refused.piece, "kernel=add_one:odd");
});

scenario!(
    a_bug_is_planted_in_what_ships,
    "mutate=twice:swap:add.f32:1:sub.f32,mutate=add_one:shift:st.global:1:4",
    |library: Library| {
        let rig = Rig::new();
        let here = rig.floats(&[1.0, 5.0, 7.0, 9.0]);
        assert_eq!(rig.launch(rig.function("add_one"), here, 2), 0);
        assert_eq!(rig.read(here, 4), [1.0, 2.0, 6.0, 9.0], "beside its place");
        assert_eq!(library.counters().mutations(), 2);
        let twice = rig.function("twice");
        assert_eq!(rig.launch_shape(twice, [1, 4, 0], here, 4), 0);
        assert_eq!(rig.read(here, 4), [0.0; 4]);
    }
);

scenario!(
    a_bug_that_is_none_is_refused,
    "mutate=add_one:drop:bar.sync:1",
    |_: Library| {
        let _rig = Rig::new();
        let text = crate::rig::module_text("8.0", "sm_75");
        let mut module = null_mut();
        assert_eq!(
            code!(cuModuleLoadData(&raw mut module, text.as_ptr().cast())),
            218
        );
    }
);

/// Tells the child that it is one.
const CHILD: &str = "--skip=asks the driver";

/// What the child says of the driver that the loader gives it.
fn ask() -> String {
    // SAFETY: the libraries of these folders are ours, and the names end with a zero byte.
    let (library, message) = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let message = if library.is_null() {
            libc::dlerror()
        } else {
            null_mut()
        };
        (library, message)
    };
    if !message.is_null() {
        // SAFETY: not null, so a text.
        let message = unsafe { std::ffi::CStr::from_ptr(message) }.to_string_lossy();
        let absent = message.contains("No such file");
        return String::from(if absent { "none" } else { "no library" });
    }
    // SAFETY: the library is loaded.
    let init = unsafe { libc::dlsym(library, c"cuInit".as_ptr()) };
    if init.is_null() {
        return String::from("no cuInit");
    }
    // SAFETY: the function has this type.
    let init: extern "C" fn(u32) -> i32 = unsafe { std::mem::transmute(init) };
    init(0).to_string()
}

#[test]
fn a_child_finds_the_driver_of_its_folder() {
    if std::env::args().any(|argument| argument == CHILD) {
        println!("\nsays {}.", ask());
        return;
    }
    for (driver, settings, expected) in [
        (Driver::Simulated, "", "says 0."),
        (Driver::Simulated, "init=999", "says 999."),
        (Driver::Simulated, "devices=0", "says 100."),
        (Driver::Simulated, "crash=cuInit", "crashed"),
        (Driver::None, "", "says none."),
        (Driver::NoLibrary, "", "says no library."),
        (Driver::Empty, "", "says no cuInit."),
        (Driver::Without("cuInit"), "", "says no cuInit."),
        (Driver::Without("cuMemAlloc_v2"), "", "says 0."),
    ] {
        if driver == Driver::None && simcuda::driver_is_installed() {
            eprintln!("NOT RUN: a machine without a driver: this one has a driver");
            continue;
        }
        let folder = Folder::new(driver, settings).unwrap();
        let output = child(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let found = if output.status.success() {
            &said
        } else {
            "crashed"
        };
        assert!(found.contains(expected), "{driver:?} {settings}: {found}");
    }
}

fn child(folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "faults::a_child_finds_the_driver_of_its_folder";
    command.args([name, "--exact", "--nocapture", CHILD]);
    folder.give_to(&mut command);
    command
}

#[test]
fn a_driver_that_hangs_does_not_answer() {
    let folder = Folder::new(Driver::Simulated, "hang=any").unwrap();
    let mut command = child(&folder);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It is in the call by then, or slower than that; either way it has not answered.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("says"));
}
