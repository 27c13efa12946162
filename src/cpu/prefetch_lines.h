/* prefetch_lines.h - prefetches memory that is read or written next: all at once, or a line at each step of a product.
 */
#ifndef TDI_CPU_PREFETCH_LINES_H
#define TDI_CPU_PREFETCH_LINES_H

#include <stdint.h>

#include "device/call.h"

enum { TDI_LINE = 64 /* bytes of a cache line */ };

/* Prefetches elements [begin, end) of rows, all at once: memory, or another core's cache, delivers several lines in the
 * time of one. */
static inline void tdi_fetch(const float *from, int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = begin; k < end; k += TDI_LINE / (int64_t)sizeof *from)
            __builtin_prefetch(from + i * row + k);
}

/* Claims lines that are about to be written and of which other cores have copies, by storing what is there, many at a
 * time. (prefetchw is meant for this, but an AMD Zen 4 that has a copy ignores it.) */
static inline void tdi_claim(float *at, int64_t count)
{
    for (int64_t i = 0; i < count; i += TDI_LINE / (int64_t)sizeof *at) {
        volatile float *line = at + i;
        *line = *line;
    }
}

/* A region to prefetch: `runs` runs, `run_step` bytes apart, of `count` lines, `step` bytes apart. */
typedef struct tdi_prefetch_region {
    const char *at;
    int64_t step, count, run_step, runs;
    int64_t taken; /* lines of the first run that have been taken */
} tdi_prefetch_region;

typedef struct tdi_prefetch_lines {
    const char *at;
    int64_t step;
} tdi_prefetch_lines;

static inline tdi_prefetch_region tdi_prefetch_run(const void *from, int64_t bytes)
{
    return (tdi_prefetch_region){.at = from, .step = TDI_LINE, .count = bytes / TDI_LINE, .runs = bytes >= TDI_LINE};
}

/* The region of `rows` rows of `bytes`, `step` bytes apart. */
static inline tdi_prefetch_region tdi_prefetch_rows(const void *from, int64_t step, int64_t rows, int64_t bytes)
{
    return (tdi_prefetch_region){
        .at = from, .step = step, .count = rows, .run_step = TDI_LINE, .runs = (bytes + TDI_LINE - 1) / TDI_LINE};
}

/* Takes the lines that a product of `steps` steps prefetches, one a step, from the first region that has any left; when
 * none has, one line again and again. */
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
