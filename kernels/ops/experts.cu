// per type
// Experts in replies: the products with the matrices that a row's experts have, which are read from
// device memory (experts_route.cu says how they lie there). Gate and up of one type are
// `gated_ffn_decode_1`; what prompts need are the tiles of tiles.cu.

#include "linear.cuh"

// One matrix for each expert, [experts][outputs][cols]; biases float32 [experts][outputs] or null.
struct ExpertMatrix {
    const u8* weights;
    u64 expert_bytes;
    const float* bias;
    i32 outputs;
    i32 cols;
};

template <class Q>
DEVICE float unit_of(const u8* row, const Factor& x, int cols, int unit) {
    float product[1] = {0.0f};
    if constexpr (Q::IS_FLOAT) {
        add_float_unit<Q, 1>(row, x, cols, unit, product);
    } else {
        add_unit<Q, 1>(row, x, unit, product);
    }
    return product[0];
}

// out[row] is the sum over the row's terms of share * (matrix * x + bias), a warp for each
// output. For the matrix behind gate and up a row has all its pairs as terms; where gate and up are
// of different types, each pair is a row of its own with the share 1 (null), and `divide` pairs
// have one row of x. Launch: 256 threads, blocks (ceil(outputs / 8), rows).
extern "C" __global__ void __launch_bounds__(256)
    experts_sum(ExpertMatrix w, Factor x, const i32* chosen, const float* shares,
                const i32* position, float* out, i32 terms, i32 divide, i32 used) {
    int output = blockIdx.x * (256 / WARP) + threadIdx.x / WARP;
    int first = blockIdx.y * terms;
    if (output >= w.outputs || position[first / used] < 0) {
        return;
    }
    int units = units_of<Quant>(w.cols);
    int unit = threadIdx.x % WARP;
    float sum = 0.0f;
#pragma unroll 1
    for (int term = 0;; unit += WARP) {
        // Lanes go on with the next term where one ends: rows are short.
        while (unit >= units) {
            unit -= units;
            term++;
        }
        if (term >= terms) {
            break;
        }
        int pair = first + term;
        const u8* row = w.weights + chosen[pair] * w.expert_bytes +
                        output * row_bytes_of<Quant>(w.cols);
        Factor of_pair = rows_from<Quant>(x, pair / divide);
        float product = unit_of<Quant>(row, of_pair, w.cols, unit);
        sum = fmaf(shares == nullptr ? 1.0f : shares[pair], product, sum);
    }
    sum = over_warp<Sum>(sum);
    if (threadIdx.x % WARP != 0) {
        return;
    }
    for (int pair = first; w.bias != nullptr && pair < first + terms; pair++) {
        float bias = w.bias[static_cast<u64>(chosen[pair]) * w.outputs + output];
        sum = fmaf(shares == nullptr ? 1.0f : shares[pair], bias, sum);
    }
    out[static_cast<u64>(blockIdx.y) * w.outputs + output] = sum;
}
