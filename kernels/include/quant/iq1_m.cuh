// IQ1_M: 32 bytes with the lower eight bits of numbers of vectors, a nibble for each vector (the
// upper three bits, and whether its shift is down), and for each 64 values two bytes with four
// scales of three bits and four bits of their unit.
// value = (d * (2 * scale + 1)) / 8 * (8 * number + 1 or - 1).
#pragma once

#define GRID_IQ1
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 56;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 numbers = load_even(block + 4 * sub);
        u32 nibbles = load_u16(block + 32 + 2 * sub);
        for (int v = 0; v < 4; v++) {
            u32 bits = (nibbles >> (4 * v)) & 15u;
            u32 vector = ((numbers >> (8 * v)) & 0xffu) | ((bits & 7u) << 8);
            iq1_vector(vector, bits >> 3, q[2 * v], q[2 * v + 1]);
        }
        u32 words[2];
        load_words<4>(block + 48, words);
        u32 unit = ((words[0] >> 12) & 0xfu) | ((words[0] >> 24) & 0xf0u) |
                   ((words[1] >> 4) & 0xf00u) | ((words[1] >> 16) & 0xf000u);
        float d = half_to_float(static_cast<half_t>(unit)) * 0.125f;
        u32 scales = (sub < 4 ? words[0] : words[1]) >> (sub / 2 % 2 * 16 + sub % 2 * 6);
        scale[0] = d * static_cast<float>(2 * (scales & 7u) + 1);
        scale[1] = d * static_cast<float>(2 * ((scales >> 3) & 7u) + 1);
    }
};
