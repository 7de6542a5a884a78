// The instructions that C++ has no words for: integer dot products, matrix fragments, and copies
// into shared memory that do not wait.
//
// compute_75 has the tensor cores' m16n8k8 alone and no cp.async: there the product of depth 16 is
// two of depth 8 over the same registers, and the copy is a load and a store.
#pragma once

#include "types.cuh"

// acc + the sum of the four products of signed bytes.
DEVICE i32 dp4a(u32 a, u32 b, i32 acc) {
    i32 sum;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
    return sum;
}

// The address of something in shared memory, as the instructions below take it.
DEVICE u32 shared_address(const void* pointer) {
    return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

// Four 8x8 matrices of float16: lane i names row i % 8 of matrix i / 8.
DEVICE void load_matrices(u32 (&out)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(row)
                 : "memory");
}

// The same, each matrix transposed.
DEVICE void load_matrices_transposed(u32 (&out)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(row)
                 : "memory");
}

// c += a b, with a of 16x16 (rows, depth), b of 16x8 (depth, columns), c of 16x8. Of c, a lane has
// columns 2 (lane % 4) and the next, in rows lane / 4 (c[0], c[1]) and lane / 4 + 8 (c[2], c[3]).
DEVICE void multiply_16x8x16(float (&c)[4], const u32 (&a)[4], u32 b_front, u32 b_back) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_front), "r"(b_back));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b_front));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b_back));
#endif
}

// Begins to copy 16 bytes from global into shared memory; both addresses are multiples of 16.
DEVICE void copy_16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(global))
                 : "memory");
#else
    *static_cast<uint4*>(shared) = *static_cast<const uint4*>(global);
#endif
}

// Ends a group of copies.
DEVICE void copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most so many of this thread's newest groups are under way.
template <int PENDING>
DEVICE void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
