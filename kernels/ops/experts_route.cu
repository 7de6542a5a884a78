// Experts: which rows go through which of them, and what comes of it together.
//
// logits: float32 [rows][experts]; chosen: int [rows][used], the experts of a row, best first;
// shares: float32 [rows][used], what each counts. A pair is a row and one of its experts, numbered
// row * used + i.
//
// For prompts the pairs are sorted by expert: order[place] is a pair, place_of[pair] its place, and
// tiles [tiles_max][4] cuts the places into parts of one expert: expert, first place, places, 0;
// places is 0 behind the last.
#include "reduce.cuh"
#include "types.cuh"

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

// Launch: a warp for each row, in blocks of one. `of_all`: whether the shares are a softmax over
// all experts, not over the chosen ones.
extern "C" __global__ void __launch_bounds__(WARP)
    experts_choose(const float* logits, i32* chosen, float* shares, i32 experts, i32 used,
                   i32 of_all, float scale) {
    int lane = threadIdx.x;
    const float* of_row = logits + static_cast<u64>(blockIdx.x) * experts;
    chosen += static_cast<u64>(blockIdx.x) * used;
    shares += static_cast<u64>(blockIdx.x) * used;
    // One above every rank: the first choice is among all.
    u64 last = ~0ull;
    float largest = 0.0f;
    float total = 0.0f;
#pragma unroll 1
    for (int i = 0; i < used; i++) {
        u64 best = 0;
#pragma unroll 1
        for (u32 expert = lane; expert < experts; expert += WARP) {
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
    if (of_all) {
        total = 0.0f;
#pragma unroll 1
        for (int expert = lane; expert < experts; expert += WARP) {
            total += expf(of_row[expert] - largest);
        }
        total = over_warp<Sum>(total);
    }
    for (int i = lane; i < used; i += WARP) {
        shares[i] = shares[i] / total * scale;
    }
}

constexpr int SORT_THREADS = 1024;
constexpr int SORT_WARPS = SORT_THREADS / WARP;

// Goes through the pairs of an expert in their order, by a warp; gives their number. Where `order`
// is given they are put behind `first` there.
DEVICE int each_pair(const i32* chosen, int pairs, int expert, int first, i32* order,
                     i32* place_of) {
    int lane = threadIdx.x % WARP;
    int found = 0;
#pragma unroll 1
    for (int start = 0; start < pairs; start += WARP) {
        int pair = start + lane;
        bool is_its = pair < pairs && chosen[pair] == expert;
        u32 its = __ballot_sync(ALL_LANES, is_its);
        if (order != nullptr && is_its) {
            int place = first + found + __popc(its & ((1u << lane) - 1));
            order[place] = pair;
            place_of[pair] = place;
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
    experts_sort(const i32* chosen, i32* order, i32* place_of, i32* tiles, i32 pairs, i32 experts,
                 i32 tile_places, i32 tiles_max) {
    extern __shared__ i32 shared[];
    i32* counts = shared;
    i32* firsts = shared + experts;
    int warp = threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
#pragma unroll 1
    for (int expert = warp; expert < experts; expert += SORT_WARPS) {
        int count = each_pair(chosen, pairs, expert, 0, nullptr, nullptr);
        if (lane == 0) {
            counts[expert] = count;
        }
    }
    __syncthreads();
    if (warp == 0) {
        int places = 0;
        int n_tiles = 0;
#pragma unroll 1
        for (int start = 0; start < experts; start += WARP) {
            int expert = start + lane;
            int count = expert < experts ? counts[expert] : 0;
            int its_tiles = ceil_div(count, tile_places);
            int first = places + sum_before(count);
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
            places = __shfl_sync(ALL_LANES, first + count, WARP - 1);
            n_tiles = __shfl_sync(ALL_LANES, tile + its_tiles, WARP - 1);
        }
        for (int tile = n_tiles + lane; tile < tiles_max; tile += WARP) {
            tiles[4 * tile + 2] = 0;
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int expert = warp; expert < experts; expert += SORT_WARPS) {
        each_pair(chosen, pairs, expert, firsts[expert], order, place_of);
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
