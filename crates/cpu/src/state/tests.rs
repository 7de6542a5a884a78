use std::path::Path;

use candor_arch::{FootprintOptions, build, footprint};
use candor_modelfile::ModelFile;

use super::*;

const SLOT: SlotId = SlotId(0);

const WINDOW: StateLayout = StateLayout::Window {
    tokens: 20,
    n_kv_heads: 1,
    head_dim: 2,
};

const FULL: StateLayout = StateLayout::Full {
    n_kv_heads: 1,
    head_dim: 2,
};

const SUM: StateLayout = StateLayout::Recurrent {
    channels: 3,
    taps: 4,
    n_heads: 1,
    state_size: 2,
};

fn state(layouts: &[StateLayout]) -> State {
    let sizes = StateSizes {
        kv: KvType::F32,
        ctx_len: 100_000,
        slots: 2,
        tokens: 100_000,
        threads: 1,
    };
    State::new(layouts, sizes)
}

/// Commits so many tokens, a few hundred at a time.
fn feed(state: &mut State, tokens: usize) {
    for first in (0..tokens).step_by(300) {
        let wanted = [(SLOT, (tokens - first).min(300))];
        state.paging_mut().reserve(&wanted).expect("there is room");
        state.paging_mut().commit(&wanted);
    }
}

#[test]
fn a_window_takes_no_more_than_it_sees() {
    let mut state = state(&[FULL, WINDOW]);
    feed(&mut state, 50_000);
    let pages: Vec<usize> = state.paging.store().kinds.iter().map(Pages::made).collect();
    // All tokens; and 300 of a batch over the end of a page, behind the window of the last one.
    assert_eq!(pages, [50_000usize.div_ceil(PAGE_TOKENS), 3]);
}

#[test]
fn seek_says_what_it_reaches() {
    // Layouts, marks, position, wanted, reached.
    type Case<'a> = (&'a [StateLayout], &'a [usize], usize, usize, usize);
    let cases: &[Case<'_>] = &[
        (&[FULL], &[], 1_000, 400, 400),
        (&[FULL, WINDOW], &[], 1_000, 990, 990),
        // What lay before the window of the last position is gone.
        (&[FULL, WINDOW], &[], 1_000, 600, 0),
        (&[FULL, WINDOW], &[300], 1_000, 600, 300),
        // The page of the mark begins at 256, with the window of 299 and not that of 270.
        (&[FULL, WINDOW], &[300], 1_000, 299, 299),
        (&[FULL, WINDOW], &[300], 1_000, 270, 0),
        (&[FULL, SUM], &[], 1_000, 999, 0),
        (&[FULL, SUM], &[], 1_000, 1_000, 1_000),
        (&[FULL, SUM], &[300, 600], 1_000, 999, 600),
        (&[FULL, SUM], &[300, 600], 1_000, 599, 300),
        (&[SUM, WINDOW], &[300, 600], 1_000, 650, 600),
        // The oldest of five gives way.
        (&[SUM, WINDOW], &[100, 200, 300, 400, 500], 1_000, 199, 0),
        (&[SUM, WINDOW], &[100, 200, 300, 400, 500], 1_000, 200, 200),
    ];
    for (layouts, marks, position, wanted, reached) in cases {
        let mut state = state(layouts);
        for mark in *marks {
            let more = mark - state.paging().position(SLOT);
            feed(&mut state, more);
            state
                .paging_mut()
                .checkpoint(SLOT)
                .expect("the slot is there");
        }
        let more = position - state.paging().position(SLOT);
        feed(&mut state, more);
        let found = state.paging_mut().seek(SLOT, *wanted);
        assert_eq!(
            found,
            Ok(*reached),
            "{layouts:?} {marks:?} {position} {wanted}"
        );
        feed(&mut state, 700);
        assert_eq!(state.paging().position(SLOT), reached + 700);
    }
}

