// IQ4_NL: scale (half), then 16 bytes of nibbles that choose levels. value = scale * level.
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
        for (int i = 0; i < 4; i++) {
            byte_levels(iq4_levels(), words[i], q[i], q[i + 4]);
        }
        scale[0] = load_half(block);
    }
};
