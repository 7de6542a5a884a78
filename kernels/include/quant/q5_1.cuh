// Q5_1: scale and offset (halves), fifth bits (a word), 16 bytes of nibbles.
// value = scale * code + offset.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 24;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = true;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[5];
        load_words<4>(block + 4, words);
        u32 nibbles[4] = {words[1], words[2], words[3], words[4]};
        split_nibbles(nibbles, q);
        for (int i = 0; i < 8; i++) {
            q[i] |= spread_bits(words[0] >> (4 * i)) << 4;
        }
        scale[0] = load_half(block);
        offset[0] = load_half(block + 2);
    }
};
