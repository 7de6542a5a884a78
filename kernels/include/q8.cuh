// Activations in 8 bits: the other factor of the integer products. The rule is that of
// crates/quant/src/activation.rs: of each 32 values the scale is the largest magnitude over 127, a
// code the value times 127 over it, rounded to nearest, ties to even.
//
// A panel has rows of `stride` codes, the width rounded up to 256, and a scale for each 32 of them.
// What lies past the width has code and scale 0. 32 values of which one is not finite get a NaN as
// scale, so that every product with them is NaN.
#pragma once

#include "types.cuh"

constexpr int Q8_ELEMS = 32;

// Codes of a row are a multiple of this.
constexpr int PANEL_ALIGN = 256;

struct Q8Panel {
    i8* codes;
    float* scales;
    i32 stride;
};

// How 32 values become codes.
struct Q8Scale {
    float scale;
    float inverse;
};

// From the largest of the bits of 32 magnitudes: as integers they are ordered as the magnitudes
// are, and infinities and NaNs are above all numbers.
DEVICE Q8Scale q8_scale(u32 largest_bits) {
    float largest = __uint_as_float(largest_bits);
    if (largest_bits >= 0x7f800000u) {
        return {__uint_as_float(0x7fc00000u), 0.0f};
    }
    float inverse = 127.0f / largest;
    // 127 over what is smaller than about 4e-37 is no longer finite.
    bool is_finite = __float_as_uint(inverse) < 0x7f800000u;
    return is_finite ? Q8Scale{largest / 127.0f, inverse} : Q8Scale{0.0f, 0.0f};
}

DEVICE u32 magnitude_bits(float value) { return __float_as_uint(value) & 0x7fffffffu; }

DEVICE u32 larger_bits(u32 a, u32 b) { return a > b ? a : b; }

// The largest over 2^n neighbouring lanes. The whole warp has to come here.
DEVICE u32 largest_bits_over(u32 bits, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
        bits = larger_bits(bits, __shfl_xor_sync(ALL_LANES, bits, step));
    }
    return bits;
}

// With an inverse of 0 the code is 0: what is not finite is kept by the scale alone.
DEVICE i32 q8_code(float value, Q8Scale scale) {
    return scale.inverse == 0.0f ? 0 : __float2int_rn(value * scale.inverse);
}

// Four neighbouring values a lane, 32 values for eight neighbouring lanes; `col` is the lane's
// first, a multiple of 4, eight lanes beginning at a multiple of 32. The whole warp has to come
// here; a lane whose column is not below the stride takes part and writes nothing.
DEVICE void store_q8(const Q8Panel& panel, int row, int col, const float (&v)[4]) {
    u32 bits = larger_bits(larger_bits(magnitude_bits(v[0]), magnitude_bits(v[1])),
                           larger_bits(magnitude_bits(v[2]), magnitude_bits(v[3])));
    Q8Scale scale = q8_scale(largest_bits_over(bits, 8));
    if (col >= panel.stride) {
        return;
    }
    u32 word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (static_cast<u32>(q8_code(v[i], scale)) & 0xffu) << (8 * i);
    }
    u64 at = static_cast<u64>(row) * panel.stride + col;
    *reinterpret_cast<u32*>(panel.codes + at) = word;
    if (col % Q8_ELEMS == 0) {
        panel.scales[at / Q8_ELEMS] = scale.scale;
    }
}

// One value a lane, 32 for the warp; `col` is the lane's own, lane 0 at a multiple of 32.
DEVICE void store_q8_lane(const Q8Panel& panel, int row, int col, float value) {
    Q8Scale scale = q8_scale(largest_bits_over(magnitude_bits(value), WARP));
    if (col >= panel.stride) {
        return;
    }
    u64 at = static_cast<u64>(row) * panel.stride + col;
    panel.codes[at] = static_cast<i8>(q8_code(value, scale));
    if (col % Q8_ELEMS == 0) {
        panel.scales[at / Q8_ELEMS] = scale.scale;
    }
}

// Four values of a row of any width; 0 past its end. `col` is a multiple of 4.
DEVICE void load_4(const float* x, int col, int width, float (&v)[4]) {
    for (int i = 0; i < 4; i++) {
        v[i] = col + i < width ? x[col + i] : 0.0f;
    }
}

// A part of a row that lies in global or shared memory, by warps: this one takes 128 values at
// `first` and then at each `step` after it (both multiples of 128), to the end of the panel.
DEVICE void quantize_q8_warp(const Q8Panel& panel, int row, const float* x, int width, int first,
                             int step) {
    int lane = threadIdx.x % WARP;
#pragma unroll 1
    for (int start = first; start < panel.stride; start += step) {
        float v[4];
        load_4(x, start + 4 * lane, width, v);
        store_q8(panel, row, start + 4 * lane, v);
    }
}

// A row by the whole block.
DEVICE void quantize_q8_block(const Q8Panel& panel, int row, const float* x, int width) {
    int warp = threadIdx.x / WARP;
    int warps = blockDim.x / WARP;
    quantize_q8_warp(panel, row, x, width, warp * 4 * WARP, warps * 4 * WARP);
}
