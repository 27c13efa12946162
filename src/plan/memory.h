/* memory.h - offsets in the activation arena, by lifetime. */
#ifndef TDI_PLAN_MEMORY_H
#define TDI_PLAN_MEMORY_H

#include <stdint.h>

/* Bytes of the activation arena, in use from step `first` to step `last` inclusive. */
typedef struct tdi_storage {
    int64_t bytes;
    int first, last;
    int64_t offset; /* set by tdi_memory_place: a multiple of 64 */
} tdi_storage;

/* Places storages so that those alive at the same time do not overlap. Returns the bytes needed; -1: out of memory. */
int64_t tdi_memory_place(tdi_storage *storages, int count);

#endif
