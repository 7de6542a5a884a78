// Scale: factor times x.
//
// x, out: float32, n values each (rows times width); buffers begin at multiples of 16 bytes.
// Launch: 256 threads, ceil(n / 1024) blocks.
#include "flat.cuh"

extern "C" __global__ void __launch_bounds__(256)
    scale(const float* x, float* out, u64 n, float factor) {
    each_of_four(
        out, n, [=](u64 i) { return x[i] * factor; },
        [=](u64 i) {
            float4 v = four_at(x, i);
            return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
        });
}
