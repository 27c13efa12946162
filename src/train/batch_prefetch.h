/* batch_prefetch.h - threads that make batches ahead of the devices. */
#ifndef TDI_TRAIN_BATCH_PREFETCH_H
#define TDI_TRAIN_BATCH_PREFETCH_H

#include "runtime/runtime.h"

typedef struct tdi_prefetch tdi_prefetch;

typedef struct tdi_prefetch_spec {
    tdi_feed from; /* its `rows` is called by the prefetch's threads, each row once */
    const td_model *model;
    tdi_mode mode;
    int64_t first_step, steps; /* makes the batches of steps [first_step, steps), in order */
    int64_t batch, samples;    /* of all steps from step 0 on: the last may be short. TDI_SAMPLES_UNKNOWN: until `from`
                                * has no more, which is TD_STOPPED */
    int first_shard, end_shard, shards; /* only the rows of shards [first_shard, end_shard) of `shards` are made; shards
                                         * 0: all rows */
    int threads;                        /* at most; 0: the allowed cores */
    bool one_by_one;        /* one call of `rows` for each row and column, row by row; `stop` is read in between */
    const atomic_int *stop; /* NULL, or: once it is not 0 no other row is made: TD_STOPPED */
} tdi_prefetch_spec;

/* Starts the threads, which stay a few batches ahead of the one that is read. */
td_status tdi_prefetch_start(const tdi_prefetch_spec *spec, tdi_prefetch **prefetch, tdi_error *error);
/* The batches, for one reader that goes through the steps in order: `await` blocks until a batch is made. A failure of
 * `from` is returned by `await` for the step that it belongs to. */
tdi_feed tdi_prefetch_feed(tdi_prefetch *prefetch);
/* Where the number of samples is unknown: waits for `step`, before which none is read any more, and returns how many
 * steps are ready from it on, and how many samples these have; 0: there are no more. */
td_status tdi_prefetch_look(tdi_prefetch *prefetch, int64_t step, int64_t *steps, int64_t *samples, tdi_error *error);
/* Ends the threads, each after the rows that it is making. NULL is accepted. */
void tdi_prefetch_stop(tdi_prefetch *prefetch);

#endif
