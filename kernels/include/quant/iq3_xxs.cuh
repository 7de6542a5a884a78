// IQ3_XXS: unit of the scales (half), 64 bytes with numbers of vectors of four, a word for each 32
// values: the signs of each eight (seven bits) and the scale (the upper four).
// value = (d / 4 * (2 * scale + 1)) * signed magnitude.
#pragma once

#define GRID_IQ3_XXS
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 98;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 numbers[2];
        load_words<2>(block + 2 + 8 * sub, numbers);
        u32 bits = load_even(block + 66 + 4 * sub);
        for (int v = 0; v < 8; v++) {
            u32 vector = (numbers[v / 4] >> (v % 4 * 8)) & 0xffu;
            u32 magnitudes = iq3_vector(0x1c140c04u, 0x3e342c24u, GRID_IQ3_XXS_NIBBLES[vector]);
            q[v] = negate_bytes(magnitudes, even_signs(bits >> (v / 2 * 7)) >> (v % 2 * 4));
        }
        scale[0] = load_half(block) * 0.25f * static_cast<float>(2 * (bits >> 28) + 1);
    }
};
