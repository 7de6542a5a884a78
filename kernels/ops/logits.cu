// Logits: what comes behind their product.

#include "activation.cuh"
#include "types.cuh"

// Holds logits within -cap and cap, in place; `count` values. What is not finite becomes a NaN, so
// that an infinity does not pass as the bound.
extern "C" __global__ void __launch_bounds__(256) logits_softcap(float* logits, float cap, u64 count) {
    u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        float value = logits[i];
        // Zero times a number is zero, times anything else NaN.
        logits[i] = soft_bound(cap, value) + value * 0.0f;
    }
}
