/* machine.h - what of the machine this process may use. */
#ifndef TDI_BASE_MACHINE_H
#define TDI_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Cores: min(affinity, the cgroup's quota), at least 1. */
int tdi_cores_allowed(void);

/* Bytes of memory, used or not: min(the machine's, the cgroup's limit, the process's own). */
int64_t tdi_memory_allowed(void);

/* For measurements: have other processes taken cores from the threads of this one since it began to look? */
typedef struct tdi_watch {
    double began;
    long interruptions;
} tdi_watch;

tdi_watch tdi_watch_begin(void);
bool tdi_watch_was_disturbed(const tdi_watch *watch);

#endif
