// Rows of a batch that belong to a slot, and the recurrent state that they go through.
//
// `runs` has for each run of neighbouring rows of one slot: slot, first row, rows, position of the
// first row; rows is 0 behind the last. A slot may have several runs, in the order of its
// positions: its state goes through them one after the other, so one block takes them all.
//
// The state has two copies. A forward reads copy source[slot] first and writes target[slot]; a
// slot without rows is not touched. At position 0 nothing is read: what is there is not the slot's.
#pragma once

#include "types.cuh"

struct Runs {
    const i32* runs;
    i32 count;
    const i32* source;
    const i32* target;
};

struct Run {
    i32 slot;
    i32 first_row;
    i32 rows;
    i32 first_position;
};

DEVICE Run run_at(const Runs& all, int i) {
    const i32* run = all.runs + 4 * i;
    return {run[0], run[1], run[2], run[3]};
}

// Whether run `i` is there and the first of its slot: this block's to begin with.
DEVICE bool begins_slot(const Runs& all, int i) {
    Run run = run_at(all, i);
    if (run.rows == 0) {
        return false;
    }
    for (int before = 0; before < i; before++) {
        if (all.runs[4 * before] == run.slot) {
            return false;
        }
    }
    return true;
}

// The next run of the same slot behind run `i`; `count` if there is none.
DEVICE int next_of_slot(const Runs& all, int i) {
    i32 slot = all.runs[4 * i];
    for (i++; i < all.count; i++) {
        Run run = run_at(all, i);
        if (run.rows == 0) {
            return all.count;
        }
        if (run.slot == slot) {
            return i;
        }
    }
    return all.count;
}
