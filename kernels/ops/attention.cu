// Attention over the pages of the state; the rows' own keys and values are in them already
// (`rope_append`).
//
// q: float32 [rows][n_heads][head_dim]; head_dim is a multiple of 8 and at most 256; any number of
// query heads shares a key head. Scores are scale q k, bounded by cap tanh(score / cap) where
// there is a cap (0: none), over the last `window` positions up to the row's own (0: all). A head
// with a sink has one more score in its softmax, without a value. Keys and values are float16,
// sums and softmax float32. A NaN among the numbers that a row sees makes the row NaN.
//
// Few rows (`attention_decode_*`, `attention_combine`): a block takes the query heads of one key
// head over 128 tokens that begin at an absolute multiple of 128, so a row's result depends on its
// position alone, not on how many blocks are launched; blocks past the position end at once. The
// second kernel merges the parts in their order and writes the 8-bit form for the output matrix.
// Read in 16-byte pieces, four a lane under way. 128 instead of a page's 256 tokens: a model with 8
// key heads then fills 128 multiprocessors from 2,048 tokens on, for 3 % more traffic at 128
// values a head.
//
// Many rows (`attention_prefill_*`): a block takes one head of 64 rows, tile by tile of the keys,
// with the tensor cores; queries are float16 after the scale, shares float16 after the softmax.
// Values load while scores are computed, the next keys while values are summed. Shared memory is
// 24 to 48 KB, its 16-byte pieces exchanged within 8 so that no two rows of a matrix collide.
// 256 values a head leave registers and shared memory for tiles of 16 keys only.
#include "f16.cuh"
#include "kv.cuh"
#include "mma.cuh"
#include "q8.cuh"
#include "reduce.cuh"
#include "step.cuh"

constexpr int SPLIT_TOKENS = 128;
constexpr int HEAD_DIM_MAX = 256;
constexpr int DECODE_WARPS = 4;
constexpr int LOADS = 4;

struct Scores {
    float scale;
    float softcap;
    i32 window;
    i32 n_heads;
};

// cap tanh(score / cap), to some 1e-7 of the cap; tanh(y) is 1 - 2 / (1 + exp(2y)).
DEVICE float bounded(float cap, float two_over_cap, float score) {
    return cap - 2.0f * cap * __frcp_rn(1.0f + __expf(two_over_cap * score));
}

// The largest score so far may lose a NaN: the NaN's own share keeps it.
DEVICE float larger(float a, float b) { return fmaxf(a, b); }

struct LargestScore {
    static constexpr float NEUTRAL = Largest::NEUTRAL;
    DEVICE float of(float a, float b) { return larger(a, b); }
};

// How a warp reads rows of the pages: `lanes` lanes have 8 values each of one token, several
// tokens at once.
struct Reading {
    const half_t* rows;
    int head_dim;
    // Values of the row that this lane has begin here; past the end for lanes without.
    int col;
    int tokens_at_once;
    // Which of them is this lane's.
    int token;
};

DEVICE uint4 read_piece(const Reading& reading, int token, int start, int end) {
    if (token < start || token >= end || reading.col >= reading.head_dim) {
        return make_uint4(0, 0, 0, 0);
    }
    u64 at = static_cast<u64>(token) * reading.head_dim + reading.col;
    return *reinterpret_cast<const uint4*>(reading.rows + at);
}

// The products of the queries with the keys start .. end of a split (counted from its begin), into
// scores[head][token].
template <int HEADS>
DEVICE void multiply_keys(const Reading& reading, const float (&q)[HEADS][8], int start, int end,
                          int lanes, float (*scores)[SPLIT_TOKENS]) {
    int stride = DECODE_WARPS * reading.tokens_at_once;
    int warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int base = warp * reading.tokens_at_once; base < end; base += LOADS * stride) {
        uint4 pieces[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            pieces[i] = read_piece(reading, base + i * stride + reading.token, start, end);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            float k[8];
            unpack_halves(pieces[i], k);
            float sums[HEADS];
#pragma unroll
            for (int h = 0; h < HEADS; h++) {
                sums[h] = 0.0f;
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    sums[h] += q[h][j] * k[j];
                }
            }
#pragma unroll 1
            for (int step = lanes / 2; step > 0; step /= 2) {
#pragma unroll
                for (int h = 0; h < HEADS; h++) {
                    sums[h] += __shfl_xor_sync(ALL_LANES, sums[h], step);
                }
            }
            int token = base + i * stride + reading.token;
            if (reading.col == 0 && token >= start && token < end) {
#pragma unroll
                for (int h = 0; h < HEADS; h++) {
                    scores[h][token] = sums[h];
                }
            }
        }
    }
}

