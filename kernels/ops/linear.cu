// per type
// Linear, up to eight rows of activations: products with up to three matrices, plus a bias. More rows
// go through tiles.cu.

#include "linear.cuh"
#include "products.cuh"

constexpr int DECODE_WARPS = 4;

// Blocks that a multiprocessor has at once, at least: with 64 registers a thread none is kept in
// memory, on any architecture (left alone, the assemblers spill a few for more blocks).
constexpr int DECODE_BLOCKS = 8;

// Blocks: (rows of all matrices over DECODE_WARPS >> k_shift, groups of M rows of x). 1 << k_shift
// warps (1, 2 or 4) share a row of the matrix: as many as have something to do, so that short rows
// keep all warps busy and long ones are in flight at once. Writes float [n_rows][rows] of each
// matrix; rows of x up to the group's end are read, which the panels have.
template <int M>
DEVICE void decode(const Products& all, Factor x, int n_rows, int k_shift) {
    __shared__ float parts[DECODE_WARPS][M];
    __shared__ Stage<Quant> stages[DECODE_WARPS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    int k_warps = 1 << k_shift;
    int part = warp & (k_warps - 1);
    int row = blockIdx.x * (DECODE_WARPS >> k_shift) + (warp >> k_shift);
    int first = blockIdx.y * M;
    if (M > 1) {
        x = rows_from<Quant>(x, first);
    }
    Product one = product_of(all, matrix_of(all.rows[0], all.rows[1], row));
    float sum = 0.0f;
    if (row < one.rows) {
        sum = dot_warp<Quant, M>(one.weights + row * row_bytes_of<Quant>(all.cols), x, all.cols,
                                 part * WARP + lane, k_warps * WARP, stages[warp]);
    }
    if (k_shift > 0) {
        if (lane < M) {
            parts[warp][lane] = sum;
        }
        __syncthreads();
        if (part == 0 && lane < M) {
#pragma unroll 1
            for (int i = 1; i < k_warps; i++) {
                sum += parts[warp + i][lane];
            }
        }
    }
    if (part == 0 && lane < M && first + lane < n_rows && row < one.rows) {
        float bias = one.bias == nullptr ? 0.0f : one.bias[row];
        one.out[static_cast<u64>(first + lane) * one.rows + row] = sum + bias;
    }
}

extern "C" __global__ void __launch_bounds__(DECODE_WARPS * WARP, DECODE_BLOCKS)
    linear_decode_1(Products all, Factor x, i32 n_rows, i32 k_shift) {
    decode<1>(all, x, n_rows, k_shift);
}

// Two to four rows, and eight as two groups: more kernels cost more text than rows beside each other
// are worth where one conversation is the rule.
extern "C" __global__ void __launch_bounds__(DECODE_WARPS * WARP, DECODE_BLOCKS)
    linear_decode_4(Products all, Factor x, i32 n_rows, i32 k_shift) {
    decode<4>(all, x, n_rows, k_shift);
}
