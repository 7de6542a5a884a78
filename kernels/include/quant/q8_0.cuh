// Q8_0: scale (half), then 32 signed bytes. value = scale * byte.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 34;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        load_words<2>(block + 2, q);
        scale[0] = load_half(block);
    }
};