// One warp turns one head's scores into shares; (largest, sum) goes to `sums`.
DEVICE void soften(float* scores, int start, int end, float softcap, float2* sums) {
    int lane = threadIdx.x % WARP;
    float largest = LargestScore::NEUTRAL;
#pragma unroll 1
    for (int i = lane; i < SPLIT_TOKENS; i += WARP) {
        if (i >= start && i < end) {
            scores[i] = softcap > 0.0f ? bounded(softcap, 2.0f / softcap, scores[i]) : scores[i];
            largest = larger(largest, scores[i]);
        }
    }
    largest = over_warp<LargestScore>(largest);
    float sum = 0.0f;
#pragma unroll 1
    for (int i = lane; i < SPLIT_TOKENS; i += WARP) {
        float share = i >= start && i < end ? share_of(scores[i] - largest) : 0.0f;
        scores[i] = share;
        sum += share;
    }
    sum = over_warp<Sum>(sum);
    if (lane == 0) {
        *sums = make_float2(largest, sum);
    }
}

// Adds the values, weighted by their shares, of the tokens that this lane reads.
template <int HEADS>
DEVICE void sum_values(const Reading& reading, const float (*shares)[SPLIT_TOKENS], int start,
                       int end, float (&sums)[HEADS][8]) {
    int stride = DECODE_WARPS * reading.tokens_at_once;
    int warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int base = warp * reading.tokens_at_once; base < end; base += LOADS * stride) {
        uint4 pieces[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            pieces[i] = read_piece(reading, base + i * stride + reading.token, start, end);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int token = base + i * stride + reading.token;
            if (token >= SPLIT_TOKENS) {
                continue;
            }
            float v[8];
            unpack_halves(pieces[i], v);
#pragma unroll
            for (int h = 0; h < HEADS; h++) {
                float share = shares[h][token];
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    sums[h][j] += share * v[j];
                }
            }
        }
    }
}

// Parts of one launch: for each row, head and split the sum of the values and (largest, sum).
struct Parts {
    float* values;
    float2* sums;
    i32 splits;
};

// Four heads at a time, over the tokens that a warp reads at once and then over the warps.
template <int HEADS>
DEVICE void store_parts(const Reading& reading, float (&sums)[HEADS][8], int n_heads, u64 first,
                        const Parts& parts) {
    constexpr int AT_ONCE = HEADS < 4 ? HEADS : 4;
    __shared__ float merged[DECODE_WARPS][AT_ONCE][HEAD_DIM_MAX];
    int warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int step = WARP / reading.tokens_at_once; step < WARP; step *= 2) {
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                sums[h][j] += __shfl_xor_sync(ALL_LANES, sums[h][j], step);
            }
        }
    }
#pragma unroll
    for (int h0 = 0; h0 < HEADS; h0 += AT_ONCE) {
        __syncthreads();
        if (reading.token == 0 && reading.col < reading.head_dim) {
#pragma unroll
            for (int h = 0; h < AT_ONCE; h++) {
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    merged[warp][h][reading.col + j] = sums[h0 + h][j];
                }
            }
        }
        __syncthreads();
#pragma unroll 1
        for (int h = 0; h < AT_ONCE && h0 + h < n_heads; h++) {
            u64 at = (first + static_cast<u64>(h0 + h) * parts.splits) * reading.head_dim;
#pragma unroll 1
            for (int d = threadIdx.x; d < reading.head_dim; d += blockDim.x) {
                float sum = merged[0][h][d];
                for (int w = 1; w < DECODE_WARPS; w++) {
                    sum += merged[w][h][d];
                }
                parts.values[at + d] = sum;
            }
        }
    }
}

