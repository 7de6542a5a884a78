// Q4_1: scale and offset (halves), then 16 bytes of nibbles. value = scale * nibble + offset.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 20;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = true;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[4];
        load_words<4>(block + 4, words);
        split_nibbles(words, q);
        scale[0] = load_half(block);
        offset[0] = load_half(block + 2);
    }
};
