// Rows of float32 values as panels of 8-bit or float16 activations, for those steps that do not
// write a panel themselves, and the gate of a feed-forward whose matrices are of different types.
//
// `rows`, where given, says for each row of the panel which row of x it is; -1 makes a row of
// zeroes.

#include "activation.cuh"
#include "f16.cuh"
#include "q8.cuh"
#include "types.cuh"

// Which row of x; -1 for none.
DEVICE int row_of_x(const i32* rows, int row) { return rows == nullptr ? row : rows[row]; }

// Blocks: (rows, parts of a row). Every warp takes 128 values at a time and needs no other.
extern "C" __global__ void __launch_bounds__(256)
    quantize_q8(const float* x, i32 width, const i32* rows, i8* codes, float* scales, i32 stride) {
    Q8Panel panel{codes, scales, stride};
    int source = row_of_x(rows, blockIdx.x);
    const float* from = x + static_cast<u64>(source < 0 ? 0 : source) * width;
    int warps = blockDim.x / WARP;
    int warp = blockIdx.y * warps + threadIdx.x / WARP;
    quantize_q8_warp(panel, blockIdx.x, from, source < 0 ? 0 : width, warp * 4 * WARP,
                     gridDim.y * warps * 4 * WARP);
}

// Blocks: one a row.
extern "C" __global__ void __launch_bounds__(256)
    quantize_f16(const float* x, i32 width, const i32* rows, half_t* values, float* row_scales,
                 i32 stride) {
    __shared__ float shared[WARP];
    int source = row_of_x(rows, blockIdx.x);
    const float* from = x + static_cast<u64>(source < 0 ? 0 : source) * width;
    quantize_f16_block(F16Panel{values, row_scales, stride}, blockIdx.x, from,
                       source < 0 ? 0 : width, shared);
}

// Rows of x one below the other, chosen by `rows`: for the float types, which have no panel.
extern "C" __global__ void __launch_bounds__(256)
    quantize_gather(const float* x, i32 width, const i32* rows, float* out) {
    int source = row_of_x(rows, blockIdx.x);
    int col = blockIdx.y * blockDim.x + threadIdx.x;
    if (col < width) {
        float value = source < 0 ? 0.0f : x[static_cast<u64>(source) * width + col];
        out[static_cast<u64>(blockIdx.x) * width + col] = value;
    }
}

// gate becomes activation(gate) * up; `count` values.
extern "C" __global__ void __launch_bounds__(256)
    quantize_gated(float* gate, const float* up, i32 activation, u64 count) {
    u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        gate[i] = activate(activation, gate[i]) * gated(activation, up[i]);
    }
}
