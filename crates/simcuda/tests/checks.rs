//! Every check against a kernel that has exactly that fault, and the same kernel without it.

use simcuda::exec::{Launch, Options, Races, run};
use simcuda::fault::{Access, Fault, FaultKind};
use simcuda::memory::Memory;
use simcuda::ptx::{Limits, Module, PtxError, PtxFault};

const LIMITS: Limits = Limits {
    version: (8, 0),
    capability: 80,
};

/// Words that a kernel may write.
const WORDS: u64 = 64;

fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry planted(.param .u64 out)\n{{\n\
         .reg .pred p, q;\n.reg .b32 r<8>;\n.reg .b64 d<8>;\n\
         .shared .align 16 .b8 buffer[1024];\n.local .align 4 .b8 own[16];\n\
         ld.param.u64 d0, [out];\nmov.u32 r0, %tid.x;\nmul.wide.u32 d1, r0, 4;\n\
         add.s64 d2, d0, d1;\nmov.u32 r7, buffer;\nmad.lo.u32 r1, r0, 4, r7;\n{body}\nret;\n}}\n"
    )
}

/// Runs 64 threads and gives what the first words hold afterwards.
fn launch(body: &str, seed: u64) -> Result<Vec<u32>, Fault> {
    launch_with(body, &options(seed))
}

fn options(seed: u64) -> Options {
    Options {
        seed,
        steps_max: 100_000,
        ..Options::default()
    }
}

fn launch_with(body: &str, options: &Options) -> Result<Vec<u32>, Fault> {
    let module = Module::parse(&text(body), &LIMITS).expect("a kernel that is understood");
    let mut memory = Memory::new(1 << 20, 1 << 20);
    let out = memory.alloc(4 * WORDS).expect("room");
    let launch = Launch {
        kernel: module.kernel("planted").expect("the kernel"),
        symbols: &[],
        grid: [1; 3],
        block: [64, 1, 1],
        shared_bytes: 0,
        params: &out.to_le_bytes(),
    };
    run(&launch, &memory, options)?;
    let mut bytes = [0; 4 * WORDS as usize];
    memory.read(out, &mut bytes)?;
    let words = bytes
        .chunks(4)
        .map(|w| u32::from_le_bytes(w.try_into().expect("four")));
    Ok(words.collect())
}

/// The fault of a kernel, whose place must be the line that has the mark.
fn fault(body: &str) -> FaultKind {
    let found = launch(body, 0).expect_err("a fault");
    let place = found.place.expect("a place");
    assert_eq!(place.kernel, "planted");
    let all = text(body);
    let marked = all.lines().position(|line| line.contains("//!"));
    let marked = marked.expect("a marked line") as u32 + 1;
    assert_eq!(place.line, marked, "{}", place.text);
    found.kind
}

#[test]
fn a_write_past_the_end_names_its_distance() {
    let right = "st.global.u32 [d2], r0;";
    assert_eq!(launch(right, 0).expect("no fault")[63], 63);
    let wrong = "st.global.u32 [d2+4], r0; //!";
    let found = launch(wrong, 0).expect_err("a fault");
    let place = found.place.clone().expect("a place");
    assert_eq!(place.thread, [63, 0, 0]);
    let FaultKind::OutOfBounds {
        bytes: 4,
        nearest: Some(near),
        ..
    } = fault(wrong)
    else {
        panic!("{found}");
    };
    assert_eq!((near.past, near.bytes), (4, 4 * WORDS));
}

#[test]
fn a_missing_barrier_is_a_race() {
    let read = "xor.b32 r2, r0, 32; mad.lo.u32 r3, r2, 4, r7;";
    let right = format!(
        "st.shared.u32 [r1], r0; {read}\nbar.sync 0;\nld.shared.u32 r4, [r3];\nst.global.u32 [d2], r4;"
    );
    for seed in 0..8 {
        let found = launch(&right, seed).expect("no fault");
        assert!((0..64).all(|lane| found[lane as usize] == lane ^ 32));
    }
    // Warp 0 has read the words of warp 1 when that writes them.
    let wrong = format!("{read}\nst.shared.u32 [r1], r0; //!\nld.shared.u32 r4, [r3];");
    let FaultKind::Race {
        access: Access::Write,
        warp: 1,
        other_access: Access::Read,
        other_warp: 0,
        ..
    } = fault(&wrong)
    else {
        panic!("another fault");
    };
    // Without the check the order of warps decides what is read.
    let options = Options {
        races: Races::Ignored,
        ..options(0)
    };
    let end = format!("{wrong}\nst.global.u32 [d2], r4;");
    let found = launch_with(&end, &options).expect("no fault");
    assert_eq!((found[0], found[32]), (u32::MAX, 0));
    for seed in 1..8 {
        launch(&wrong, seed).expect_err("a race in every order");
    }
}

