/* loops.h - vector loops that kernels outside the *_isa.c files call. */
#ifndef TDI_CPU_LOOPS_H
#define TDI_CPU_LOOPS_H

#include <stdint.h>

typedef struct tdi_loops {
    /* to = activation(to + bias) over [rows, columns], rows `stride` apart; bias [columns] or NULL. Every activation
     * that can be fused has its loop. */
    void (*epilogue)(int64_t rows, int64_t columns, int64_t stride, const float *bias, int activation, float *to);
} tdi_loops;

extern const tdi_loops tdi_loops_baseline;
#ifdef TANDEM_X86
extern const tdi_loops tdi_loops_avx2, tdi_loops_avx512;
#endif

/* Those of the best instruction set this CPU has. */
const tdi_loops *tdi_cpu_loops(void);

#endif
