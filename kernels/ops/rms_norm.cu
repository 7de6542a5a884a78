// RmsNorm: x / sqrt(mean(x^2) + eps) * weight, of whole rows or of each head; and the sum in front
// of it, and the forms behind it in which matrices take the row.
//
// Squares are summed in float32, in an order that depends on the width and the number of threads
// alone. A thread has the same four neighbouring values in every pass, so it reads back what it
// wrote without a barrier.
#include "f16.cuh"
#include "q8.cuh"
#include "reduce.cuh"

// Four values of a row, 0 past its end. Rows of a multiple of four values are read in one piece.
DEVICE void read_4(const float* row, int col, int width, float (&v)[4]) {
    if (width % 4 != 0) {
        load_4(row, col, width, v);
        return;
    }
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (col < width) {
        four = *reinterpret_cast<const float4*>(row + col);
    }
    v[0] = four.x;
    v[1] = four.y;
    v[2] = four.z;
    v[3] = four.w;
}

DEVICE void write_4(float* row, int col, int width, const float (&v)[4]) {
    if (width % 4 == 0 && col < width) {
        *reinterpret_cast<float4*>(row + col) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
    for (int i = 0; i < 4; i++) {
        if (col + i < width) {
            row[col + i] = v[i];
        }
    }
}

// a, b, sum, out: float32 [rows][width]; weight: [width]. With a b, x is a + b and is written to
// sum. The 8-bit or the float16 form is written where its panel is not null.
// Launch: a block a row, of whole warps, four values a thread until there are 1,024 of them.
extern "C" __global__ void __launch_bounds__(1024)
    rms_norm_row(const float* a, const float* b, float* sum, const float* weight, float eps,
                 float* out, Q8Panel codes, F16Panel halves, i32 width) {
    __shared__ float of_warps[WARP];
    int row = blockIdx.x;
    u64 at = static_cast<u64>(row) * width;
    int first = 4 * threadIdx.x;
    int step = 4 * blockDim.x;
    float squares = 0.0f;
    float v[4];
#pragma unroll 1
    for (int col = first; col < width; col += step) {
        read_4(a + at, col, width, v);
        if (b != nullptr) {
            float w[4];
            read_4(b + at, col, width, w);
            for (int i = 0; i < 4; i++) {
                v[i] += w[i];
            }
            write_4(sum + at, col, width, v);
        }
        for (int i = 0; i < 4; i++) {
            squares += v[i] * v[i];
        }
    }
    squares = over_block<Sum>(squares, of_warps);
    float factor = 1.0f / sqrtf(squares / static_cast<float>(width) + eps);
    const float* x = b != nullptr ? sum : a;
    float largest = 0.0f;
    // To the end of the panel, so that the lanes of a warp stay together.
    int end = (width + PANEL_ALIGN - 1) / PANEL_ALIGN * PANEL_ALIGN;
#pragma unroll 1
    for (int col = first; col < end; col += step) {
        float w[4];
        read_4(x + at, col, width, v);
        read_4(weight, col, width, w);
        for (int i = 0; i < 4; i++) {
            v[i] = v[i] * factor * w[i];
            largest = max_keeping_nan(largest, fabsf(v[i]));
        }
        write_4(out + at, col, width, v);
        if (codes.codes != nullptr) {
            store_q8(codes, row, col, v);
        }
    }
    if (halves.values == nullptr) {
        return;
    }
    F16Scale scale = f16_row_scale(over_block<Largest>(largest, of_warps));
    if (threadIdx.x == 0) {
        store_f16_scale(halves, row, scale);
    }
#pragma unroll 1
    for (int col = first; col < end; col += step) {
        read_4(out + at, col, width, v);
        store_f16(halves, row, col, v, scale);
    }
}

// x, out: float32 [n_parts][part], the parts of all rows behind each other; weight: [part].
// Launch: 128 threads, ceil(n_parts / 4) blocks: a warp a part.
extern "C" __global__ void __launch_bounds__(128)
    rms_norm_parts(const float* x, const float* weight, float eps, float* out, i32 part,
                   i32 n_parts) {
    int lane = threadIdx.x % WARP;
    int at = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    if (at >= n_parts) {
        return;
    }
    x += static_cast<u64>(at) * part;
    out += static_cast<u64>(at) * part;
    float squares = 0.0f;
#pragma unroll 1
    for (int i = lane; i < part; i += WARP) {
        squares += x[i] * x[i];
    }
    squares = over_warp<Sum>(squares);
    float factor = 1.0f / sqrtf(squares / static_cast<float>(part) + eps);
#pragma unroll 1
    for (int i = lane; i < part; i += WARP) {
        out[i] = x[i] * factor * weight[i];
    }
}
