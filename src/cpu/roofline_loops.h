/* roofline_loops.h - loops that do one thing as fast as the CPU can, and nothing else: their speed is what kernels are
 * measured against (profile/roofline.h, bench/roofline.c). */
#ifndef TDI_CPU_ROOFLINE_LOOPS_H
#define TDI_CPU_ROOFLINE_LOOPS_H

#include "cpu/unroll.h"
#include "device/device.h"

/* tdi_device.roofline: the loops of the best instruction set that this CPU has. */
void tdi_cpu_roofline_loops(tdi_roofline_loops *loops);

/* Products of bfloat16 values, summed in float32, by one of the instructions for them. */
typedef struct tdi_bfloat16_loop {
    /* Whether this CPU has the instruction; asks for the system's permission where that is needed, also for threads
     * that are made later. */
    bool (*works)(void);
    double flops; /* operations of one turn of the loop */
    void (*run)(int64_t times);
} tdi_bfloat16_loop;

extern const tdi_bfloat16_loop tdi_bfloat16_vectors; /* vdpbf16ps */
extern const tdi_bfloat16_loop tdi_bfloat16_amx;     /* AMX */

extern const tdi_roofline_loops tdi_roofline_loops_baseline;
#ifdef TANDEM_X86
extern const tdi_roofline_loops tdi_roofline_loops_avx2, tdi_roofline_loops_avx512;
#endif

/* Hides from the compiler that a value is never used, or always the same. */
#if defined(__x86_64__)
#define TDI_OPAQUE(x) __asm__ volatile("" : "+v"(x))
#elif defined(__aarch64__)
#define TDI_OPAQUE(x) __asm__ volatile("" : "+w"(x))
#else
#define TDI_OPAQUE(x) __asm__ volatile("" : "+m"(x))
#endif

enum { TDI_ROOFLINE_SUMS = 12 }; /* independent sums: more than latency times units, fewer than registers */

#endif
