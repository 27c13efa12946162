/* cpu.h - the CPU device: its interface, and its kernels by instruction set. */
#ifndef TDI_CPU_CPU_H
#define TDI_CPU_CPU_H

#include "device/device.h"

extern const tdi_device_interface tdi_cpu_device;

/* The instruction sets that vector loops are compiled for; each includes those before it. */
typedef enum tdi_cpu_isa { TDI_CPU_BASELINE, TDI_CPU_AVX2, TDI_CPU_AVX512 } tdi_cpu_isa;

/* The best instruction set that both this CPU and this build have. */
tdi_cpu_isa tdi_cpu_best_isa(void);
/* The best is no higher from now on. Called while no device is open. */
void tdi_cpu_limit(tdi_cpu_isa isa);
/* The list of kernels for an instruction set, in the order of kernels.h; NULL-terminated. */
const tdi_kernel *const *tdi_cpu_kernels(tdi_cpu_isa isa);
/* Floats in a vector: the samples in a block of the batch-interleaved layout. */
int tdi_cpu_width(tdi_cpu_isa isa);

/* Every thread calls these around a run of kernels, so that oneDNN starts no threads of its own in it. `leave` gets
 * what `enter` returned, and restores the caller's setting. */
int tdi_cpu_enter_thread(void);
void tdi_cpu_leave_thread(int state);

#endif
