// The heads of Q4_K and Q5_K: units of scales and offsets, then eight of each in six bits.
#pragma once

#include "load.cuh"

// The low six bits of bytes 0 to 3 are scales 0 to 3, those of bytes 4 to 7 offsets 0 to 3. Bytes 8
// to 11 hold the low nibbles of scales (low) and offsets (high) 4 to 7, whose upper two bits fill
// the upper bits of bytes 0 to 7. `head[0]` holds the units.
DEVICE void six_bit_scale(const u32 (&head)[4], u32 sub, float& scale, float& offset) {
    u32 shift = sub % 4 * 8;
    u32 scales = head[1] >> shift;
    u32 offsets = head[2] >> shift;
    u32 nibbles = head[3] >> shift;
    bool is_front = sub < 4;
    u32 s = is_front ? scales & 63u : (nibbles & 15u) | ((scales >> 2) & 0x30u);
    u32 m = is_front ? offsets & 63u : ((nibbles >> 4) & 15u) | ((offsets >> 2) & 0x30u);
    scale = low_half(head[0]) * static_cast<float>(s);
    offset = -high_half(head[0]) * static_cast<float>(m);
}
