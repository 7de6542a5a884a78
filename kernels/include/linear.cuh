// Products of a matrix in any storage type with rows of activations: what `linear`, `gated_ffn` and
// `experts` are made of. QUANT_HEADER names the type.
//
// Decoding: every lane takes units of 32 weights, puts them into bytes once, and
// multiplies them with the 8-bit activations of every row (dp4a); the float types take 4 weights
// and float32 activations. A unit's products are whole numbers, added in float32 lane by lane in
// the order of the columns, then over the warp, then over the warps of a row. None of this depends
// on the number of rows, and all products are fused explicitly: a row's bits do not change with
// what is computed beside it.
//
// Choices, by arithmetic and not yet measured on a card: 32 weights a lane, so that scales are decoded
// once for them and a Q4_K lane has 48 bytes in flight; one row of the matrix a warp, since four rows
// of activations reuse the bytes already; no unrolling over units, since other warps hide the wait.
// Eight rows as one group took 30 % more text a type than the rest together was worth.
//
// Reading (more rows): see tiles.cuh.
#pragma once

#include QUANT_HEADER

#include "activation.cuh"
#include "mma.cuh"
#include "q8.cuh"
#include "reduce.cuh"
#include "types.cuh"

// Activations of the decode path, beginning at the first row: codes and scales for the types of
// small integers, floats for the others (their stride is the width).
struct Factor {
    const i8* codes;
    const float* scales;
    const float* floats;
    i32 stride;
};

// The same, beginning some rows further.
template <class Q>
DEVICE Factor rows_from(Factor x, int rows) {
    u64 values = static_cast<u64>(rows) * x.stride;
    if constexpr (Q::IS_FLOAT) {
        x.floats += values;
    } else {
        x.codes += values;
        x.scales += values / Q8_ELEMS;
    }
    return x;
}

// Weights that a lane takes at once.
template <class Q>
DEVICE constexpr int unit_elems() {
    return Q::IS_FLOAT ? 4 : 32;
}

// How many there are in a row.
template <class Q>
DEVICE int units_of(int cols) {
    return (static_cast<u32>(cols) + unit_elems<Q>() - 1) / unit_elems<Q>();
}

// From one row of the matrix to the next.
template <class Q>
DEVICE u64 row_bytes_of(int cols) {
    if constexpr (Q::IS_FLOAT) {
        return static_cast<u64>(cols) * Q::BYTES;
    } else {
        return static_cast<u64>(static_cast<u32>(cols) / Q::ELEMS) * Q::BYTES;
    }
}

// acc[m] += the products of 32 weights with the activations of row m: those from 32 * sub of a
// block, which are unit `unit` of the row.
template <class Q, int M>
DEVICE void add_block(const u8* block, u32 sub, const Factor& x, u32 unit, float (&acc)[M]) {
    u32 q[8];
    float scale[2];
    float offset[2];
    Q::unpack32(block, sub, q, scale, offset);
#pragma unroll
    for (int m = 0; m < M; m++) {
        u64 at = static_cast<u64>(m) * x.stride + 32 * unit;
        u32 codes[8];
        load_words<16>(reinterpret_cast<const u8*>(x.codes) + at, codes);
        i32 products[2] = {0, 0};
        i32 sums[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            // Without a scale for each half there is one sum.
            int half = Q::SCALES == 2 ? i / 4 : 0;
            products[half] = dp4a(q[i], codes[i], products[half]);
            if constexpr (Q::HAS_OFFSET) {
                sums[half] = dp4a(bytes_of(1), codes[i], sums[half]);
            }
        }
        float sum = scale[0] * static_cast<float>(products[0]);
        if constexpr (Q::SCALES == 2) {
            sum = fmaf(scale[1], static_cast<float>(products[1]), sum);
        }
        if constexpr (Q::HAS_OFFSET) {
            sum = fmaf(offset[0], static_cast<float>(sums[0]), sum);
            if constexpr (Q::SCALES == 2) {
                sum = fmaf(offset[1], static_cast<float>(sums[1]), sum);
            }
        }
        acc[m] = fmaf(x.scales[at / Q8_ELEMS], sum, acc[m]);
    }
}

