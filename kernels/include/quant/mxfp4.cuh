// MXFP4: the exponent of the scale (a byte), then 16 bytes of E2M1 numbers. A block lies at any
// address. value = 2^(e - 128) * doubled number.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 32;
    static constexpr int BYTES = 17;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 words[4];
        load_words<1>(block + 1, words);
        for (int i = 0; i < 4; i++) {
            byte_levels(e2m1_levels(), words[i], q[i], q[i + 4]);
        }
        // The two smallest are subnormal.
        u32 e = block[0];
        scale[0] = __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    }
};
