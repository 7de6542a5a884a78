// BF16: the upper half of a single-precision number.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = true;
    static constexpr int BYTES = 2;

    DEVICE float load(const u8* row, int col) {
        return bf16_to_float(static_cast<u16>(load_u16(row + 2ull * col)));
    }

    DEVICE void load_4(const u8* row, int col, float (&v)[4]) {
        uint2 words = *reinterpret_cast<const uint2*>(row + 2ull * col);
        v[0] = __uint_as_float(words.x << 16);
        v[1] = __uint_as_float(words.x & 0xffff0000u);
        v[2] = __uint_as_float(words.y << 16);
        v[3] = __uint_as_float(words.y & 0xffff0000u);
    }
};