// The same from a row of the matrix.
template <class Q, int M>
DEVICE void add_unit(const u8* row, const Factor& x, u32 unit, float (&acc)[M]) {
    constexpr u32 SUBS = Q::ELEMS / 32;
    const u8* block = row + static_cast<u64>(unit / SUBS) * Q::BYTES;
    add_block<Q, M>(block, unit % SUBS, x, unit, acc);
}

// The same for 4 weights in floating point. Rows of a multiple of four values are read four at
// once.
template <class Q, int M>
DEVICE void add_float_unit(const u8* row, const Factor& x, int cols, u32 unit,
                           float (&acc)[M]) {
    int col = 4 * unit;
    bool is_whole = cols % 4 == 0;
    float weights[4];
    if (is_whole) {
        Q::load_4(row, col, weights);
    } else {
        for (int i = 0; i < 4; i++) {
            weights[i] = col + i < cols ? Q::load(row, col + i) : 0.0f;
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
        const float* from = x.floats + static_cast<u64>(m) * x.stride;
        float v[4];
        if (is_whole) {
            float4 four = *reinterpret_cast<const float4*>(from + col);
            v[0] = four.x;
            v[1] = four.y;
            v[2] = four.z;
            v[3] = four.w;
        } else {
            load_4(from, col, cols, v);
        }
        for (int i = 0; i < 4; i++) {
            acc[m] = fmaf(weights[i], v[i], acc[m]);
        }
    }
}

// Types whose blocks begin at crooked addresses come through shared memory: a warp copies the bytes
// of its 32 units in whole vectors. Taken from where they lie, 32 weights are up to 18 loads of a
// word of which each touches most lines that the warp needs.
template <class Q>
DEVICE constexpr bool is_staged() {
    return !Q::IS_FLOAT && Q::BYTES % 16 != 0;
}

// Bytes of 32 units.
template <class Q>
DEVICE constexpr int stage_bytes() {
    if constexpr (is_staged<Q>()) {
        return WARP * 32 / Q::ELEMS * Q::BYTES;
    } else {
        return 0;
    }
}

// Of one warp. The bytes may begin and end within a vector, and are read a word further.
template <class Q>
struct Stage {
    uint4 vectors[(stage_bytes<Q>() + 15 + 15) / 16 + 1];
};

// Copies `bytes` bytes by the warp; returns where they then begin. Reads to the ends of the vectors
// in which they begin and end: both lie in the tensor or in the 256 bytes that its place is a
// multiple of.
template <class Q>
DEVICE const u8* stage(Stage<Q>& shared, const u8* from, u32 bytes) {
    u32 crooked = static_cast<u32>(reinterpret_cast<u64>(from)) & 15u;
    const uint4* vectors = reinterpret_cast<const uint4*>(from - crooked);
    u32 count = (crooked + bytes + 15) / 16;
    // What the lanes read before has been read.
    __syncwarp();
#pragma unroll 1
    for (u32 i = threadIdx.x % WARP; i < count; i += WARP) {
        shared.vectors[i] = vectors[i];
    }
    __syncwarp();
    return reinterpret_cast<const u8*>(shared.vectors) + crooked;
}

// A lane's share of a row's products: units `first`, `first + step` ..., of which lane 0 begins at a
// multiple of 32. The whole warp has to come here.
template <class Q, int M>
DEVICE void dot_units(const u8* row, const Factor& x, int cols, int first, int step,
                      Stage<Q>& shared, float (&acc)[M]) {
#pragma unroll
    for (int m = 0; m < M; m++) {
        acc[m] = 0.0f;
    }
    int units = units_of<Q>(cols);
    if constexpr (is_staged<Q>()) {
        constexpr u32 SUBS = Q::ELEMS / 32;
        u32 lane = threadIdx.x % WARP;
        u32 row_bytes = static_cast<u32>(row_bytes_of<Q>(cols));
#pragma unroll 1
        for (u32 base = first - lane; base < units; base += step) {
            u32 begin = base / SUBS * Q::BYTES;
            u32 rest = row_bytes - begin;
            u32 bytes = rest < stage_bytes<Q>() ? rest : stage_bytes<Q>();
            const u8* blocks = stage<Q>(shared, row + begin, bytes);
            if (base + lane < units) {
                const u8* block = blocks + lane / SUBS * Q::BYTES;
                add_block<Q, M>(block, lane % SUBS, x, base + lane, acc);
            }
        }
    } else {
#pragma unroll 1
        for (int unit = first; unit < units; unit += step) {
            if constexpr (Q::IS_FLOAT) {
                add_float_unit<Q, M>(row, x, cols, unit, acc);
            } else {
                add_unit<Q, M>(row, x, unit, acc);
            }
        }
    }
}

// The products of one row of the matrix with all rows of x, by a warp; lane m gets that of row m.
template <class Q, int M>
DEVICE float dot_warp(const u8* row, const Factor& x, int cols, int first, int step,
                      Stage<Q>& shared) {
    float acc[M];
    dot_units<Q, M>(row, x, cols, first, step, shared, acc);
    // All rows in one loop, which keeps the code small.
#pragma unroll 1
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
#pragma unroll
        for (int m = 0; m < M; m++) {
            acc[m] += __shfl_xor_sync(ALL_LANES, acc[m], lanes);
        }
    }
    float mine = acc[0];
#pragma unroll
    for (int m = 1; m < M; m++) {
        mine = threadIdx.x % WARP == m ? acc[m] : mine;
    }
    return mine;
}

