// Q6_K: 128 bytes with the lower nibbles, 64 with the upper two bits, sixteen signed bytes as
// scales, their unit (half). value = (d * scale) * (code - 32). Where a run of 32 has its bits is
// said in crates/quant/src/types/q6_k.rs.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 210;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        u32 half_block = sub / 4;
        u32 run = sub % 4;
        load_words<2>(block + half_block * 64 + run % 2 * 32, q);
        u32 upper[8];
        load_words<2>(block + 128 + half_block * 32, upper);
        u32 low_shift = run / 2 * 4;
        u32 high_shift = run * 2;
        for (int i = 0; i < 8; i++) {
            u32 code = ((q[i] >> low_shift) & 0x0f0f0f0fu) |
                       (((upper[i] >> high_shift) & 0x03030303u) << 4);
            q[i] = subtract_bytes(code, 32);
        }
        u32 scales = load_u16(block + 192 + 2 * sub);
        float d = load_half(block + 208);
        scale[0] = d * static_cast<float>(static_cast<i8>(scales & 0xffu));
        scale[1] = d * static_cast<float>(static_cast<i8>(scales >> 8));
    }
};
