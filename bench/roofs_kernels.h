/* roofs_kernels.h - loops that do nothing but one thing as fast as the CPU can. */
#ifndef BENCH_ROOFS_KERNELS_H
#define BENCH_ROOFS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_kernels {
    const char *name;
    double flops; /* of one unit of multiply_add */
    void (*multiply_add)(int64_t times);
    void (*read)(const float *data, size_t count); /* count: a multiple of 128, data aligned to 64 bytes */
    void (*update)(float *data, size_t count);
} bench_kernels;

/* The widest that the CPU has. */
const bench_kernels *bench_kernels_of_this_cpu(void);

/* Products of bf16 numbers, summed in fp32. */
typedef struct bench_bf16 {
    bool (*works)(
        void);    /* on this CPU; asks the kernel's permission where that is needed, for threads made later too */
    double flops; /* of one unit */
    void (*run)(int64_t times);
} bench_bf16;

extern const bench_bf16 bench_bf16_vectors; /* vdpbf16ps */
extern const bench_bf16 bench_bf16_tiles;   /* AMX */

void bench_pause(void); /* in a loop that waits for another core */

#endif