#[test]
fn a_sum_comes_back_as_it_was_marked() {
    let mut state = state(&[SUM]);
    let write = |state: &mut State, value: f32| {
        let wanted = [(SLOT, 1)];
        state.paging_mut().reserve(&wanted).expect("there is room");
        let kept = state.matrices(0, SLOT);
        assert!(kept.before.is_some(), "first here");
        kept.now.fill(value);
        assert!(state.matrices(0, SLOT).before.is_none(), "not first here");
        wanted
    };
    let committed = |state: &mut State| {
        let wanted = [(SLOT, 1)];
        state.paging_mut().reserve(&wanted).expect("there is room");
        let before = state.matrices(0, SLOT).before.map(<[f32]>::to_vec);
        state.paging_mut().roll_back(&wanted);
        before.expect("first here")[0]
    };
    let wanted = write(&mut state, 1.0);
    state.paging_mut().commit(&wanted);
    state
        .paging_mut()
        .checkpoint(SLOT)
        .expect("the slot is there");
    let stopped = write(&mut state, 2.0);
    state.paging_mut().roll_back(&stopped);
    assert_eq!(
        committed(&mut state),
        1.0,
        "a stopped forward leaves no trace"
    );
    let wanted = write(&mut state, 3.0);
    state.paging_mut().commit(&wanted);
    assert_eq!(committed(&mut state), 3.0);
    assert_eq!(state.paging_mut().fork(SLOT, SlotId(1), 2), Ok(2));
    assert_eq!(state.paging_mut().seek(SLOT, 1), Ok(1));
    assert_eq!(committed(&mut state), 1.0);
    assert_eq!(state.paging_mut().seek(SLOT, 0), Ok(0));
    assert_eq!(committed(&mut state), 0.0, "as before the first token");
    assert_eq!(state.paging().position(SlotId(1)), 2, "the copy stays");
}

#[test]
fn what_a_state_takes_is_bounded_by_what_it_keeps() {
    let sizes = |tokens| StateSizes {
        kv: KvType::F16,
        ctx_len: tokens,
        slots: 1,
        tokens,
        threads: 1,
    };
    let of = |layout: StateLayout, tokens| bytes_needed(&[layout], sizes(tokens));
    assert_eq!(
        of(FULL, 1 << 20),
        8 << 20,
        "four values of two bytes for each token"
    );
    assert!(
        of(WINDOW, 1 << 20) < of(FULL, 1 << 13),
        "a window does not grow"
    );
    assert_eq!(
        of(WINDOW, 256),
        of(FULL, 256),
        "nor does it take more than all"
    );
    assert_eq!(of(SUM, 1 << 20), of(SUM, 1));
    assert!(of(SUM, 1) > 0);
}

#[test]
fn a_footprint_says_what_is_asked_for_when_a_session_opens() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    for name in ["s04-llama-q8_0", "s16-gemma3-q4_0", "s18-qwen35-f16"] {
        let file = ModelFile::open(&models.join(format!("{name}.gguf"))).expect("it is whole");
        let graph = build(file.index()).expect("it is known");
        for kv in [KvType::F16, KvType::Q8_0] {
            for (ctx_len, slots) in [(100, 1), (512, 2), (8_192, 1), (100_000, 3)] {
                let sizes = StateSizes {
                    kv,
                    ctx_len,
                    slots,
                    tokens: slots * ctx_len,
                    threads: 4,
                };
                let options = FootprintOptions {
                    state: sizes,
                    rows_max: 0,
                };
                let found = footprint(&graph, file.index(), options);
                let needed = bytes_needed(&graph.state, sizes);
                // Without rows nothing else is scratch than what is unfolded.
                let said = found.state_bytes + found.scratch_bytes;
                assert_eq!(said, needed, "{name} {kv:?} {ctx_len} {slots}");
                assert_eq!(found.scratch_bytes > 0, kv == KvType::Q8_0, "{name}");
            }
        }
    }
}
