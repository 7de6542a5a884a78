// Q5_0: scale (half), fifth bits (a word), 16 bytes of nibbles. value = scale * (code - 16).
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 22;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[5];
        load_words<2>(block + 2, words);
        u32 nibbles[4] = {words[1], words[2], words[3], words[4]};
        split_nibbles(nibbles, q);
        for (int i = 0; i < 8; i++) {
            q[i] = subtract_bytes(q[i] | (spread_bits(words[0] >> (4 * i)) << 4), 16);
        }
        scale[0] = load_half(block);
    }
};
