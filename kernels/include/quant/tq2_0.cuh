// TQ2_0: 64 bytes of two-bit codes, scale (half). value = scale * (code - 1).
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 66;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        load_words<2>(block + sub / 4 * 32, q);
        u32 shift = sub % 4 * 2;
        for (int i = 0; i < 8; i++) {
            q[i] = subtract_bytes((q[i] >> shift) & 0x03030303u, 1);
        }
        scale[0] = load_half(block + 64);
    }
};
