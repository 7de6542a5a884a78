// Products of a matrix in any storage type with many rows of activations, on the tensor cores. A
// block of 128 threads computes 64 outputs for up to 128 rows. For every 64 columns each thread
// makes float16 numbers of 32 weights; activations are float16 as they lie in their panel, which
// ends in zeroes at a multiple of 256. Sums are float32, in an order that depends on the columns
// alone; the scale of each row comes last.
//
// One code for every type: what a matrix is stored as matters for reading it and no further. Larger
// tiles would unpack less often (each weight once for 128 rows) and leave fewer blocks.
#pragma once

#include QUANT_HEADER

#include "f16.cuh"
#include "linear.cuh"
#include "mma.cuh"
#include "types.cuh"

constexpr int TILE_OUTPUTS = 64;
constexpr int TILE_ROWS = 128;
constexpr int TILE_THREADS = 128;
constexpr int TILE_COLS = 64;

// Eight more than the columns: rows then begin in other banks, and at multiples of 16 bytes.
constexpr int TILE_STRIDE = TILE_COLS + 8;

// Of a warp: 64 rows by 32 outputs, as 16 x 8 products.
constexpr int WARP_ROWS = 64;
constexpr int WARP_OUTPUTS = 32;
constexpr int TILES_M = WARP_ROWS / 16;
constexpr int TILES_N = WARP_OUTPUTS / 8;

// Two more than the outputs: pairs of floats stay aligned, and rows begin in other banks.
constexpr int RESULT_STRIDE = TILE_OUTPUTS + 2;

// Aligned for 16-byte copies.
struct TileShared {
    uint4 weights[TILE_OUTPUTS * TILE_STRIDE / 8];
    // Afterwards the results of 64 rows at a time.
    uint4 rows[TILE_ROWS * TILE_STRIDE / 8];
};

static_assert(sizeof(TileShared::rows) >= 4 * WARP_ROWS * RESULT_STRIDE, "results fit");

DEVICE float* results_of(TileShared& shared) { return reinterpret_cast<float*>(shared.rows); }

// Rows of a panel: `row_ids[first]` and so on, or rows `first` and so on where it is null.
struct TileInput {
    F16Panel panel;
    const i32* row_ids;
    i32 first;
    // From `first` on; more than `TILE_ROWS` are not of this tile.
    i32 n_rows;
};

// A block's sums, as each thread has them.
typedef float TileSums[TILES_M][TILES_N][4];

DEVICE int tile_row_of_panel(const TileInput& x, int row) {
    return x.row_ids == nullptr ? x.first + row : x.row_ids[x.first + row];
}

// Which row of the matrix a thread unpacks, in the tile, and which half of its columns.
DEVICE int tile_weight_row() { return threadIdx.x / 2; }

// Eight values as float16.
DEVICE uint4 pack_8(const float (&v)[8]) {
    return uint4{pack_halves(v[0], v[1]), pack_halves(v[2], v[3]), pack_halves(v[4], v[5]),
                 pack_halves(v[6], v[7])};
}

// 32 values of a row of the matrix as float16, in shared memory; zeroes past its end.
template <class Q>
DEVICE void store_halves_32(const u8* row, int col, int cols, uint4* to) {
    if (row == nullptr || col >= cols) {
        for (int i = 0; i < 4; i++) {
            to[i] = uint4{0, 0, 0, 0};
        }
        return;
    }
    if constexpr (Q::IS_FLOAT) {
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
            float v[8];
            int at = col + 8 * i;
            if (cols % 8 == 0 && at < cols) {
                float front[4];
                float back[4];
                Q::load_4(row, at, front);
                Q::load_4(row, at + 4, back);
                for (int j = 0; j < 4; j++) {
                    v[j] = front[j];
                    v[j + 4] = back[j];
                }
            } else {
                for (int j = 0; j < 8; j++) {
                    v[j] = at + j < cols ? Q::load(row, at + j) : 0.0f;
                }
            }
            to[i] = pack_8(v);
        }
    } else {
        constexpr u32 SUBS = Q::ELEMS / 32;
        u32 unit = static_cast<u32>(col) / 32;
        u32 q[8];
        float scale[2];
        float offset[2];
        Q::unpack32(row + static_cast<u64>(unit / SUBS) * Q::BYTES, unit % SUBS, q, scale, offset);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int half = Q::SCALES == 2 ? i / 2 : 0;
            float v[8];
            for (int j = 0; j < 8; j += 4) {
                float codes[4];
                byte_values(q[2 * i + j / 4], codes);
                for (int k = 0; k < 4; k++) {
                    if constexpr (Q::HAS_OFFSET) {
                        v[j + k] = fmaf(scale[half], codes[k], offset[half]);
                    } else {
                        v[j + k] = scale[half] * codes[k];
                    }
                }
            }
            to[i] = pack_8(v);
        }
    }
}

