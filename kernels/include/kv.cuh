// Keys and values of one layer: float16, in pages of 256 tokens, a pool for the keys and one for
// the values, each [page][kv_head][256][head_dim]. `pages` is [slot][pages_max]: which page of the
// pool holds a slot's tokens 256 i .. 256 i + 255; -1 where there is none (a window gives back
// those that it no longer sees).
#pragma once

#include "types.cuh"

constexpr int PAGE_TOKENS = 256;

struct Kv {
    half_t* keys;
    half_t* values;
    const i32* pages;
    i32 pages_max;
    i32 n_kv_heads;
    i32 head_dim;
};

// Where the head's numbers of the token at this position begin, in either pool.
DEVICE u64 kv_offset(const Kv& kv, int slot, int head, int position) {
    u64 page = static_cast<u64>(kv.pages[slot * kv.pages_max + position / PAGE_TOKENS]);
    u64 row = (page * kv.n_kv_heads + head) * PAGE_TOKENS + position % PAGE_TOKENS;
    return row * kv.head_dim;
}

// Of a row at this position, the first that it sees; `window` is how many it sees, itself among
// them, or 0 for all.
DEVICE int first_seen(int position, int window) {
    return window > 0 ? max_of(position + 1 - window, 0) : 0;
}
