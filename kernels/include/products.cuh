// Up to three matrices of one input and one storage type in a launch (queries, keys and values; gate
// and up): their rows are counted on.
#pragma once

#include "types.cuh"

constexpr int MATRICES_MAX = 3;

// Passed by value. `rows` of a matrix that is not there is 0; biases may be null.
struct Products {
    const u8* weights[MATRICES_MAX];
    const float* biases[MATRICES_MAX];
    float* outs[MATRICES_MAX];
    i32 rows[MATRICES_MAX];
    i32 cols;
};

// One of them, chosen without an array in memory.
struct Product {
    const u8* weights;
    const float* bias;
    float* out;
    i32 rows;
};

DEVICE Product product_of(const Products& all, int matrix) {
    Product one{all.weights[0], all.biases[0], all.outs[0], all.rows[0]};
    if (matrix == 1) {
        one = Product{all.weights[1], all.biases[1], all.outs[1], all.rows[1]};
    }
    if (matrix == 2) {
        one = Product{all.weights[2], all.biases[2], all.outs[2], all.rows[2]};
    }
    return one;
}

// A place counted through all of them, of which each has `sizes[i]`, becomes one in its matrix.
DEVICE int matrix_of(int size_0, int size_1, int& place) {
    if (place < size_0) {
        return 0;
    }
    place -= size_0;
    if (place < size_1) {
        return 1;
    }
    place -= size_1;
    return 2;
}
