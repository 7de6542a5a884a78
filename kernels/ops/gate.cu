// Gate: x times activation(gate), where a value of the gate may be for several neighbours of x.
//
// x, out: float32 [rows][width]; gates: float32 [rows][n_gates], n_gates divides width.
// Launch: 256 threads, blocks (ceil(width / 256), rows).
#include "activation.cuh"

extern "C" __global__ void __launch_bounds__(256)
    gate(const float* x, const float* gates, float* out, i32 width, i32 n_gates, i32 activation) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= width) {
        return;
    }
    u64 row = blockIdx.y;
    float factor = activate(activation, gates[row * n_gates + col / (width / n_gates)]);
    u64 at = row * width + col;
    out[at] = gated(activation, x[at]) * factor;
}
