// F32: a number in four bytes.
#pragma once

#include "load.cuh"

struct Quant {
    static constexpr bool IS_FLOAT = true;
    static constexpr int BYTES = 4;

    DEVICE float load(const u8* row, int col) { return reinterpret_cast<const float*>(row)[col]; }

    DEVICE void load_4(const u8* row, int col, float (&v)[4]) {
        float4 four = *reinterpret_cast<const float4*>(row + 4ull * col);
        v[0] = four.x;
        v[1] = four.y;
        v[2] = four.z;
        v[3] = four.w;
    }
};