template <int HEADS>
DEVICE void decode(const float* q, const Step& step, const Kv& kv, const Scores& how,
                   const Parts& parts) {
    __shared__ float scores[HEADS][SPLIT_TOKENS];
    int row = blockIdx.z;
    int position = step.position[row];
    if (position < 0) {
        return;
    }
    int first = first_seen(position, how.window);
    int begin = (first / SPLIT_TOKENS + static_cast<int>(blockIdx.x)) * SPLIT_TOKENS;
    int start = max_of(first - begin, 0);
    int end = min_of(position + 1 - begin, SPLIT_TOKENS);
    if (end <= 0) {
        return;
    }
    int group = how.n_heads / kv.n_kv_heads;
    int blocks_per_kv_head = ceil_div(group, HEADS);
    int kv_head = blockIdx.y / blocks_per_kv_head;
    int first_of_group = blockIdx.y % blocks_per_kv_head * HEADS;
    int n_heads = min_of(group - first_of_group, HEADS);
    u64 head = static_cast<u64>(row) * how.n_heads + kv_head * group + first_of_group;

    int lanes = 1;
#pragma unroll 1
    while (8 * lanes < kv.head_dim) {
        lanes *= 2;
    }
    int lane = threadIdx.x % WARP;
    u64 place = kv_offset(kv, step.slot[row], kv_head, begin);
    Reading reading = {kv.keys + place, kv.head_dim, lane % lanes * 8, WARP / lanes, lane / lanes};
    float numbers[HEADS][8];
    const float* query = q + head * kv.head_dim + reading.col;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        bool is_there = h < n_heads && reading.col < kv.head_dim;
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (is_there) {
                four = *reinterpret_cast<const float4*>(query + h * kv.head_dim + j);
            }
            numbers[h][j] = four.x * how.scale;
            numbers[h][j + 1] = four.y * how.scale;
            numbers[h][j + 2] = four.z * how.scale;
            numbers[h][j + 3] = four.w * how.scale;
        }
    }
    multiply_keys<HEADS>(reading, numbers, start, end, lanes, scores);
    __syncthreads();
    u64 part = head * parts.splits + blockIdx.x;
#pragma unroll 1
    for (int h = threadIdx.x / WARP; h < n_heads; h += DECODE_WARPS) {
        float2* sums = parts.sums + part + static_cast<u64>(h) * parts.splits;
        soften(scores[h], start, end, how.softcap, sums);
    }
#pragma unroll 1
    for (int i = n_heads * SPLIT_TOKENS + threadIdx.x; i < HEADS * SPLIT_TOKENS; i += blockDim.x) {
        scores[i / SPLIT_TOKENS][i % SPLIT_TOKENS] = 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            numbers[h][j] = 0.0f;
        }
    }
    reading.rows = kv.values + place;
    sum_values<HEADS>(reading, scores, start, end, numbers);
    store_parts<HEADS>(reading, numbers, n_heads, part, parts);
}

// Launch: 128 threads, blocks (splits, n_kv_heads ceil(group / HEADS), rows).
#define DECODE(HEADS)                                                                         \
    extern "C" __global__ void __launch_bounds__(128) attention_decode_##HEADS(               \
        const float* q, Step step, Kv kv, Scores how, Parts parts) {                          \
        decode<HEADS>(q, step, kv, how, parts);                                               \
    }

DECODE(1)
DECODE(4)
DECODE(8)

// What is known of one number of the output after some parts.
struct Merged {
    float largest;
    float sum;
    float value;
};

DEVICE void merge(Merged& a, const Merged& b) {
    float largest = larger(a.largest, b.largest);
    float of_a = share_of(a.largest - largest);
    float of_b = share_of(b.largest - largest);
    a = {largest, a.sum * of_a + b.sum * of_b, a.value * of_a + b.value * of_b};
}

constexpr int COMBINE_WARPS = 8;

