// Experts: which rows go through which of them, and what comes of it together.
//
// x: float32 [rows][width]; logits: float32 [rows][experts]; chosen: int [rows][used], the experts of a row, best first;
// shares: float32 [rows][used], what each counts. A pair is a row and one of its experts, numbered
// row * used + i.
//
// For prompts the pairs are sorted by expert: place_of[pair] is a pair's place, row_of[place] its
// row, and tiles [tiles_max][4] cuts the places into parts of one expert: expert, first place,
// places, 0; places is 0 behind the last.
#include "reduce.cuh"
#include "types.cuh"

// Rows that share what is read of the router.
constexpr int ROUTER_ROWS = 4;
constexpr int ROUTER_THREADS = 256;

// Which of two experts is chosen first: numbers are ordered as float32 is in total (a NaN of
// positive sign is above all), and of equal ones the lower expert comes first.
DEVICE u64 rank_of(float logit, u32 expert) {
    i32 bits = __float_as_int(logit);
    u32 ordered = static_cast<u32>(bits ^ ((bits >> 31) & 0x7fffffff)) ^ 0x80000000u;
    return (static_cast<u64>(ordered) << 32) | ~expert;
}

DEVICE u32 expert_of(u64 rank) { return ~static_cast<u32>(rank); }

DEVICE u64 highest(u64 rank) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        u64 other = __shfl_xor_sync(ALL_LANES, rank, step);
        rank = other > rank ? other : rank;
    }
    return rank;
}

// Where a choice goes, and what it follows. `of_all`: whether the shares are a softmax over all
// experts, not over the chosen ones. `arrived`: u32 [ceil(rows / 4)], all zero between launches.
struct Choice {
    float* logits;
    i32* chosen;
    float* shares;
    u32* arrived;
    i32 experts;
    i32 used;
    i32 of_all;
    float scale;
};

// The choice of a row, by a warp. The logits are volatile: other blocks have written them, and a
// line of this processor's own cache may be older than that.
DEVICE void choose(const Choice& to, int row) {
    int lane = threadIdx.x % WARP;
    const volatile float* of_row = to.logits + static_cast<u64>(row) * to.experts;
    i32* chosen = to.chosen + static_cast<u64>(row) * to.used;
    float* shares = to.shares + static_cast<u64>(row) * to.used;
    // One above every rank: the first choice is among all.
    u64 last = ~0ull;
    float largest = 0.0f;
    float total = 0.0f;
#pragma unroll 1
    for (int i = 0; i < to.used; i++) {
        u64 best = 0;
#pragma unroll 1
        for (u32 expert = lane; expert < to.experts; expert += WARP) {
            u64 rank = rank_of(of_row[expert], expert);
            best = rank < last && rank > best ? rank : best;
        }
        last = highest(best);
        u32 expert = expert_of(last);
        float logit = of_row[expert];
        largest = i == 0 ? logit : largest;
        float share = expf(logit - largest);
        total += share;
        // Read again below by the lane that wrote it.
        if (lane == i % WARP) {
            chosen[i] = expert;
            shares[i] = share;
        }
    }
    if (to.of_all) {
        total = 0.0f;
#pragma unroll 1
        for (int expert = lane; expert < to.experts; expert += WARP) {
            total += expf(of_row[expert] - largest);
        }
        total = over_warp<Sum>(total);
    }
#pragma unroll 1
    for (int i = lane; i < to.used; i += WARP) {
        shares[i] = shares[i] / total * to.scale;
    }
}

// Whether this block is the last of those with the same rows to come here, for all its threads;
// then it sees what they wrote before. Nobody waits: whoever is last goes on.
DEVICE bool is_last_here(u32* arrived) {
    __shared__ bool is_last;
    // What this thread wrote is seen by all before this block counts as arrived; the barrier says
    // so for the whole block.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        // Back at zero with the last one, for the next launch.
        is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
        // What is read from here on is not older than the others' arrival.
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

// router: float32 [experts][width], whatever it is stored as: a small change of it may choose
// another expert. The last block of four rows chooses for them. Launch: 256 threads, a warp for
// each expert and four rows: blocks (ceil(experts / 8), ceil(rows / 4)).
extern "C" __global__ void __launch_bounds__(ROUTER_THREADS)
    experts_router(const float* router, const float* bias, const float* x, Choice to, i32 width,
                   i32 rows) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    int expert = blockIdx.x * (ROUTER_THREADS / WARP) + warp;
    int first = blockIdx.y * ROUTER_ROWS;
    if (expert < to.experts) {
        const float* weights = router + static_cast<u64>(expert) * width;
        const float* from[ROUTER_ROWS];
        float sums[ROUTER_ROWS];
#pragma unroll
        for (int i = 0; i < ROUTER_ROWS; i++) {
            // A row past the last is computed for nothing and not written.
            from[i] = x + static_cast<u64>(min_of(first + i, rows - 1)) * width;
            sums[i] = 0.0f;
        }
#pragma unroll 4
        for (int col = lane; col < width; col += WARP) {
            float weight = weights[col];
#pragma unroll
            for (int i = 0; i < ROUTER_ROWS; i++) {
                sums[i] = fmaf(weight, from[i][col], sums[i]);
            }
        }
        float added = bias == nullptr ? 0.0f : bias[expert];
#pragma unroll
        for (int i = 0; i < ROUTER_ROWS; i++) {
            float sum = over_warp<Sum>(sums[i]);
            if (lane == 0 && first + i < rows) {
                to.logits[static_cast<u64>(first + i) * to.experts + expert] = sum + added;
            }
        }
    }
    if (is_last_here(to.arrived + blockIdx.y) && warp < ROUTER_ROWS && first + warp < rows) {
        choose(to, first + warp);
    }
}

