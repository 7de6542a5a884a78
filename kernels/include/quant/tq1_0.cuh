// TQ1_0: bytes whose five digits in base 3 are codes (48, then 4 with four digits), scale (half).
// value = scale * (digit - 1). Values 0 to 159 are the digits of the first 32 bytes, 160 to 239
// those of the next 16, 240 to 255 those of the last 4.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = false;
    static constexpr int ELEMS = 256;
    static constexpr int BYTES = 54;
    static constexpr int SCALES = 1;
    static constexpr bool HAS_OFFSET = false;

    DEVICE void unpack32(const u8* block, u32 sub, u32 (&q)[8], float (&scale)[2],
                         float (&offset)[2]) {
        for (int i = 0; i < 8; i++) {
            u32 byte = 4 * i;
            u32 digit = sub;
            if (sub >= 5) {
                bool is_last = sub == 7 && i >= 4;
                byte = is_last ? 48 : 32 + 4 * (i % 4);
                digit = is_last ? i - 4 : 2 * (sub - 5) + i / 4;
            }
            // Two bytes to a word, times the power of 3 that brings the digit to the front.
            u32 power = __byte_perm(0x1b090301u, 81u, digit) & 0xffu;
            u32 word = load_even(block + byte);
            u32 even = ((word & 0x00ff00ffu) * power) & 0x00ff00ffu;
            u32 odd = (((word >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu;
            even = ((even * 3) >> 8) & 0x00030003u;
            odd = (odd * 3) & 0x03000300u;
            q[i] = subtract_bytes(even | odd, 1);
        }
        scale[0] = load_half(block + 52);
    }
};