// Brings 64 columns of the activations into shared memory; zeroes for rows past the last.
DEVICE void load_tile_rows(const TileInput& x, int col, TileShared& shared) {
    constexpr int CHUNKS = TILE_COLS / 8;
    int rows = min_of(x.n_rows, TILE_ROWS);
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE_ROWS * CHUNKS; i += TILE_THREADS) {
        int row = i / CHUNKS;
        uint4* to = &shared.rows[row * (TILE_STRIDE / 8) + i % CHUNKS];
        if (row < rows) {
            u64 from = static_cast<u64>(tile_row_of_panel(x, row)) * x.panel.stride + col;
            copy_16(to, x.panel.values + from + i % CHUNKS * 8);
        } else {
            *to = uint4{0, 0, 0, 0};
        }
    }
    copies_commit();
}

// The sums of one step of 64 columns. Products of 16 rows that the tile does not have are left out.
DEVICE void add_tile_products(TileShared& shared, int live, TileSums& sums) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // ldmatrix: lanes 0 to 7 name the rows of the first 8 x 8, the next eight those of the second.
    // Of the activations these are rows 0 and 8, then 8 columns further; of the weights the
    // columns alternate first.
    int a_at = (warp % 2 * WARP_ROWS + lane % 16) * TILE_STRIDE + lane / 16 * 8;
    int b_at = (warp / 2 * WARP_OUTPUTS + lane / 16 * 8 + lane % 8) * TILE_STRIDE +
               lane / 8 % 2 * 8;
    u32 a_base = shared_address(shared.rows) + 2 * a_at;
    u32 b_base = shared_address(shared.weights) + 2 * b_at;
#pragma unroll 1
    for (int k = 0; k < TILE_COLS; k += 16) {
        u32 b[TILES_N / 2][4];
#pragma unroll
        for (int n = 0; n < TILES_N / 2; n++) {
            load_matrices(b[n], b_base + 2 * (n * 16 * TILE_STRIDE + k));
        }
#pragma unroll
        for (int m = 0; m < TILES_M; m++) {
            if (m < live) {
                u32 a[4];
                load_matrices(a, a_base + 2 * (m * 16 * TILE_STRIDE + k));
#pragma unroll
                for (int n = 0; n < TILES_N; n++) {
                    multiply_16x8x16(sums[m][n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                }
            }
        }
    }
}

// The whole product of a tile. `weight_row` is the row of the matrix that stands at
// `tile_weight_row()`, null where there is none.
template <class Q>
DEVICE void multiply_tile(const u8* weight_row, int cols, const TileInput& x, TileShared& shared,
                          TileSums& sums) {
#pragma unroll
    for (int m = 0; m < TILES_M; m++) {
#pragma unroll
        for (int n = 0; n < TILES_N; n++) {
            for (int i = 0; i < 4; i++) {
                sums[m][n][i] = 0.0f;
            }
        }
    }
    int of_warp = x.n_rows - threadIdx.x / WARP % 2 * WARP_ROWS;
    int live = max_of(0, min_of(ceil_div(of_warp, 16), TILES_M));
    int half = threadIdx.x % 2;
    uint4* to = &shared.weights[tile_weight_row() * (TILE_STRIDE / 8) + half * 4];
#pragma unroll 1
    for (int col = 0; col < cols; col += TILE_COLS) {
        load_tile_rows(x, col, shared);
        store_halves_32<Q>(weight_row, col + 32 * half, cols, to);
        copies_wait<0>();
        __syncthreads();
        add_tile_products(shared, live, sums);
        __syncthreads();
    }
}

// Puts the results of 64 rows into shared memory, those of the warps whose rows they are, and waits
// for them.
DEVICE void share_results(TileShared& shared, int part, const TileSums& sums) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    if (warp % 2 == part) {
        float* from = results_of(shared) + lane / 4 * RESULT_STRIDE + warp / 2 * WARP_OUTPUTS +
                      lane % 4 * 2;
#pragma unroll
        for (int m = 0; m < TILES_M; m++) {
#pragma unroll
            for (int n = 0; n < TILES_N; n++) {
                float* to = from + m * 16 * RESULT_STRIDE + n * 8;
                const float(&c)[4] = sums[m][n];
                *reinterpret_cast<float2*>(to) = float2{c[0], c[1]};
                *reinterpret_cast<float2*>(to + 8 * RESULT_STRIDE) = float2{c[2], c[3]};
            }
        }
    }
    __syncthreads();
}

// Calls `each(row, output, value)` for every result, row and output in the tile, rows past the last
// left out, the row's scale applied. Through shared memory, 64 rows at a time: one short loop
// instead of 64 stores with all that belongs to each, and neighbouring threads write neighbouring
// outputs. The whole block has to come here.
template <class Each>
DEVICE void each_result(const TileInput& x, TileShared& shared, const TileSums& sums, Each each) {
#pragma unroll 1
    for (int part = 0; part * WARP_ROWS < min_of(x.n_rows, TILE_ROWS); part++) {
        share_results(shared, part, sums);
#pragma unroll 1
        for (int i = threadIdx.x; i < WARP_ROWS * TILE_OUTPUTS; i += TILE_THREADS) {
            int in_part = i / TILE_OUTPUTS;
            int row = part * WARP_ROWS + in_part;
            int output = i % TILE_OUTPUTS;
            if (row < x.n_rows) {
                float scale = x.panel.row_scales[tile_row_of_panel(x, row)];
                each(row, output, scale * results_of(shared)[in_part * RESULT_STRIDE + output]);
            }
        }
        __syncthreads();
    }
}