constexpr int SORT_THREADS = 1024;
constexpr int SORT_WARPS = SORT_THREADS / WARP;

// Where the pairs of an expert go.
struct Places {
    i32* row_of;
    i32* place_of;
    i32 used;
};

// Goes through the pairs of an expert in their order, by a warp; gives their number. Where there are
// places they are put there, from `first` on.
DEVICE int each_pair(const i32* chosen, int pairs, int expert, int first, const Places* places) {
    int lane = threadIdx.x % WARP;
    int found = 0;
#pragma unroll 1
    for (int start = 0; start < pairs; start += WARP) {
        int pair = start + lane;
        bool is_its = pair < pairs && chosen[pair] == expert;
        u32 its = __ballot_sync(ALL_LANES, is_its);
        if (places != nullptr && is_its) {
            int place = first + found + __popc(its & ((1u << lane) - 1));
            places->row_of[place] = pair / places->used;
            places->place_of[pair] = place;
        }
        found += __popc(its);
    }
    return found;
}

DEVICE int sum_before(int value) {
    int lane = threadIdx.x % WARP;
    int sum = value;
    for (int step = 1; step < WARP; step *= 2) {
        int other = __shfl_up_sync(ALL_LANES, sum, step);
        sum += lane >= step ? other : 0;
    }
    return sum - value;
}

// Launch: one block; dynamic shared memory for 2 experts ints.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
    experts_sort(const i32* chosen, Places places, i32* tiles, i32 pairs, i32 experts,
                 i32 tile_places, i32 tiles_max) {
    extern __shared__ i32 shared[];
    i32* counts = shared;
    i32* firsts = shared + experts;
    int warp = threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
#pragma unroll 1
    for (int expert = warp; expert < experts; expert += SORT_WARPS) {
        int count = each_pair(chosen, pairs, expert, 0, nullptr);
        if (lane == 0) {
            counts[expert] = count;
        }
    }
    __syncthreads();
    if (warp == 0) {
        int n_places = 0;
        int n_tiles = 0;
#pragma unroll 1
        for (int start = 0; start < experts; start += WARP) {
            int expert = start + lane;
            int count = expert < experts ? counts[expert] : 0;
            int its_tiles = ceil_div(count, tile_places);
            int first = n_places + sum_before(count);
            int tile = n_tiles + sum_before(its_tiles);
            if (expert < experts) {
                firsts[expert] = first;
            }
            for (int i = 0; i < its_tiles; i++) {
                i32* entry = tiles + 4 * (tile + i);
                entry[0] = expert;
                entry[1] = first + i * tile_places;
                entry[2] = min_of(tile_places, count - i * tile_places);
                entry[3] = 0;
            }
            n_places = __shfl_sync(ALL_LANES, first + count, WARP - 1);
            n_tiles = __shfl_sync(ALL_LANES, tile + its_tiles, WARP - 1);
        }
        for (int tile = n_tiles + lane; tile < tiles_max; tile += WARP) {
            tiles[4 * tile + 2] = 0;
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int expert = warp; expert < experts; expert += SORT_WARPS) {
        each_pair(chosen, pairs, expert, firsts[expert], &places);
    }
}

// out: float32 [rows][width]: for each row the sum of what its experts gave, [places][width], in
// the order of its choices. Launch: 256 threads, blocks (ceil(width / 256), rows).
extern "C" __global__ void __launch_bounds__(256)
    experts_combine(const float* given, const i32* place_of, const float* shares, float* out,
                    i32 width, i32 used) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= width) {
        return;
    }
    u64 row = blockIdx.y;
    float sum = 0.0f;
    for (int i = 0; i < used; i++) {
        u64 place = place_of[row * used + i];
        sum += shares[row * used + i] * given[place * width + col];
    }
    out[row * width + col] = sum;
}
