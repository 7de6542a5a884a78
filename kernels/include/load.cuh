// What the headers of the storage types have in common: loads from blocks at crooked addresses, and
// arithmetic on four bytes at a time.
//
// Every header defines `struct Quant`. Types of small integers:
//   IS_FLOAT false; ELEMS values in BYTES bytes;
//   SCALES: 2 where the two halves of 32 values differ in scale or offset, else 1;
//   HAS_OFFSET: value = scale * q + offset, else value = scale * q;
//   unpack32(block, sub, q, scale, offset): the 32 values from 32 * sub of a block, q as 32 signed
//   bytes in order, scale[0] and offset[0] of the first 16 (or of all), [1] of the others.
// Float types: IS_FLOAT true; BYTES of a value; load(row, col), and load_4 where the row lies at a
// multiple of 4 values.
//
// What each type means is said in crates/quant/src/types; values come out in the same bits.
//
// Blocks of 18, 34, 66, 210 ... bytes begin at even addresses only, those of 17 at any. Words of them
// are put together out of the aligned words around them (N + 1 loads for N words instead of 2 N or
// 4 N). That may touch three bytes in front of a block or four behind it: tensors begin at a multiple
// of four, and four bytes behind each can be read.
#pragma once

#include "types.cuh"

DEVICE u32 load_u16(const u8* p) { return *reinterpret_cast<const u16*>(p); }

DEVICE float load_half(const u8* p) { return half_to_float(*reinterpret_cast<const u16*>(p)); }

// A word at an even address.
DEVICE u32 load_even(const u8* p) { return load_u16(p) | (load_u16(p + 2) << 16); }

// N words at an address that is a multiple of ALIGN (1, 2, 4 or 16).
template <int ALIGN, int N>
DEVICE void load_words(const u8* p, u32 (&words)[N]) {
    if constexpr (ALIGN == 16) {
        static_assert(N % 4 == 0, "whole vectors");
        for (int i = 0; i < N; i += 4) {
            uint4 four = *reinterpret_cast<const uint4*>(p + 4 * i);
            words[i] = four.x;
            words[i + 1] = four.y;
            words[i + 2] = four.z;
            words[i + 3] = four.w;
        }
    } else if constexpr (ALIGN == 4) {
        for (int i = 0; i < N; i++) {
            words[i] = reinterpret_cast<const u32*>(p)[i];
        }
    } else {
        u64 crooked = reinterpret_cast<u64>(p) & 3;
        const u32* aligned = reinterpret_cast<const u32*>(p - crooked);
        // Four bytes from the crooked one on.
        u32 selector = 0x3210u + 0x1111u * static_cast<u32>(crooked);
        u32 word = aligned[0];
        for (int i = 0; i < N; i++) {
            u32 next = aligned[i + 1];
            words[i] = __byte_perm(word, next, selector);
            word = next;
        }
    }
}

// The same byte four times.
DEVICE constexpr u32 bytes_of(u32 byte) { return byte * 0x01010101u; }

// In each byte: value - less, both below 128.
DEVICE u32 subtract_bytes(u32 values, u32 less) {
    return ((values | 0x80808080u) - bytes_of(less)) ^ 0x80808080u;
}

// The four signed bytes of a word as floats: byte + 128 as the last bits of 2^23, less both. Two
// instructions a value, neither of them a conversion, which run at a quarter of the speed.
DEVICE void byte_values(u32 word, float (&values)[4]) {
    u32 above_zero = word ^ 0x80808080u;
    for (int i = 0; i < 4; i++) {
        u32 bits = __byte_perm(above_zero, 0x4b000000u, 0x7540u + i);
        values[i] = __uint_as_float(bits) - 8388736.0f;
    }
}

// Four bits, one in each byte.
DEVICE u32 spread_bits(u32 bits) { return ((bits & 15u) * 0x00204081u) & 0x01010101u; }

// Magnitudes of at least 1 become negative where their bit is set.
DEVICE u32 negate_bytes(u32 magnitudes, u32 bits) {
    u32 ones = spread_bits(bits);
    return (magnitudes ^ (ones * 0xffu)) + ones;
}

// Eight signs from their seven stored bits: the number of negative ones is even.
DEVICE u32 even_signs(u32 bits) {
    u32 seven = bits & 127u;
    return seven | ((__popc(seven) & 1u) << 7);
}

// Nibbles of sixteen bytes: the low ones are the first 16 values, the high ones the others.
DEVICE void split_nibbles(const u32 (&words)[4], u32 (&q)[8]) {
    for (int i = 0; i < 4; i++) {
        q[i] = words[i] & 0x0f0f0f0fu;
        q[i + 4] = (words[i] >> 4) & 0x0f0f0f0fu;
    }
}

// Sixteen levels, four to a word, chosen by nibbles.
struct Levels {
    u32 words[4];
};

// The levels of the four nibbles in the lower half of `nibbles`.
DEVICE u32 four_levels(const Levels& levels, u32 nibbles) {
    u32 low = __byte_perm(levels.words[0], levels.words[1], nibbles & 0x7777u);
    u32 high = __byte_perm(levels.words[2], levels.words[3], nibbles & 0x7777u);
    return __byte_perm(low, high, 0x3210u + ((nibbles & 0x8888u) >> 1));
}

// Of four bytes: the levels of the low nibbles, and those of the high ones.
DEVICE void byte_levels(const Levels& levels, u32 bytes, u32& low, u32& high) {
    u32 front = four_levels(levels, bytes);
    u32 back = four_levels(levels, bytes >> 16);
    low = __byte_perm(front, back, 0x6420u);
    high = __byte_perm(front, back, 0x7531u);
}

// The sixteen uneven levels of IQ4_NL and IQ4_XS: -127, -104, -83, -65, -49, -35, -22, -10, 1, 13,
// 25, 38, 53, 69, 89, 113. Source: `kvalues_iq4nl` of ggml (ggml-common.h).
DEVICE constexpr Levels iq4_levels() {
    return {{0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u}};
}

// The sixteen E2M1 numbers, doubled: 0, 1, 2, 3, 4, 6, 8, 12 and the same negative. Source: OCP
// Microscaling Formats (MX) Specification 1.0.
DEVICE constexpr Levels e2m1_levels() {
    return {{0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu}};
}
