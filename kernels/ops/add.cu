// Add: the sum of two inputs.
//
// a, b, out: float32, n values each (rows times width); buffers begin at multiples of 16 bytes.
// Launch: 256 threads, ceil(n / 1024) blocks. The sum in front of a normalisation is
// `rms_norm_row`'s.
#include "flat.cuh"

extern "C" __global__ void __launch_bounds__(256)
    add(const float* a, const float* b, float* out, u64 n) {
    each_of_four(
        out, n, [=](u64 i) { return a[i] + b[i]; },
        [=](u64 i) {
            float4 x = four_at(a, i);
            float4 y = four_at(b, i);
            return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
        });
}