#[test]
fn neighbouring_bytes_of_a_word_are_no_race() {
    // Warp 0 writes the even bytes, warp 1 the odd ones.
    let bytes = "shr.u32 r2, r0, 5; and.b32 r3, r0, 31; mad.lo.u32 r4, r3, 2, r2; add.u32 r4, r4, r7;\n\
                 st.shared.u8 [r4], r0;";
    launch(bytes, 0).expect("no fault");
    let same = "and.b32 r3, r0, 31; add.u32 r4, r3, r7;\nst.shared.u8 [r4], r0; //!";
    let found = fault(same);
    assert!(matches!(found, FaultKind::Race { .. }), "{found}");
}

#[test]
fn shared_and_local_memory_have_ends() {
    let found = fault("st.shared.u32 [r1+1000], r0; //!");
    assert!(
        matches!(
            found,
            FaultKind::OutOfSpace {
                space: "shared",
                size: 1024,
                ..
            }
        ),
        "{found}"
    );
    let found = fault("mov.u32 r2, own;\nst.local.u32 [r2+16], r0; //!");
    assert!(
        matches!(
            found,
            FaultKind::OutOfSpace {
                space: "local",
                size: 16,
                ..
            }
        ),
        "{found}"
    );
}

#[test]
fn addresses_of_32_bits_wrap() {
    // A negative index, and a base beyond the top that the offset brings back.
    let body = "shl.b32 r2, r0, 2; neg.s32 r2, r2; add.u32 r2, r2, r7;\n\
                st.shared.u32 [r2+252], r0;\nbar.sync 0;\nld.shared.u32 r3, [r1];\n\
                st.global.u32 [d2], r3;";
    let found = launch(body, 0).expect("no fault");
    assert_eq!((found[0], found[63]), (63, 0));
}

#[test]
fn addresses_are_multiples_of_the_size() {
    let found = fault("st.global.u32 [d2+2], r0; //!");
    assert!(
        matches!(found, FaultKind::Misaligned { bytes: 4, .. }),
        "{found}"
    );
    let found = fault("ld.shared.v4.u32 {r2, r3, r4, r5}, [r1]; //!");
    assert!(
        matches!(found, FaultKind::Misaligned { bytes: 16, .. }),
        "{found}"
    );
}

#[test]
fn a_barrier_that_some_lanes_pass_by_is_found() {
    // Odd lanes wait at the barrier, even lanes for a shuffle of the whole warp.
    let found = fault(
        "and.b32 r2, r0, 1; setp.eq.u32 p, r2, 0;\n@p bra EVEN;\nbar.sync 0; //!\nbra DONE;\n\
         EVEN: shfl.sync.idx.b32 r3, r0, 0, 31, -1;\nDONE:",
    );
    assert!(
        matches!(found, FaultKind::DivergentBarrier { .. }),
        "{found}"
    );
}

#[test]
fn warps_that_wait_at_different_places_are_found() {
    let found = fault(
        "setp.lt.u32 p, r0, 32;\n@p bra FIRST;\nbar.sync 0;\nbra DONE;\nFIRST: bar.sync 0; //!\nDONE:",
    );
    assert!(
        matches!(found, FaultKind::DivergentBarrier { barrier: 0, .. }),
        "{found}"
    );
}

#[test]
fn lanes_that_have_ended_cannot_be_named() {
    let found = fault(
        "and.b32 r2, r0, 31; setp.eq.u32 p, r2, 5;\n@p ret;\n\
         shfl.sync.bfly.b32 r3, r0, 1, 31, -1; //!",
    );
    let FaultKind::DivergentCollective { missing, .. } = found else {
        panic!("{found}");
    };
    assert_eq!(missing, 1 << 5);
}

#[test]
fn lanes_meet_again_at_what_they_do_together() {
    // Each half comes by a way of its own; the sum of all lanes is the same for each.
    let body = "and.b32 r2, r0, 1; setp.eq.u32 p, r2, 0; mov.u32 r3, r0;\n@p bra EVEN;\n\
                add.u32 r3, r3, 100;\nbra MEET;\nEVEN: add.u32 r3, r3, 200;\nMEET:\n\
                shfl.sync.bfly.b32 r4, r3, 1, 31, -1; add.u32 r3, r3, r4;\nst.global.u32 [d2], r3;";
    let found = launch(body, 0).expect("no fault");
    assert_eq!(found[..4], [301, 301, 305, 305]);
}

#[test]
fn lanes_go_round_a_loop_as_often_as_each_needs() {
    // Steps of the Collatz sequence, with a value that only some rounds write.
    let body = "add.u32 r2, r0, 1; mov.u32 r3, 0; mov.u32 r6, 0;\n\
                AGAIN: setp.eq.u32 p, r2, 1;\n@p bra DONE;\nadd.u32 r3, r3, 1;\n\
                and.b32 r4, r2, 1; setp.eq.u32 q, r4, 0;\n@q bra EVEN;\n\
                mad.lo.u32 r2, r2, 3, 1; mov.u32 r6, r3;\nbra AGAIN;\n\
                EVEN: shr.u32 r5, r2, 1; mov.u32 r2, r5;\nbra AGAIN;\n\
                DONE: mad.lo.u32 r3, r3, 1000, r6;\nst.global.u32 [d2], r3;";
    let steps = |mut n: u32| {
        let (mut steps, mut last_odd) = (0, 0);
        while n != 1 {
            steps += 1;
            if n.is_multiple_of(2) {
                n /= 2;
            } else {
                n = 3 * n + 1;
                last_odd = steps;
            }
        }
        1000 * steps + last_odd
    };
    let found = launch(body, 0).expect("no fault");
    for (lane, found) in found.iter().enumerate() {
        assert_eq!(*found, steps(lane as u32 + 1), "lane {lane}");
    }
}

