// Activations in float16 for the tensor cores. A row has a power of two as scale, with which its
// largest magnitude lies within 2^14 and 2^15: nothing overflows, and what is 2^28 times smaller
// still has all its bits. value = x * row_scale.
//
// A panel has rows of `stride` numbers, the width rounded up to 256; what lies past it is 0. A row
// that holds a value that is not finite is 0 with a NaN as scale, so that every product is NaN.
#pragma once

#include "q8.cuh"
#include "reduce.cuh"
#include "types.cuh"

struct F16Panel {
    half_t* values;
    float* row_scales;
    i32 stride;
};

struct F16Scale {
    float scale;
    float inverse;
};

// Exponents as they stand in the bits: the one that the largest magnitude gets (2^14), and those of
// the scale and its inverse together.
constexpr u32 F16_TOP_EXPONENT = 14;
constexpr u32 BOTH_EXPONENTS = 254;

// From the largest magnitude of the row, NaN or infinite if one value is.
DEVICE F16Scale f16_row_scale(float largest) {
    u32 bits = magnitude_bits(largest);
    if (bits >= 0x7f800000u) {
        return {__uint_as_float(0x7fc00000u), 0.0f};
    }
    u32 exponent = bits >> 23;
    // No smaller than the smallest normal number.
    u32 scale = exponent > F16_TOP_EXPONENT ? exponent - F16_TOP_EXPONENT : 1;
    return {__uint_as_float(scale << 23), __uint_as_float((BOTH_EXPONENTS - scale) << 23)};
}

DEVICE half_t f16_code(float value, F16Scale scale) {
    return scale.inverse == 0.0f ? half_t{0} : float_to_half(value * scale.inverse);
}

// Four neighbouring values; `col` is a multiple of 4. One lane of the row also calls
// `store_f16_scale`.
DEVICE void store_f16(const F16Panel& panel, int row, int col, const float (&v)[4],
                      F16Scale scale) {
    if (col >= panel.stride) {
        return;
    }
    uint2 words;
    words.x = f16_code(v[0], scale) | (static_cast<u32>(f16_code(v[1], scale)) << 16);
    words.y = f16_code(v[2], scale) | (static_cast<u32>(f16_code(v[3], scale)) << 16);
    *reinterpret_cast<uint2*>(panel.values + static_cast<u64>(row) * panel.stride + col) = words;
}

DEVICE void store_f16_scale(const F16Panel& panel, int row, F16Scale scale) {
    panel.row_scales[row] = scale.scale;
}

// A row by the whole block; `shared` has a place for each of its warps.
DEVICE void quantize_f16_block(const F16Panel& panel, int row, const float* x, int width,
                               float* shared) {
    float largest = 0.0f;
#pragma unroll 1
    for (int col = threadIdx.x; col < width; col += blockDim.x) {
        largest = max_keeping_nan(largest, fabsf(x[col]));
    }
    F16Scale scale = f16_row_scale(over_block<Largest>(largest, shared));
    if (threadIdx.x == 0) {
        store_f16_scale(panel, row, scale);
    }
#pragma unroll 1
    for (int col = 4 * threadIdx.x; col < panel.stride; col += 4 * blockDim.x) {
        float v[4];
        load_4(x, col, width, v);
        store_f16(panel, row, col, v, scale);
    }
}
