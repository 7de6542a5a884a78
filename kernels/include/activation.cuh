// The functions on the gate of a product (crates/arch, `Activation`), by the number that the host
// passes, and the soft bound of scores and logits.
#pragma once

#include "types.cuh"

constexpr int SILU = 0;
constexpr int GELU = 1;
constexpr int SIGMOID = 2;
constexpr int CLAMPED_SWIGLU = 3;

// sqrt(2 / pi), and the cube's share: the tanh form of GELU.
constexpr float GELU_SLOPE = 0.7978845608f;
constexpr float GELU_CUBE = 0.044715f;

// The published code of gpt-oss.
constexpr float SWIGLU_LIMIT = 7.0f;
constexpr float SWIGLU_SLOPE = 1.702f;

// 1 / (1 + exp(-x)).
DEVICE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The smaller; a NaN stays one.
DEVICE float at_most(float limit, float x) { return x > limit ? limit : x; }

DEVICE float at_least(float limit, float x) { return x < limit ? limit : x; }

// What the gate becomes.
DEVICE float activate(int activation, float x) {
    switch (activation) {
        case SILU:
            return x * sigmoid(x);
        case GELU:
            // x / 2 (1 + tanh(u)) is x / (1 + exp(-2u)).
            return x * sigmoid(2.0f * GELU_SLOPE * (x + GELU_CUBE * x * x * x));
        case SIGMOID:
            return sigmoid(x);
        default:
            x = at_most(SWIGLU_LIMIT, x);
            return x * sigmoid(SWIGLU_SLOPE * x);
    }
}

// What the gate is for becomes this before it is multiplied.
DEVICE float gated(int activation, float x) {
    if (activation != CLAMPED_SWIGLU) {
        return x;
    }
    return at_least(-SWIGLU_LIMIT, at_most(SWIGLU_LIMIT, x)) + 1.0f;
}

// cap tanh(x / cap); nothing where there is no cap (0).
DEVICE float soft_bound(float cap, float x) { return cap > 0.0f ? cap * tanhf(x / cap) : x; }
