/* cpu.h - the CPU device: cores dealt out among the devices named, kernels by instruction set. */
#ifndef TDI_CPU_CPU_H
#define TDI_CPU_CPU_H

#include "device/device.h"

extern const tdi_device_interface tdi_cpu_device;

/* The instruction sets that vector loops are compiled for, each including those before it. */
typedef enum tdi_cpu_isa { TDI_CPU_BASELINE, TDI_CPU_AVX2, TDI_CPU_AVX512 } tdi_cpu_isa;

/* The best one that this CPU and this build have. */
tdi_cpu_isa tdi_cpu_best_isa(void);
/* The ordered kernels for one of those; NULL-terminated. */
const tdi_kernel *const *tdi_cpu_kernels(tdi_cpu_isa isa);
/* Floats in one of its vectors: the samples that its kernels take batch-interleaved. */
int tdi_cpu_width(tdi_cpu_isa isa);

/* Around a run of kernels, on every thread: the math library shall not start threads of its own in it. `leave` gets
 * what `enter` returned, and puts back what the caller had. */
int tdi_cpu_enter_thread(void);
void tdi_cpu_leave_thread(int state);

#endif
