// F16: a half-precision number in two bytes.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = true;
    static constexpr int BYTES = 2;

    DEVICE float load(const u8* row, int col) { return load_half(row + 2ull * col); }

    DEVICE void load_4(const u8* row, int col, float (&v)[4]) {
        uint2 words = *reinterpret_cast<const uint2*>(row + 2ull * col);
        v[0] = low_half(words.x);
        v[1] = high_half(words.x);
        v[2] = low_half(words.y);
        v[3] = high_half(words.y);
    }
};
