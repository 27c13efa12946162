/* roofline_loops.h - loops that do nothing but one thing as fast as the CPU can: tdi_roofline_loops of each instruction
 * set, and products of bfloat16 numbers by each of the instructions that there are for them. */
#ifndef TDI_CPU_ROOFLINE_LOOPS_H
#define TDI_CPU_ROOFLINE_LOOPS_H

#include "cpu/unroll.h"
#include "device/device.h"

/* A device's `roofline`: the loops of the best instruction set that this CPU has. */
void tdi_cpu_roofline_loops(tdi_roofline_loops *loops);

/* Products of bfloat16 numbers, summed in float32. */
typedef struct tdi_bfloat16_loop {
    bool (*works)(
        void);    /* on this CPU; asks the system's permission where that is needed, for threads made later too */
    double flops; /* of one unit */
    void (*run)(int64_t times);
} tdi_bfloat16_loop;

extern const tdi_bfloat16_loop tdi_bfloat16_vectors; /* vdpbf16ps */
extern const tdi_bfloat16_loop tdi_bfloat16_tiles;   /* AMX */

extern const tdi_roofline_loops tdi_roofline_loops_baseline;
#ifdef TANDEM_X86
extern const tdi_roofline_loops tdi_roofline_loops_avx2, tdi_roofline_loops_avx512;
#endif

/* Keeps the compiler from seeing that a value is never used, or always the same. */
#if defined(__x86_64__)
#define TDI_OPAQUE(x) __asm__ volatile("" : "+v"(x))
#elif defined(__aarch64__)
#define TDI_OPAQUE(x) __asm__ volatile("" : "+w"(x))
#else
#define TDI_OPAQUE(x) __asm__ volatile("" : "+m"(x))
#endif

enum {
    TDI_ROOFLINE_SUMS = 12
}; /* chains of multiply-adds at once: more than latency times units, fewer than registers */

#endif
