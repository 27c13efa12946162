/* size_limit.h - a write beyond the limit on a file's size (`ulimit -f`) fails as on a full disk; the signal that the
 * system sends besides, and that would end the process, is kept from the calling thread. */
#ifndef TDI_BASE_SIZE_LIMIT_H
#define TDI_BASE_SIZE_LIMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdi_size_limit {
    sigset_t before; /* the thread's mask */
    bool waiting;    /* a signal that was sent before, which stays */
} tdi_size_limit;

/* From here on until the call after it, in the same thread. errno stays. */
void tdi_size_limit_begin(tdi_size_limit *limit);
void tdi_size_limit_end(const tdi_size_limit *limit);

/* Where the descriptor stands or, as pwrite, at a position. How many bytes were written: fewer than `size`, with errno,
 * where the system takes no more. */
size_t tdi_write_whole(int fd, const void *bytes, size_t size, const int64_t *position);

#endif