// out: float32 [rows][n_heads head_dim], and its 8-bit form, zeros past the width.
// Launch: 256 threads, blocks (stride / 32, rows): a lane has one number, the warps take turns
// with the splits.
extern "C" __global__ void __launch_bounds__(256)
    attention_combine(Parts parts, Step step, Scores how, const float* sinks, float* out,
                      Q8Panel codes, i32 head_dim) {
    __shared__ Merged of_warps[COMBINE_WARPS][WARP];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    int row = blockIdx.y;
    int position = step.position[row];
    if (position < 0) {
        return;
    }
    int width = how.n_heads * head_dim;
    int col = blockIdx.x * WARP + lane;
    bool is_there = col < width;
    int head = is_there ? col / head_dim : 0;
    int n = position / SPLIT_TOKENS - first_seen(position, how.window) / SPLIT_TOKENS + 1;
    u64 first = (static_cast<u64>(row) * how.n_heads + head) * parts.splits;
    Merged merged = {LargestScore::NEUTRAL, 0.0f, 0.0f};
#pragma unroll 1
    for (int split = warp; split < n; split += COMBINE_WARPS) {
        float2 sums = parts.sums[first + split];
        float value = is_there ? parts.values[(first + split) * head_dim + col % head_dim] : 0.0f;
        merge(merged, {sums.x, sums.y, value});
    }
    of_warps[warp][lane] = merged;
    __syncthreads();
    if (warp > 0) {
        return;
    }
    if (sinks != nullptr) {
        merge(merged, {sinks[head], 1.0f, 0.0f});
    }
#pragma unroll 1
    for (int w = 1; w < min_of(n, COMBINE_WARPS); w++) {
        merge(merged, of_warps[w][lane]);
    }
    float value = is_there ? merged.value / merged.sum : 0.0f;
    if (is_there) {
        out[static_cast<u64>(row) * width + col] = value;
    }
    store_q8_lane(codes, row, col, value);
}

constexpr int TILE_ROWS = 64;
constexpr int PREFILL_THREADS = 128;
constexpr int ROWS_OF_WARP = 16;

// Rows of HEAD halves in shared memory, in pieces of 8: piece c of row r lies at c ^ (r % 8).
template <int HEAD>
DEVICE int piece_at(int row, int piece) {
    return row * (HEAD / 8) + (piece ^ (row & 7));
}

// 64 rows of one head of the query, scaled, as float16; zeros where there are none.
template <int HEAD>
DEVICE void load_queries(const float* q, int first_row, int rows, int head, const Scores& how,
                         int head_dim, uint4* tile) {
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE_ROWS * (HEAD / 8); i += PREFILL_THREADS) {
        int row = i / (HEAD / 8);
        int piece = i % (HEAD / 8);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (first_row + row < rows && piece * 8 < head_dim) {
            u64 at = (static_cast<u64>(first_row + row) * how.n_heads + head) * head_dim;
            const float4* from = reinterpret_cast<const float4*>(q + at + piece * 8);
            float4 a = from[0];
            float4 b = from[1];
            float s = how.scale;
            words = make_uint4(pack_halves(a.x * s, a.y * s), pack_halves(a.z * s, a.w * s),
                               pack_halves(b.x * s, b.y * s), pack_halves(b.z * s, b.w * s));
        }
        tile[piece_at<HEAD>(row, piece)] = words;
    }
}

// Begins to load KEYS rows of a page; zeros past `last`, which nobody has written yet.
template <int HEAD, int KEYS>
DEVICE void load_tile(const half_t* pool, const Kv& kv, u64 place, int key, int last, uint4* tile) {
#pragma unroll 2
    for (int i = threadIdx.x; i < KEYS * (HEAD / 8); i += PREFILL_THREADS) {
        int row = i / (HEAD / 8);
        int piece = i % (HEAD / 8);
        uint4* to = tile + piece_at<HEAD>(row, piece);
        if (key + row <= last && piece * 8 < kv.head_dim) {
            copy_16(to, pool + place + static_cast<u64>(row) * kv.head_dim + piece * 8);
        } else {
            *to = make_uint4(0, 0, 0, 0);
        }
    }
    copies_commit();
}

// The keys that one of a thread's two rows sees: none of them where last is less than first.
struct Seen {
    int first;
    int last;
};

// What a thread knows of its two rows.
template <int HEAD>
struct Rows {
    Seen seen[2];
    float largest[2];
    float sum[2];
    float values[HEAD / 8][4];
};

template <int HEAD, int KEYS>
DEVICE void multiply_tile(const uint4* queries, const uint4* keys, float (&scores)[KEYS / 8][4]) {
    int lane = threadIdx.x % WARP;
    int first_row = threadIdx.x / WARP * ROWS_OF_WARP;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            scores[n][i] = 0.0f;
        }
    }
