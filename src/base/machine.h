/* machine.h - what of the machine this process may use. */
#ifndef TDI_BASE_MACHINE_H
#define TDI_BASE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Cores: min(affinity, the cgroup's quota), at least 1. */
int tdi_cores_allowed(void);

/* Bytes of memory, used or not: min(the machine's, the cgroup's limit, the process's own). What is larger is not to be
 * asked for: memory that is promised all the same ends the process as it is touched. It reads the cgroup's files. */
int64_t tdi_memory_allowed(void);
/* The same, less what the process has taken; below 0 when that is more. */
int64_t tdi_memory_left(void);
bool tdi_memory_suffices(size_t bytes);
/* May data that can also be read when they are needed be held in memory? Yes when they take at most half of what is
 * left of it: the model and its batches take up the other. */
bool tdi_memory_holds(int64_t bytes);
/* TD_NO_MEMORY: what `what` needs, what there is, what to try. */
td_status tdi_memory_short(tdi_error *error, const char *what, size_t bytes, const char *try);

/* For measurements: have other processes taken cores from the threads of this one since it began to look? */
typedef struct tdi_watch {
    double began;
    long interruptions;
} tdi_watch;

tdi_watch tdi_watch_begin(void);
bool tdi_watch_was_disturbed(const tdi_watch *watch);

#endif
