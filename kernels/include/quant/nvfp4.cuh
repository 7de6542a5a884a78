// NVFP4: an E4M3 scale for each 16 of 64 values, then 8 bytes of E2M1 numbers for each 16.
// value = scale / 2 * doubled number; the scale is read as crates/quant/src/types/nvfp4.rs says.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 64;
    static constexpr int BYTES = 36;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[4];
        load_words<4>(block + 4 + 16 * sub, words);
        for (int half = 0; half < 2; half++) {
            byte_levels(e2m1_levels(), words[2 * half], q[4 * half], q[4 * half + 2]);
            byte_levels(e2m1_levels(), words[2 * half + 1], q[4 * half + 1], q[4 * half + 3]);
            // Half of it in units of 2^-10: four bits of exponent, three of fraction. 127 is no number
            // and counts as 0.
            u32 bits = block[2 * sub + half];
            u32 exponent = (bits >> 3) & 15u;
            u32 fraction = bits & 7u;
            u32 units = exponent == 0 ? fraction : (8u + fraction) << (exponent - 1);
            scale[half] = bits == 127u ? 0.0f : static_cast<float>(units) * (1.0f / 1024.0f);
        }
    }
};