#pragma unroll 1
    for (int depth = 0; depth < HEAD / 8; depth += 2) {
        u32 a[4];
        int row = first_row + lane % 16;
        load_matrices(a, shared_address(queries + piece_at<HEAD>(row, depth + lane / 16)));
#pragma unroll
        for (int n = 0; n < KEYS / 8; n += 2) {
            u32 b[4];
            int key = 8 * n + lane % 8 + lane / 16 * 8;
            load_matrices(b, shared_address(keys + piece_at<HEAD>(key, depth + lane / 8 % 2)));
            multiply_16x8x16(scores[n], a, b[0], b[1]);
            multiply_16x8x16(scores[n + 1], a, b[2], b[3]);
        }
    }
}

// Scores become shares (0 where the row does not see the key); what was summed so far is brought
// to the new largest score.
template <int HEAD, int KEYS>
DEVICE void soften_tile(float (&scores)[KEYS / 8][4], int key, float softcap, Rows<HEAD>& rows) {
    const float UNSEEN = __int_as_float(0xff800000);
    if (softcap > 0.0f) {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            scores[i / 4][i % 4] = bounded(softcap, 2.0f / softcap, scores[i / 4][i % 4]);
        }
    }
    int first_col = key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        Seen seen = rows.seen[r];
        if (key < seen.first || key + KEYS - 1 > seen.last) {
#pragma unroll
            for (int i = 0; i < KEYS / 4; i++) {
                int at = first_col + i / 2 * 8 + i % 2;
                float& score = scores[i / 2][2 * r + i % 2];
                score = at >= seen.first && at <= seen.last ? score : UNSEEN;
            }
        }
        float largest = rows.largest[r];
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) {
            largest = larger(largest, scores[i / 2][2 * r + i % 2]);
        }
        largest = over_lanes<LargestScore>(largest, 4);
        float old = share_of(rows.largest[r] - largest);
        float sum = rows.sum[r] * old;
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) {
            float& score = scores[i / 2][2 * r + i % 2];
            score = share_of(score - largest);
            sum += score;
        }
        rows.largest[r] = largest;
        rows.sum[r] = sum;
#pragma unroll
        for (int n = 0; n < HEAD / 8; n++) {
            rows.values[n][2 * r] *= old;
            rows.values[n][2 * r + 1] *= old;
        }
    }
}

template <int HEAD, int KEYS>
DEVICE void add_tile(const float (&shares)[KEYS / 8][4], const uint4* values, Rows<HEAD>& rows) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int depth = 0; depth < KEYS / 8; depth += 2) {
        const float(&front)[4] = shares[depth];
        const float(&back)[4] = shares[depth + 1];
        u32 a[4] = {pack_halves(front[0], front[1]), pack_halves(front[2], front[3]),
                    pack_halves(back[0], back[1]), pack_halves(back[2], back[3])};
        int key = 8 * depth + lane % 16;
#pragma unroll
        for (int n = 0; n < HEAD / 8; n += 2) {
            u32 b[4];
            u32 from = shared_address(values + piece_at<HEAD>(key, n + lane / 16));
            load_matrices_transposed(b, from);
            multiply_16x8x16(rows.values[n], a, b[0], b[1]);
            multiply_16x8x16(rows.values[n + 1], a, b[2], b[3]);
        }
    }
}

// Where the prefill's results go.
struct Output {
    float* values;
    // The float16 form; its row scale is 1, since no mean of float16 values is larger than they.
    F16Panel panel;
};

template <int HEAD>
DEVICE void store_rows(Rows<HEAD>& rows, int first_row, int head, const Scores& how, int head_dim,
                       const float* sinks, const Output& out) {
    int lane = threadIdx.x % WARP;
    int width = how.n_heads * head_dim;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        Merged all = {rows.largest[r], over_lanes<Sum>(rows.sum[r], 4), 1.0f};
        if (sinks != nullptr) {
            merge(all, {sinks[head], 1.0f, 0.0f});
        }
        float factor = all.value / all.sum;
        if (rows.seen[r].last < rows.seen[r].first) {
            continue;
        }
        u64 row = first_row + threadIdx.x / WARP * ROWS_OF_WARP + lane / 4 + 8 * r;
        int first_col = head * head_dim + lane % 4 * 2;
        float* value = out.values + row * width + first_col;
        half_t* half = out.panel.values + row * out.panel.stride + first_col;
#pragma unroll
        for (int n = 0; n < HEAD / 8; n++) {
            if (8 * n < head_dim) {
                float a = rows.values[n][2 * r] * factor;
                float b = rows.values[n][2 * r + 1] * factor;
                *reinterpret_cast<float2*>(value + 8 * n) = make_float2(a, b);
                *reinterpret_cast<u32*>(half + 8 * n) = pack_halves(a, b);
            }
        }
        if (head == how.n_heads - 1) {
#pragma unroll 1
            for (int col = width + lane % 4; col < out.panel.stride; col += 4) {
                out.panel.values[row * out.panel.stride + col] = 0;
            }
            out.panel.row_scales[row] = 1.0f;
        }
    }
}

