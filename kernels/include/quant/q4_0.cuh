// Q4_0: scale (half), then 16 bytes of nibbles. value = scale * (nibble - 8).
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 18;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[4];
        load_words<2>(block + 2, words);
        split_nibbles(words, q);
        for (int i = 0; i < 8; i++) {
            q[i] = subtract_bytes(q[i], 8);
        }
        scale[0] = load_half(block);
    }
};
