// IQ4_XS: unit of the scales (half), the upper two bits of eight scales (2 bytes), their lower
// nibbles (4 bytes), 16 bytes of nibbles for each 32 values. value = (d * (scale - 32)) * level.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 136;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[4];
        load_words<4>(block + 8 + 16 * sub, words);
        for (int i = 0; i < 4; i++) {
            byte_levels(iq4_levels(), words[i], q[i], q[i + 4]);
        }
        u32 head[2];
        load_words<4>(block, head);
        u32 bits = ((head[1] >> (4 * sub)) & 15u) | (((head[0] >> (16 + 2 * sub)) & 3u) << 4);
        scale[0] = low_half(head[0]) * static_cast<float>(static_cast<i32>(bits) - 32);
    }
};
