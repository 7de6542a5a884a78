// Part: of every `period` values of a row, `len` values from `start`.
//
// x: float32 [rows][in_width]; out: float32 [rows][width], width = in_width / period * len.
// Launch: 256 threads, blocks (ceil(width / 256), rows).
#include "types.cuh"

extern "C" __global__ void __launch_bounds__(256)
    part(const float* x, float* out, i32 in_width, i32 width, i32 period, i32 start, i32 len) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= width) {
        return;
    }
    u64 row = blockIdx.y;
    out[row * width + col] = x[row * in_width + col / len * period + start + col % len];
}
