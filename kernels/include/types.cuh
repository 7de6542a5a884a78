// Integer names, and the 16-bit float forms as bits: the compiler at run time has neither stdint.h
// nor a need for cuda_fp16.h, whose unused globals would stay in every module.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// A float16 as its bits.
typedef u16 half_t;

constexpr int WARP = 32;
constexpr u32 ALL_LANES = 0xffffffffu;

#define DEVICE static __device__ __forceinline__

DEVICE float half_to_float(half_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

DEVICE half_t float_to_half(float value) {
    half_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Two in a word, the first in the low half.
DEVICE u32 pack_halves(float first, float second) {
    return static_cast<u32>(float_to_half(first)) | (static_cast<u32>(float_to_half(second)) << 16);
}

DEVICE float low_half(u32 word) { return half_to_float(static_cast<half_t>(word & 0xffffu)); }

DEVICE float high_half(u32 word) { return half_to_float(static_cast<half_t>(word >> 16)); }

DEVICE float bf16_to_float(u16 bits) { return __uint_as_float(static_cast<u32>(bits) << 16); }

DEVICE i32 min_of(i32 a, i32 b) { return a < b ? a : b; }

DEVICE i32 max_of(i32 a, i32 b) { return a > b ? a : b; }

DEVICE i32 ceil_div(i32 a, i32 b) { return (a + b - 1) / b; }

// The values of up to eight float16 numbers that lie in one 16-byte load.
DEVICE void unpack_halves(uint4 words, float values[8]) {
    values[0] = low_half(words.x);
    values[1] = high_half(words.x);
    values[2] = low_half(words.y);
    values[3] = high_half(words.y);
    values[4] = low_half(words.z);
    values[5] = high_half(words.z);
    values[6] = low_half(words.w);
    values[7] = high_half(words.w);
}