// A gate and what it is for, as matrices of `inner` rows; biases or null.
struct GateUp {
    const u8* gate;
    const u8* up;
    const float* gate_bias;
    const float* up_bias;
    i32 inner;
    i32 cols;
    i32 activation;
};

// Where activation(gate) * up goes: a panel for a matrix of small integers behind it, floats
// (null for none) of `inner` values a row for the others.
struct GatedOut {
    Q8Panel panel;
    float* floats;
};

// Values between gate and down that one block of `GATED_THREADS` computes: as many as share a scale
// of the panel, so that the block can round them itself and no launch is needed for it.
constexpr int GATED_ELEMS = 32;
constexpr int GATED_THREADS = 512;

template <class Q, int M>
struct GatedShared {
    float products[2 * GATED_ELEMS][M];
    Stage<Q> stages[GATED_THREADS / WARP];
};

// `GATED_ELEMS` values from `first` for M rows, written to rows `out_row` and the next. Every warp
// takes a row of gate or up at a time.
template <class Q, int M>
DEVICE void gated_rows(const GateUp& w, const Factor& x, int first, const GatedOut& out,
                       int out_row, GatedShared<Q, M>& shared) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    u64 row_bytes = row_bytes_of<Q>(w.cols);
#pragma unroll 1
    for (int item = warp; item < 2 * GATED_ELEMS; item += GATED_THREADS / WARP) {
        int row = first + item % GATED_ELEMS;
        if (row >= w.inner) {
            continue;
        }
        const u8* matrix = item < GATED_ELEMS ? w.gate : w.up;
        float product = dot_warp<Q, M>(matrix + row * row_bytes, x, w.cols, lane, WARP,
                                       shared.stages[warp]);
        if (lane < M) {
            shared.products[item][lane] = product;
        }
    }
    __syncthreads();
    if (warp >= M) {
        return;
    }
    int col = first + lane;
    float value = 0.0f;
    if (col < w.inner) {
        float gate = shared.products[lane][warp];
        float up = shared.products[GATED_ELEMS + lane][warp];
        gate += w.gate_bias == nullptr ? 0.0f : w.gate_bias[col];
        up += w.up_bias == nullptr ? 0.0f : w.up_bias[col];
        value = activate(w.activation, gate) * gated(w.activation, up);
    }
    int row = out_row + warp;
    if (out.floats != nullptr && col < w.inner) {
        out.floats[static_cast<u64>(row) * w.inner + col] = value;
    }
    if (out.panel.codes != nullptr) {
        store_q8_lane(out.panel, row, col, value);
    }
}
