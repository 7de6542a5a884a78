// per type
// GatedFfn up to the product of gate and up, for up to eight rows of activations and matrices of one
// type. `down` is a product of linear.cu; more rows, and matrices of different types, go through
// products and `quantize_gated`.

#include "linear.cuh"

// Which experts compute: pair p is row p / used of x with expert chosen[p], whose matrices and biases
// lie that many behind those of the first. Pairs of rows that are not there (position below 0) are
// left out. With `chosen` null the matrices are single, and a pair is a row of x.
struct Choice {
    const i32* chosen;
    const i32* position;
    u64 expert_bytes;
    i32 used;
};

DEVICE GateUp gate_up_of(GateUp w, u64 expert_bytes, int expert) {
    u64 biases = static_cast<u64>(expert) * w.inner;
    w.gate += expert * expert_bytes;
    w.up += expert * expert_bytes;
    w.gate_bias = w.gate_bias == nullptr ? nullptr : w.gate_bias + biases;
    w.up_bias = w.up_bias == nullptr ? nullptr : w.up_bias + biases;
    return w;
}

// Blocks: (stride of the panel that is written, or inner, over 32; rows or pairs). The panel gets its
// zeroes past `inner` too.
extern "C" __global__ void __launch_bounds__(GATED_THREADS, 2)
    gated_ffn_decode_1(GateUp w, Factor x, GatedOut out, Choice choice) {
    __shared__ GatedShared<Quant, 1> shared;
    int pair = blockIdx.y;
    int row = pair;
    if (choice.chosen != nullptr) {
        row = pair / choice.used;
        if (choice.position[row] < 0) {
            return;
        }
        w = gate_up_of(w, choice.expert_bytes, choice.chosen[pair]);
    }
    gated_rows<Quant, 1>(w, rows_from<Quant>(x, row), blockIdx.x * GATED_ELEMS, out, pair, shared);
}

// Blocks: (as above, groups of four rows). All rows of a group are read and written, which the
// panels have.
extern "C" __global__ void __launch_bounds__(GATED_THREADS, 1)
    gated_ffn_decode_4(GateUp w, Factor x, GatedOut out) {
    __shared__ GatedShared<Quant, 4> shared;
    int row = blockIdx.y * 4;
    gated_rows<Quant, 4>(w, rows_from<Quant>(x, row), blockIdx.x * GATED_ELEMS, out, row, shared);
}
