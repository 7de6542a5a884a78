// CausalConv: silu of a weighted sum over each channel's last values, the row's own with the last
// weight.
//
// x, out: float32 [rows][channels]; weight: float32 [channels][taps]; state: float32
// [copy][slot][taps - 1][channels] with strides, the newest row last.
// Launch: 256 threads (32 channels, 8 rows at a time), blocks (ceil(channels / 32), runs).
#include "activation.cuh"
#include "runs.cuh"

constexpr int CHANNELS = 32;
constexpr int LANES = 8;

// A channel's values before a run: in the state, or nothing.
struct Before {
    const float* state;
    i32 channels;
    i32 kept;

    // The value `back` rows before the run's first, 1 being the nearest.
    __device__ __forceinline__ float at(int back) const {
        return state == nullptr ? 0.0f : state[static_cast<u64>(kept - back) * channels];
    }
};

DEVICE float convolve(const float* x, const Before& before, const float* weight, int row,
                      int taps) {
    float sum = 0.0f;
#pragma unroll 1
    for (int tap = 0; tap < taps; tap++) {
        int from = row - (taps - 1 - tap);
        float value = from < 0 ? before.at(-from) : x[static_cast<i64>(from) * before.channels];
        sum += value * weight[tap];
    }
    return sum * sigmoid(sum);
}

// The last values of the run become those before the next one. Going up, a place is read before it
// is written, also where both copies are one.
DEVICE void keep(const float* x, const Before& before, float* state, int rows) {
#pragma unroll 1
    for (int i = 0; i < before.kept; i++) {
        int from = rows - before.kept + i;
        float value = from < 0 ? before.at(-from) : x[static_cast<u64>(from) * before.channels];
        state[static_cast<u64>(i) * before.channels] = value;
    }
}

extern "C" __global__ void __launch_bounds__(CHANNELS * LANES)
    causal_conv(const float* x, const float* weight, float* out, float* state, u64 copy_values,
                u64 slot_values, Runs runs, i32 channels, i32 taps) {
    if (!begins_slot(runs, blockIdx.y)) {
        return;
    }
    int lane = threadIdx.x / CHANNELS;
    int channel = blockIdx.x * CHANNELS + threadIdx.x % CHANNELS;
    bool is_channel = channel < channels;
    i32 slot = run_at(runs, blockIdx.y).slot;
    float* of_slot = state + slot * slot_values + channel;
    i32 copy = runs.source[slot];
    i32 target = runs.target[slot];
    for (int i = blockIdx.y; i < runs.count; i = next_of_slot(runs, i)) {
        Run run = run_at(runs, i);
        u64 first = static_cast<u64>(run.first_row) * channels + channel;
        const float* read = run.first_position == 0 ? nullptr : of_slot + copy * copy_values;
        Before before{read, channels, taps - 1};
        if (is_channel) {
            const float* weights = weight + static_cast<u64>(channel) * taps;
#pragma unroll 1
            for (int row = lane; row < run.rows; row += LANES) {
                out[first + static_cast<u64>(row) * channels] =
                    convolve(x + first, before, weights, row, taps);
            }
        }
        // All rows have read the state before it changes, and the next run reads what is kept here.
        __syncthreads();
        if (is_channel && lane == 0) {
            keep(x + first, before, of_slot + target * copy_values, run.rows);
        }
        __syncthreads();
        copy = target;
    }
}
