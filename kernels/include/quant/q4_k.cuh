// Q4_K: units of scales and offsets (halves), eight scales and eight offsets of six bits in 12
// bytes, 128 bytes of nibbles. value = (d * scale) * nibble - dmin * offset.
//
// A block lies at a multiple of 16: its head is one load, 32 values are two.
#pragma once

#include "scales_k.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 144;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = true;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 head[4];
        load_words<16>(block, head);
        load_words<16>(block + 16 + sub / 2 * 32, q);
        u32 shift = sub % 2 * 4;
        for (int i = 0; i < 8; i++) {
            q[i] = (q[i] >> shift) & 0x0f0f0f0fu;
        }
        six_bit_scale(head, sub, scale[0], offset[0]);
    }
};