// Rows of a tile that follow each other in one slot: first row, how many, position of the first.
struct Run {
    int first;
    int rows;
    int position;
    int slot;
};

DEVICE Run run_at(const Step& step, int first, int end) {
    Run run = {first, 1, step.position[first], step.slot[first]};
    while (first + run.rows < end && step.slot[first + run.rows] == run.slot &&
           step.position[first + run.rows] == run.position + run.rows) {
        run.rows += 1;
    }
    return run;
}

template <int HEAD>
DEVICE void start_rows(Rows<HEAD>& rows, const Run& run, int first_row, int window) {
    int own = first_row + threadIdx.x / WARP * ROWS_OF_WARP + threadIdx.x % WARP / 4;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int in_run = own + 8 * r - run.first;
        int position = run.position + in_run;
        bool is_in = in_run >= 0 && in_run < run.rows;
        rows.seen[r] = {is_in ? first_seen(position, window) : 0, is_in ? position : -1};
        rows.largest[r] = LargestScore::NEUTRAL;
        rows.sum[r] = 0.0f;
    }
#pragma unroll
    for (int n = 0; n < HEAD / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            rows.values[n][i] = 0.0f;
        }
    }
}

template <int HEAD, int KEYS>
DEVICE void prefill(const float* q, i32 n_rows, const Step& step, const Kv& kv, const Scores& how,
                    const float* sinks, const Output& out) {
    __shared__ uint4 queries[TILE_ROWS * HEAD / 8];
    __shared__ uint4 keys[KEYS * HEAD / 8];
    __shared__ uint4 values[KEYS * HEAD / 8];
    int first_row = blockIdx.x * TILE_ROWS;
    int end = min_of(first_row + TILE_ROWS, n_rows);
    int head = blockIdx.y;
    int kv_head = head / (how.n_heads / kv.n_kv_heads);
    load_queries<HEAD>(q, first_row, n_rows, head, how, kv.head_dim, queries);
    int next = first_row;
    while (next < end) {
        Run run = run_at(step, next, end);
        next += run.rows;
        if (run.position < 0) {
            continue;
        }
        Rows<HEAD> rows;
        start_rows(rows, run, first_row, how.window);
        int key = first_seen(run.position, how.window) / KEYS * KEYS;
        int last = run.position + run.rows - 1;
        u64 place = kv_offset(kv, run.slot, kv_head, key);
        load_tile<HEAD, KEYS>(kv.keys, kv, place, key, last, keys);
        while (key <= last) {
            copies_wait<0>();
            __syncthreads();
            load_tile<HEAD, KEYS>(kv.values, kv, place, key, last, values);
            float scores[KEYS / 8][4];
            multiply_tile<HEAD, KEYS>(queries, keys, scores);
            soften_tile<HEAD, KEYS>(scores, key, how.softcap, rows);
            copies_wait<0>();
            __syncthreads();
            key += KEYS;
            if (key <= last) {
                place = kv_offset(kv, run.slot, kv_head, key);
                load_tile<HEAD, KEYS>(kv.keys, kv, place, key, last, keys);
            }
            add_tile<HEAD, KEYS>(scores, values, rows);
        }
        store_rows(rows, first_row, head, how, kv.head_dim, sinks, out);
    }
}

// Launch: 128 threads, blocks (ceil(rows / 64), n_heads). HEAD is head_dim rounded up.
#define PREFILL(HEAD, KEYS)                                                                    \
    extern "C" __global__ void __launch_bounds__(128) attention_prefill_##HEAD(                \
        const float* q, i32 rows, Step step, Kv kv, Scores how, const float* sinks, Output out) { \
        prefill<HEAD, KEYS>(q, rows, step, kv, how, sinks, out);                               \
    }

PREFILL(64, 64)
PREFILL(128, 64)
PREFILL(256, 16)