#[test]
fn what_nobody_wrote_is_not_a_number() {
    let found = launch("ld.shared.u32 r2, [r1]; st.global.u32 [d2], r2;", 0);
    assert!(f32::from_bits(found.expect("no fault")[7]).is_nan());
    let found = launch("st.global.u32 [d2], r6;", 0).expect("no fault");
    assert!(f32::from_bits(found[7]).is_nan());
}

#[test]
fn a_copy_that_nobody_waited_for_has_not_arrived() {
    let begin = "shl.b32 r2, r0, 4; cvt.u64.u32 d3, r2; and.b64 d3, d3, 240; add.s64 d3, d0, d3;\n\
                 add.u32 r2, r2, r7; mov.u32 r4, 7; st.global.u32 [d2], r4;\nbar.sync 0;\n\
                 cp.async.cg.shared.global [r2], [d3], 16;\ncp.async.commit_group;\n";
    let end = "ld.shared.u32 r3, [r2]; bar.sync 0;\nst.global.u32 [d2], r3;";
    let found = launch(&format!("{begin}cp.async.wait_group 0;\n{end}"), 0);
    assert_eq!(found.expect("no fault")[9], 7);
    let found = launch(&format!("{begin}cp.async.wait_group 1;\n{end}"), 0);
    assert_eq!(found.expect("no fault")[9], u32::MAX);
}

#[test]
fn endless_loops_and_traps_end() {
    let found = launch("AGAIN: bra AGAIN;", 0).expect_err("a fault").kind;
    assert!(matches!(found, FaultKind::Endless { .. }), "{found}");
    assert_eq!(fault("trap; //!"), FaultKind::Trap);
}

#[test]
fn launches_have_limits() {
    let module = Module::parse(&text(""), &LIMITS).expect("a kernel");
    let kernel = module.kernel("planted").expect("the kernel");
    let memory = Memory::new(1 << 20, 1 << 20);
    let good = Launch {
        kernel,
        symbols: &[],
        grid: [1; 3],
        block: [64, 1, 1],
        shared_bytes: 0,
        params: &[0; 8],
    };
    let options = Options::default();
    run(&good, &memory, &options).expect("no fault");
    for wrong in [
        Launch {
            block: [1025, 1, 1],
            ..good
        },
        Launch {
            block: [0, 1, 1],
            ..good
        },
        Launch {
            grid: [1, 0, 1],
            ..good
        },
        Launch {
            shared_bytes: 48 << 10,
            ..good
        },
        Launch {
            params: &[0; 4],
            ..good
        },
    ] {
        run(&wrong, &memory, &options).expect_err("a limit");
    }
}

#[test]
fn what_is_not_known_is_refused_with_its_line() {
    let refused =
        |body: &str| -> PtxError { Module::parse(&text(body), &LIMITS).expect_err("a refusal") };
    let first = text("")
        .lines()
        .position(|line| line == "ret;")
        .expect("the body") as u32;
    for (body, what, name) in [
        (
            "redux.sync.add.s32 r2, r0, -1;",
            PtxFault::Instruction,
            "redux.sync.add.s32",
        ),
        ("add.u31 r2, r0, r1;", PtxFault::Instruction, "add.u31"),
        ("fma.f32 r2, r0, r1, r1;", PtxFault::Instruction, "fma.f32"),
        (
            "ld.texture.u32 r2, [d0];",
            PtxFault::Instruction,
            "ld.texture.u32",
        ),
        ("add.u32 r2, r9, r1;", PtxFault::Name, "add.u32"),
        ("add.u32 r2, r0;", PtxFault::Operand, "add.u32"),
        ("add.u32 r2, d0, r1;", PtxFault::Operand, "add.u32"),
        ("bra NOWHERE;", PtxFault::Name, "NOWHERE"),
        ("mov.u32 r2, %clock;", PtxFault::Name, "mov.u32"),
    ] {
        let found = refused(body);
        assert_eq!((found.line, &found.what), (first, &what), "{found}");
        assert_eq!(found.text, name);
    }
    assert_eq!(refused(".callprototype;").what, PtxFault::Directive);
}

#[test]
fn texts_for_other_drivers_and_cards_are_refused() {
    for (version, target, what) in [
        ("8.1", "sm_80", PtxFault::Version),
        ("8.0", "sm_90", PtxFault::Target),
        ("7.8", "sm_75a", PtxFault::Target),
        ("8.0", "compute", PtxFault::Syntax),
    ] {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n");
        assert_eq!(
            Module::parse(&text, &LIMITS).expect_err("a refusal").what,
            what
        );
    }
    let text =
        ".version 7.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) f();\n";
    assert_eq!(
        Module::parse(text, &LIMITS).expect_err("a refusal").what,
        PtxFault::Extern
    );
}
