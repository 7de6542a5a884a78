// Reductions over a warp and over a block, in an order that depends on nothing but the number of
// threads: the same values give the same bits every time.
#pragma once

#include "types.cuh"

// The larger; a NaN where either is one (the hardware's max would lose it).
DEVICE float max_keeping_nan(float a, float b) { return (a > b || a != a) ? a : b; }

struct Sum {
    static constexpr float NEUTRAL = 0.0f;
    DEVICE float of(float a, float b) { return a + b; }
};

struct Largest {
    // Below every number, without being infinite: no difference of two of them is a NaN.
    static constexpr float NEUTRAL = -3.402823466e38f;
    DEVICE float of(float a, float b) { return max_keeping_nan(a, b); }
};

// Over `lanes` neighbouring lanes (a power of two); all of them get the result.
template <class Fold>
DEVICE float over_lanes(float value, int lanes) {
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) {
        value = Fold::of(value, __shfl_xor_sync(ALL_LANES, value, step));
    }
    return value;
}

template <class Fold>
DEVICE float over_warp(float value) {
    return over_lanes<Fold>(value, WARP);
}

// Over the block, of whole warps; all threads get the result. `shared` has a place for each of
// up to 32 warps, and may be used again at once.
template <class Fold>
DEVICE float over_block(float value, float* shared) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    value = over_warp<Fold>(value);
    if (lane == 0) {
        shared[warp] = value;
    }
    __syncthreads();
    value = lane < static_cast<int>(blockDim.x) / WARP ? shared[lane] : Fold::NEUTRAL;
    value = over_warp<Fold>(value);
    __syncthreads();
    return value;
}

// exp(x) for x at most 0, to some 2e-7: the shares of a softmax. NaN stays NaN.
DEVICE float share_of(float below_largest) {
    float share;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(below_largest * 1.44269504089f));
    return share;
}
