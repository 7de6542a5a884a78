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
    u32 word;
    asm("mov.b32 %0, {%1, %2};"
        : "=r"(word)
        : "h"(float_to_half(first)), "h"(float_to_half(second)));
    return word;
}

DEVICE float low_half(u32 word) { return half_to_float(static_cast<half_t>(word & 0xffffu)); }

DEVICE float high_half(u32 word) { return half_to_float(static_cast<half_t>(word >> 16)); }

DEVICE float bf16_to_float(u16 bits) { return __uint_as_float(static_cast<u32>(bits) << 16); }

DEVICE i32 min_of(i32 a, i32 b) { return a < b ? a : b; }

DEVICE i32 max_of(i32 a, i32 b) { return a > b ? a : b; }

DEVICE i32 ceil_div(i32 a, i32 b) { return (a + b - 1) / b; }

// The two float16 numbers of a word, the first from the low half.
DEVICE void unpack_word(u32 word, float& first, float& second) {
    half_t low;
    half_t high;
    asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(word));
    first = half_to_float(low);
    second = half_to_float(high);
}

// The eight float16 numbers of one 16-byte load.
DEVICE void unpack_halves(uint4 words, float (&values)[8]) {
    unpack_word(words.x, values[0], values[1]);
    unpack_word(words.y, values[2], values[3]);
    unpack_word(words.z, values[4], values[5]);
    unpack_word(words.w, values[6], values[7]);
}
