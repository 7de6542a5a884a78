// per type
// Products with many rows of activations, on the tensor cores, for Linear, GatedFfn, Experts and
// Logits: one kernel for all, since it is the longest.

#include "products.cuh"
#include "tiles.cuh"

// Tiles of rows for a matrix for each expert: tile i has expert, first place and number of places in
// `tiles[4 i]` and so on (none: behind the last). Place p is row `row_of[p]` of the panel, or row p
// where `row_of` is null. With `tiles` null the matrices are single and the tiles cover all rows.
struct TileList {
    const i32* tiles;
    const i32* row_of;
    u64 expert_bytes;
};

// Blocks: (tiles of rows, tiles of outputs of all matrices), so that blocks that read the same
// weights run beside each other. Writes float [rows or places][outputs] of each matrix. A bias has
// the outputs of each expert one after the other.
extern "C" __global__ void __launch_bounds__(TILE_THREADS)
    tiles_product(Products all, F16Panel panel, i32 n_rows, TileList list) {
    __shared__ TileShared shared;
    int expert = 0;
    int first_row = blockIdx.x * TILE_ROWS;
    int rows = n_rows - first_row;
    if (list.tiles != nullptr) {
        expert = list.tiles[4 * blockIdx.x];
        first_row = list.tiles[4 * blockIdx.x + 1];
        rows = list.tiles[4 * blockIdx.x + 2];
    }
    if (rows <= 0) {
        return;
    }
    int tile = blockIdx.y;
    int matrix = matrix_of(ceil_div(all.rows[0], TILE_OUTPUTS), ceil_div(all.rows[1], TILE_OUTPUTS),
                           tile);
    Product one = product_of(all, matrix);
    int first = tile * TILE_OUTPUTS;
    int mine = first + tile_weight_row();
    const u8* weights = nullptr;
    if (mine < one.rows) {
        weights = one.weights + expert * list.expert_bytes + mine * row_bytes_of<Quant>(all.cols);
    }
    TileInput x{panel, list.row_of, first_row, rows};
    TileSums sums;
    multiply_tile<Quant>(weights, all.cols, x, shared, sums);
    each_result(x, shared, sums, [&](int row, int output, float value) {
        int at = first + output;
        if (at < one.rows) {
            u64 of_expert = static_cast<u64>(expert) * one.rows;
            float bias = one.bias == nullptr ? 0.0f : one.bias[of_expert + at];
            one.out[static_cast<u64>(first_row + row) * one.rows + at] = value + bias;
        }
    });
}
