// IQ2_XXS: unit of the scales (half), eight bytes for each 32 values: four numbers of vectors, then
// the signs of each vector (seven bits) and the scale (the upper four).
// value = (d / 8 * (2 * scale + 1)) * signed magnitude.
#pragma once

#define GRID_IQ2_XXS
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 66;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[2];
        load_words<2>(block + 2 + 8 * sub, words);
        for (int v = 0; v < 4; v++) {
            u32 vector = (words[0] >> (8 * v)) & 0xffu;
            iq2_vector(GRID_IQ2_XXS_PAIRS[vector], even_signs(words[1] >> (7 * v)), q[2 * v], q[2 * v + 1]);
        }
        scale[0] = load_half(block) * 0.125f * static_cast<float>(2 * (words[1] >> 28) + 1);
    }
};
