/* prefetch.h - prefetches of memory that is read or written next: all at once, or a line at each step of a product. */
#ifndef TDI_CPU_PREFETCH_H
#define TDI_CPU_PREFETCH_H

#include <stdint.h>

#include "device/call.h"

enum { TDI_LINE = 64 /* bytes of the cache's */ };

/* Prefetches elements [begin, end) of each row at once: memory, or another core's cache, gives several lines in the
 * time of one. */
static inline void tdi_fetch(const float *from, int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = begin; k < end; k += TDI_LINE / (int64_t)sizeof *from)
            __builtin_prefetch(from + i * row + k);
}

/* Claims lines of which other cores have copies, and which are about to be written: stores what is there, many lines at
 * a time. (prefetchw, which is meant for this, leaves a line as it is on an AMD Zen 4 that has a copy too.) */
static inline void tdi_claim(float *at, int64_t count)
{
    for (int64_t i = 0; i < count; i += TDI_LINE / (int64_t)sizeof *at) {
        volatile float *line = at + i;
        *line = *line;
    }
}

/* What is still to be prefetched: `runs` of `count` lines each, `step` bytes from line to line. */
typedef struct tdi_prefetch_region {
    const char *at;
    int64_t step, count, run_step, runs;
    int64_t taken; /* lines of the first run that have been prefetched */
} tdi_prefetch_region;

typedef struct tdi_prefetch_lines {
    const char *at;
    int64_t step;
} tdi_prefetch_lines;

static inline tdi_prefetch_region tdi_prefetch_run(const void *from, int64_t bytes)
{
    return (tdi_prefetch_region){.at = from, .step = TDI_LINE, .count = bytes / TDI_LINE, .runs = bytes >= TDI_LINE};
}

/* Rows of `bytes` bytes, `step` bytes from row to row. */
static inline tdi_prefetch_region tdi_prefetch_rows(const void *from, int64_t step, int64_t rows, int64_t bytes)
{
    return (tdi_prefetch_region){
        .at = from, .step = step, .count = rows, .run_step = TDI_LINE, .runs = (bytes + TDI_LINE - 1) / TDI_LINE};
}

/* Takes the lines that a product of `steps` steps prefetches from the first region that has any left, one at each step.
 * They may reach behind the run's end. When nothing is left, the product prefetches one line again and again. */
static inline tdi_prefetch_lines tdi_next_prefetch(tdi_prefetch_region *regions, int count, int64_t steps)
{
    for (tdi_prefetch_region *a = regions; a < regions + count; a++)
        if (a->runs > 0) {
            tdi_prefetch_lines lines = {a->at + a->taken * a->step, a->step};
            a->taken += steps;
            if (a->taken >= a->count) {
                a->taken = 0;
                a->at += a->run_step;
                a->runs--;
            }
            return lines;
        }
    return (tdi_prefetch_lines){regions->at, 0};
}

#endif
