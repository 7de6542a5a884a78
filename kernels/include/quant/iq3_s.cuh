// IQ3_S: unit of the scales (half), 64 bytes with the lower eight bits of numbers of vectors of four,
// 8 with their ninth bits, 32 with signs, a scale for each 32 values (nibbles of 4 bytes).
// value = (d * (2 * scale + 1)) * signed magnitude.
#pragma once

#define GRID_IQ3_S
#include "grids.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 110;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 numbers[2];
        load_words<2>(block + 2 + 8 * sub, numbers);
        u32 ninths = block[66 + sub];
        u32 signs = load_even(block + 74 + 4 * sub);
        for (int v = 0; v < 8; v++) {
            u32 vector = ((numbers[v / 4] >> (v % 4 * 8)) & 0xffu) | (((ninths >> v) & 1u) << 8);
            u32 magnitudes = iq3_vector(0x07050301u, 0x0f0d0b09u, GRID_IQ3_S_NIBBLES[vector]);
            q[v] = negate_bytes(magnitudes, signs >> (4 * v));
        }
        u32 bits = (block[106 + sub / 2] >> (sub % 2 * 4)) & 15u;
        scale[0] = load_half(block) * static_cast<float>(2 * bits + 1);
    }
};
