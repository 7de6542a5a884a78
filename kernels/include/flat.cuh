// Element-wise kernels: each thread has four neighbouring values of a row-major buffer, whatever
// its width.
#pragma once

#include "types.cuh"

// Writes f(i) to out[i] for this thread's values of `n`. `f4` gives four at once, from a multiple
// of four.
template <class One, class Four>
DEVICE void each_of_four(float* out, u64 n, One one, Four four) {
    u64 first = 4 * (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x);
    if (first + 4 <= n) {
        *reinterpret_cast<float4*>(out + first) = four(first);
        return;
    }
    for (u64 i = first; i < n; i++) {
        out[i] = one(i);
    }
}

DEVICE float4 four_at(const float* values, u64 first) {
    return *reinterpret_cast<const float4*>(values + first);
}
