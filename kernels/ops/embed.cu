// per type
// Embed: the rows of the table that belong to the tokens, in float32.

#include QUANT_HEADER

#include "types.cuh"

// 32 values of a row of blocks, or eight of a float type, from a multiple of that on.
template <class Q>
DEVICE constexpr int values_of_thread() {
    return Q::IS_FLOAT ? 8 : 32;
}

template <class Q>
DEVICE void write_values(const u8* row, int first, int width, float* to) {
    if constexpr (Q::IS_FLOAT) {
#pragma unroll 1
        for (int i = 0; i < min_of(values_of_thread<Q>(), width - first); i++) {
            to[i] = Q::load(row, first + i);
        }
    } else {
        constexpr u32 SUBS = Q::ELEMS / 32;
        u32 unit = static_cast<u32>(first) / 32;
        u32 q[8];
        float scale[2];
        float offset[2];
        Q::unpack32(row + static_cast<u64>(unit / SUBS) * Q::BYTES, unit % SUBS, q, scale, offset);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int half = Q::SCALES == 2 ? i / 4 : 0;
            float codes[4];
            byte_values(q[i], codes);
            for (int j = 0; j < 4; j++) {
                if constexpr (Q::HAS_OFFSET) {
                    to[4 * i + j] = fmaf(scale[half], codes[j], offset[half]);
                } else {
                    to[4 * i + j] = scale[half] * codes[j];
                }
            }
        }
    }
}

// Blocks: (values of a row over those of a block, rows). Rows past those of the batch may hold any
// token: one that the table does not have gives zeroes.
extern "C" __global__ void __launch_bounds__(128)
    embed_rows(const u8* table, u64 row_bytes, const i32* token, float* out, i32 tokens,
               i32 width) {
    constexpr int VALUES = values_of_thread<Quant>();
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * VALUES;
    if (first >= width) {
        return;
    }
    int id = token[blockIdx.y];
    float* to = out + static_cast<u64>(blockIdx.y) * width + first;
    if (id >= 0 && id < tokens) {
        write_values<Quant>(table + id * row_bytes, first, width, to);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < min_of(VALUES, width - first); i++) {
        to[i] = 0.0f;
    }
}
