// IQ2_S: unit of the scales (half), 32 bytes with the lower eight bits of numbers of vectors, 32 with
// their signs, 8 with the upper two bits, a scale for each 16 values (nibbles of 8 bytes).
// value = (d / 8 * (2 * scale + 1)) * signed magnitude.
#pragma once

#define GRID_IQ2_S
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 82;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 numbers = load_even(block + 2 + 4 * sub);
        u32 signs = load_even(block + 34 + 4 * sub);
        u32 upper = block[66 + sub];
        for (int v = 0; v < 4; v++) {
            u32 vector = ((numbers >> (8 * v)) & 0xffu) | (((upper >> (2 * v)) & 3u) << 8);
            iq2_vector(GRID_IQ2_S_PAIRS[vector], signs >> (8 * v), q[2 * v], q[2 * v + 1]);
        }
        iq2_scales(load_half(block), block[74 + sub], scale);
    }
};
