// IQ1_S: unit of the scales (half), 32 bytes with the lower eight bits of numbers of vectors, two
// bytes for each 32 values: the upper three bits of four numbers, the scale (bits 12 to 14), whether
// the shift is down (bit 15). value = (d * (2 * scale + 1)) / 8 * (8 * number + 1 or - 1).
#pragma once

#define GRID_IQ1
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 50;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 bits = load_u16(block + 34 + 2 * sub);
        u32 numbers = load_even(block + 2 + 4 * sub);
        for (int v = 0; v < 4; v++) {
            u32 vector = ((numbers >> (8 * v)) & 0xffu) | (((bits >> (3 * v)) & 7u) << 8);
            iq1_vector(vector, bits >> 15, q[2 * v], q[2 * v + 1]);
        }
        scale[0] = load_half(block) * 0.125f * static_cast<float>(2 * ((bits >> 12) & 7u) + 1);
    }
};
