// DeltaNet: the gated delta rule, token after token; a block has some columns of a head's matrix.
//
// mixed: float32 [rows][2 n_key_heads n + n_value_heads n], queries, keys and values; alpha, beta,
// out: float32 [rows][n_value_heads (n)]; a, dt: float32 [n_value_heads]; state: float32
// [copy][slot][n_value_heads][n keys][n values] with strides. Every column depends on its own past
// alone, and a sum over the keys has a fixed order: neither chunks nor other slots change a bit.
// Launch: 256 threads, blocks (ceil(n / columns) n_value_heads, runs), dynamic shared memory for
// (columns + 2) n + 256 + columns floats; columns is a power of two, at most 32.
#include "activation.cuh"
#include "reduce.cuh"
#include "runs.cuh"

constexpr int THREADS = 256;

struct Net {
    i32 n_key_heads;
    i32 n_value_heads;
    i32 size;
    // Whether neighbouring value heads share a key, or they take turns.
    i32 is_grouped;
    float eps;
    i32 columns;
};

struct Inputs {
    const float* mixed;
    const float* alpha;
    const float* beta;
    const float* a;
    const float* dt;
};

// ln(1 + exp(x)), which for large x is x.
DEVICE float softplus(float x) { return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))); }

// The shared memory of a block.
struct Tile {
    float* matrix;
    float* query;
    float* key;
    float* parts;
    float* change;
};

// x over its length, by the block; `places` is for the reduction.
DEVICE void unit(const float* x, float* out, int size, float eps, float* places) {
    float squares = 0.0f;
#pragma unroll 1
    for (int i = threadIdx.x; i < size; i += THREADS) {
        squares += x[i] * x[i];
    }
    float factor = 1.0f / sqrtf(over_block<Sum>(squares, places) + eps);
#pragma unroll 1
    for (int i = threadIdx.x; i < size; i += THREADS) {
        out[i] = x[i] * factor;
    }
}

// The sum over a column's parts, in their order; for the first threads, one a column.
DEVICE float of_parts(const float* parts, int columns, int column) {
    float sum = 0.0f;
#pragma unroll 1
    for (int part = 0; part < THREADS / columns; part++) {
        sum += parts[part * columns + column];
    }
    return sum;
}

// One token. Ends with all threads past their last access to what the next one writes.
DEVICE void tell(const Tile& tile, const Net& net, const Inputs& in, int row, int head,
                 int first_column, float* out) {
    int n = net.size;
    int keys = net.n_key_heads * n;
    int key_head = net.is_grouped ? head / (net.n_value_heads / net.n_key_heads)
                                  : head % net.n_key_heads;
    u64 at = static_cast<u64>(row) * net.n_value_heads + head;
    const float* mixed = in.mixed + static_cast<u64>(row) * (2 * keys + net.n_value_heads * n);
    unit(mixed + key_head * n, tile.query, n, net.eps, tile.parts);
    unit(mixed + keys + key_head * n, tile.key, n, net.eps, tile.parts);
    __syncthreads();
    float decay = expf(in.a[head] * softplus(in.alpha[at] + in.dt[head]));
    int part = threadIdx.x / net.columns;
    int column = threadIdx.x % net.columns;
    int step = THREADS / net.columns;
    float told = 0.0f;
#pragma unroll 4
    for (int i = part; i < n; i += step) {
        told += tile.matrix[i * net.columns + column] * tile.key[i];
    }
    tile.parts[threadIdx.x] = told;
    __syncthreads();
    bool is_owner = threadIdx.x < net.columns && first_column + column < n;
    if (is_owner) {
        float value = mixed[2 * keys + head * n + first_column + column];
        float known = of_parts(tile.parts, net.columns, column) * decay;
        tile.change[column] = (value - known) * sigmoid(in.beta[at]);
    }
    __syncthreads();
    float read = 0.0f;
#pragma unroll 4
    for (int i = part; i < n; i += step) {
        float* place = tile.matrix + i * net.columns + column;
        float kept = *place * decay + tile.change[column] * tile.key[i];
        *place = kept;
        read += kept * tile.query[i];
    }
    tile.parts[threadIdx.x] = read;
    __syncthreads();
    if (is_owner) {
        out[at * n + first_column + column] =
            of_parts(tile.parts, net.columns, column) / sqrtf(static_cast<float>(n));
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    delta_net(Inputs in, float* out, float* state, u64 copy_values, u64 slot_values, Runs runs,
              Net net) {
    extern __shared__ float shared[];
    if (!begins_slot(runs, blockIdx.y)) {
        return;
    }
    int n = net.size;
    Tile tile;
    tile.matrix = shared;
    tile.query = tile.matrix + n * net.columns;
    tile.key = tile.query + n;
    tile.parts = tile.key + n;
    tile.change = tile.parts + THREADS;
    int tiles = ceil_div(n, net.columns);
    int head = blockIdx.x / tiles;
    int first_column = blockIdx.x % tiles * net.columns;
    Run run = run_at(runs, blockIdx.y);
    i32 slot = run.slot;
    float* of_slot = state + slot * slot_values + static_cast<u64>(head) * n * n + first_column;
    const float* before = of_slot + runs.source[slot] * copy_values;
    bool is_new = run.first_position == 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n * net.columns; i += THREADS) {
        int column = i % net.columns;
        bool is_read = !is_new && first_column + column < n;
        u64 from = static_cast<u64>(i / net.columns) * n + column;
        tile.matrix[i] = is_read ? before[from] : 0.0f;
    }
    if (threadIdx.x < net.columns) {
        tile.change[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    for (int i = blockIdx.y; i < runs.count; i = next_of_slot(runs, i)) {
        run = run_at(runs, i);
#pragma unroll 1
        for (int row = 0; row < run.rows; row++) {
            tell(tile, net, in, run.first_row + row, head, first_column, out);
        }
    }
    float* after = of_slot + runs.target[slot] * copy_values;
#pragma unroll 1
    for (int i = threadIdx.x; i < n * net.columns; i += THREADS) {
        int column = i % net.columns;
        if (first_column + column < n) {
            after[static_cast<u64>(i / net.columns) * n + column] = tile.matrix[i];
        }
    }
}
