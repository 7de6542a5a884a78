// Q2_K: scale and offset of each 16 values (nibbles of 16 bytes), 64 bytes of two-bit codes, the
// units of scales and offsets (halves). value = (d * scale) * code - dmin * offset.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 84;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = true;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        load_words<4>(block + 16 + sub / 4 * 32, q);
        u32 shift = sub % 4 * 2;
        for (int i = 0; i < 8; i++) {
            q[i] = (q[i] >> shift) & 0x03030303u;
        }
        u32 scales = load_u16(block + 2 * sub);
        float d = load_half(block + 80);
        float dmin = load_half(block + 82);
        for (int half = 0; half < 2; half++) {
            scale[half] = d * static_cast<float>((scales >> (8 * half)) & 15u);
            offset[half] = -dmin * static_cast<float>((scales >> (8 * half + 4)) & 15u);
        }
    }
};
