// Rope: turns pairs of a head's values by the angle of the row's position; alone, or between the
// heads' normalisation and the pages of the state.
//
// Angles are two tables of (cosine, sine) in float32, made by the host in float64: `coarse` for
// the positions that are multiples of 256 (the rotated length is in it), `fine` for 0 .. 255, each
// [entry][pairs]. Their product is right to some 1e-7, and the tables of a context of 131,072
// tokens take 400 KB instead of 67 MB.
//
// A warp has one head: it reads it once for the squares, once for the values (from the L1 cache).
// A lane writes only what it alone has read in the second pass, so output and input may be one
// buffer. Launch: 128 threads, blocks (ceil(heads / 4), rows).
#include "kv.cuh"
#include "reduce.cuh"
#include "step.cuh"

constexpr int ADJACENT = 0;

constexpr int ANGLE_STEPS = 256;

struct Angles {
    const float2* coarse;
    const float2* fine;
    int pairs;
    int style;
};

// Of one pair at one position: the product of two turns.
DEVICE float2 turn_of(const Angles& angles, int position, int pair) {
    float2 a = angles.coarse[position / ANGLE_STEPS * angles.pairs + pair];
    float2 b = angles.fine[position % ANGLE_STEPS * angles.pairs + pair];
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Where one head's values go; nowhere where a pointer is null.
struct Written {
    float* normed;
    float* turned;
    half_t* kept;
};

DEVICE void write_value(const Written& to, int i, float normed, float turned) {
    if (to.normed != nullptr) {
        to.normed[i] = normed;
    }
    if (to.turned != nullptr) {
        to.turned[i] = turned;
    }
    if (to.kept != nullptr) {
        to.kept[i] = float_to_half(turned);
    }
}

// x / sqrt(mean(x^2) + eps), where there is a weight.
DEVICE float norm_factor(const float* x, const float* weight, float eps, int head_dim) {
    if (weight == nullptr) {
        return 1.0f;
    }
    float squares = 0.0f;
#pragma unroll 1
    for (int i = threadIdx.x % WARP; i < head_dim; i += WARP) {
        squares += x[i] * x[i];
    }
    squares = over_warp<Sum>(squares);
    return 1.0f / sqrtf(squares / static_cast<float>(head_dim) + eps);
}

struct Head {
    const float* x;
    const float* weight;
    float eps;
    int head_dim;
};

DEVICE void turn_head(const Head& head, const Angles& angles, int position, const Written& to) {
    float factor = norm_factor(head.x, head.weight, head.eps, head.head_dim);
    auto normed = [&](int i) {
        return head.weight == nullptr ? head.x[i] : head.x[i] * factor * head.weight[i];
    };
    int lane = threadIdx.x % WARP;
#pragma unroll 1
    for (int pair = lane; pair < angles.pairs; pair += WARP) {
        int first = angles.style == ADJACENT ? 2 * pair : pair;
        int second = angles.style == ADJACENT ? first + 1 : first + angles.pairs;
        float a = normed(first);
        float b = normed(second);
        float2 turn = turn_of(angles, position, pair);
        write_value(to, first, a, a * turn.x - b * turn.y);
        write_value(to, second, b, a * turn.y + b * turn.x);
    }
#pragma unroll 1
    for (int i = 2 * angles.pairs + lane; i < head.head_dim; i += WARP) {
        float x = normed(i);
        write_value(to, i, x, x);
    }
}

// One launch for the heads of the query, of the key and of the value behind each other: query and
// key are normalised where there is a weight and turned (pairs may be 0), key and value go into
// the pages. With n_kv_heads 0 it is the plain rotation, with n_heads 0 the plain append.
//
// q: float32 [rows][n_heads][head_dim]; k, v: [rows][n_kv_heads][head_dim]. What lies between (the
// normalised heads, the turned key) is written too where there is a buffer for it.
extern "C" __global__ void __launch_bounds__(128)
    rope_append(const float* q, const float* k, const float* v, const float* q_weight,
                const float* k_weight, float eps, float* q_normed, float* k_normed, float* q_turned,
                float* k_turned, const float2* coarse, const float2* fine, i32 pairs, i32 style,
                Step step, Kv kv, i32 n_heads, i32 head_dim) {
    int head = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    int row = blockIdx.y;
    int position = step.position[row];
    if (head >= n_heads + 2 * kv.n_kv_heads || position < 0) {
        return;
    }
    Head from = {q, q_weight, eps, head_dim};
    Written to = {q_normed, q_turned, nullptr};
    int n_of_kind = n_heads;
    if (head >= n_heads) {
        head -= n_heads;
        n_of_kind = kv.n_kv_heads;
        bool is_key = head < n_of_kind;
        head -= is_key ? 0 : n_of_kind;
        from.x = is_key ? k : v;
        from.weight = is_key ? k_weight : nullptr;
        pairs = is_key ? pairs : 0;
        half_t* pool = is_key ? kv.keys : kv.values;
        to.normed = is_key ? k_normed : nullptr;
        to.turned = is_key ? k_turned : nullptr;
        to.kept = pool + kv_offset(kv, step.slot[row], head, position);
    }
    u64 at = (static_cast<u64>(row) * n_of_kind + head) * head_dim;
    from.x += at;
    to.normed = to.normed == nullptr ? nullptr : to.normed + at;
    to.turned = to.turned == nullptr ? nullptr : to.turned + at;
    turn_head(from, {coarse, fine, pairs, style}, position, to);
}
