// Q3_K: third bits (bit sub of 32 bytes), 64 bytes of two-bit codes, sixteen six-bit scales in 12
// bytes, their unit (half). value = (d * (scale - 32)) * (code - 4).
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 110;
    static constexpr int SCALES = 2;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        load_words<2>(block + 32 + sub / 4 * 32, q);
        u32 thirds[8];
        load_words<2>(block, thirds);
        u32 shift = sub % 4 * 2;
        for (int i = 0; i < 8; i++) {
            u32 code = ((q[i] >> shift) & 0x03030303u) | (((thirds[i] >> sub) & 0x01010101u) << 2);
            q[i] = subtract_bytes(code, 4);
        }
        // The low nibbles of bytes 0 to 7 are those of scales 0 to 7, the high ones those of 8 to 15.
        // Byte 8 + j % 4 holds the upper two bits of scale j at bit 2 * (j / 4).
        float d = load_half(block + 108);
        u32 low = load_u16(block + 96 + sub * 2 % 8) >> (sub / 4 * 4);
        u32 high = load_u16(block + 104 + sub * 2 % 4) >> (sub / 2 * 2);
        for (int half = 0; half < 2; half++) {
            u32 bits = ((low >> (8 * half)) & 15u) | (((high >> (8 * half)) & 3u) << 4);
            scale[half] = d * static_cast<float>(static_cast<i32>(bits) - 32);
        }
    }
};
