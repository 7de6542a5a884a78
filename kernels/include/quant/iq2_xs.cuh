// IQ2_XS: unit of the scales (half), two bytes for each vector of eight: its number (nine bits) and
// its signs (seven), a scale for each 16 values (nibbles of 8 bytes).
// value = (d / 8 * (2 * scale + 1)) * signed magnitude.
#pragma once

#define GRID_IQ2_XS
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 74;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[2];
        load_words<2>(block + 2 + 8 * sub, words);
        for (int v = 0; v < 4; v++) {
            u32 bits = words[v / 2] >> (v % 2 * 16);
            iq2_vector(GRID_IQ2_XS_PAIRS[bits & 511u], even_signs(bits >> 9), q[2 * v], q[2 * v + 1]);
        }
        iq2_scales(load_half(block), block[66 + sub], scale);
    }
};
