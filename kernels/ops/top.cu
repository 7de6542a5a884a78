// What is told of rows of logits: whether all of them are numbers, the log of the sum of their
// exponentials, and the largest. A block for each wanted row, all launched whatever is wanted, so
// that a captured launch fits every batch.
#include "reduce.cuh"
#include "types.cuh"

constexpr int THREADS = 512;

// As many of the largest as are told.
constexpr int TOP_MAX = 64;

struct Report {
    i32 finite;
    // Only where something of the largest was wanted.
    float lse;
    i32 id[TOP_MAX];
    float value[TOP_MAX];
};

struct Found {
    float value;
    i32 id;
};

// The larger, and of equal ones the lower id; ids below 0 are nothing.
DEVICE bool beats(Found a, Found b) {
    if (a.id < 0 || b.id < 0) {
        return b.id < 0 && a.id >= 0;
    }
    return a.value > b.value || (a.value == b.value && a.id < b.id);
}

DEVICE Found best_of_warp(Found mine) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        Found other = {__shfl_xor_sync(ALL_LANES, mine.value, step),
                       __shfl_xor_sync(ALL_LANES, mine.id, step)};
        if (beats(other, mine)) {
            mine = other;
        }
    }
    return mine;
}

// The best of the row that `last` beats, of any where `last` is nothing.
DEVICE Found next_best(const float* row, int n, Found last, Found* shared) {
    Found mine = {0.0f, -1};
    for (int id = threadIdx.x; id < n; id += THREADS) {
        Found it = {row[id], id};
        if ((last.id < 0 || beats(last, it)) && beats(it, mine)) {
            mine = it;
        }
    }
    mine = best_of_warp(mine);
    if (threadIdx.x % WARP == 0) {
        shared[threadIdx.x / WARP] = mine;
    }
    __syncthreads();
    int lane = threadIdx.x % WARP;
    mine = lane < THREADS / WARP ? shared[lane] : Found{0.0f, -1};
    mine = best_of_warp(mine);
    __syncthreads();
    return mine;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    top_report(const float* logits, int n, const i32* want, const i32* top, Report* reports) {
    __shared__ float sums[WARP];
    __shared__ Found bests[WARP];
    int at = blockIdx.x;
    if (want[at] < 0) {
        return;
    }
    const float* row = logits + static_cast<u64>(at) * n;
    Report* report = reports + at;
    // Zero times a number is zero, times anything else NaN.
    float zeros = 0.0f;
    for (int id = threadIdx.x; id < n; id += THREADS) {
        zeros += row[id] * 0.0f;
    }
    zeros = over_block<Sum>(zeros, sums);
    bool finite = zeros == 0.0f;
    if (threadIdx.x == 0) {
        report->finite = finite;
    }
    int wanted = min_of(top[at], TOP_MAX);
    if (!finite || wanted <= 0) {
        return;
    }
    Found last = {0.0f, -1};
    float largest = 0.0f;
    for (int i = 0; i < wanted; i++) {
        last = next_best(row, n, last, bests);
        if (last.id < 0) {
            break;
        }
        largest = i == 0 ? last.value : largest;
        if (threadIdx.x == 0) {
            report->id[i] = last.id;
            report->value[i] = last.value;
        }
    }
    float sum = 0.0f;
    for (int id = threadIdx.x; id < n; id += THREADS) {
        sum += share_of(row[id] - largest);
    }
    sum = over_block<Sum>(sum, sums);
    if (threadIdx.x == 0) {
        report->lse = largest + logf(sum);
    }
}
