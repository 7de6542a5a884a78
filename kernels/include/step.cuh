// What changes from one forward to the next, in device memory: a captured graph is replayed with
// other contents. Each array has a place for every row of the launch.
#pragma once

#include "types.cuh"

struct Step {
    const i32* token;
    // Of the row in its slot; -1 for the rows past those of the batch, which leave no trace.
    const i32* position;
    const i32* slot;
};
