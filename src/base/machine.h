/* machine.h - what of the machine this process may use. */
#ifndef TDI_BASE_MACHINE_H
#define TDI_BASE_MACHINE_H

#include <stdint.h>

/* Cores: min(affinity, the cgroup's quota), at least 1. */
int tdi_cores_allowed(void);

/* Bytes of memory, used or not: min(the machine's, the cgroup's limit). */
int64_t tdi_memory_allowed(void);

#endif
