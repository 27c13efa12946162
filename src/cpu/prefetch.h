/* prefetch.h - memory that is read or written next, asked for meanwhile: all at once, or a line at each step of a
 * product.
 */
#ifndef TDI_CPU_PREFETCH_H
#define TDI_CPU_PREFETCH_H

#include <stdint.h>

#include "device/call.h"

enum { TDI_LINE = 64 /* bytes of the cache's */ };

/* Elements [begin, end) of rows, asked for all at once: memory, or another core's cache, gives several lines in the
 * time of one. */
static inline void tdi_fetch(const float *from, int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = begin; k < end; k += TDI_LINE / (int64_t)sizeof *from)
            __builtin_prefetch(from + i * row + k);
}

/* Lines of which other cores have copies, about to be written: by stores of what is there, many at a time. (prefetchw,
 * which is meant for this, leaves a line as it is on an AMD Zen 4 that has a copy too.) */
static inline void tdi_claim(float *at, int64_t count)
{
    for (int64_t i = 0; i < count; i += TDI_LINE / (int64_t)sizeof *at) {
        volatile float *line = at + i;
        *line = *line;
    }
}

/* `runs` of `count` lines, `step` bytes apart. */
typedef struct tdi_ahead {
    const char *at;
    int64_t step, count, run_step, runs;
    int64_t taken; /* of the first run */
} tdi_ahead;

typedef struct tdi_lines {
    const char *at;
    int64_t step;
} tdi_lines;

static inline tdi_ahead tdi_ahead_of(const void *from, int64_t bytes)
{
    return (tdi_ahead){.at = from, .step = TDI_LINE, .count = bytes / TDI_LINE, .runs = bytes >= TDI_LINE};
}

/* Rows of `bytes`, so far apart. */
static inline tdi_ahead tdi_rows_ahead(const void *from, int64_t step, int64_t rows, int64_t bytes)
{
    return (tdi_ahead){
        .at = from, .step = step, .count = rows, .run_step = TDI_LINE, .runs = (bytes + TDI_LINE - 1) / TDI_LINE};
}

/* What a product of so many steps is to ask for, from a run and what lies behind it; one line again and again when
 * nothing is left. */
static inline tdi_lines tdi_take_ahead(tdi_ahead *regions, int count, int64_t steps)
{
    for (tdi_ahead *a = regions; a < regions + count; a++)
        if (a->runs > 0) {
            tdi_lines lines = {a->at + a->taken * a->step, a->step};
            a->taken += steps;
            if (a->taken >= a->count) {
                a->taken = 0;
                a->at += a->run_step;
                a->runs--;
            }
            return lines;
        }
    return (tdi_lines){regions->at, 0};
}

#endif
