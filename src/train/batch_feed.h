/* batch_feed.h - batches for the runtime: from a source in an epoch's order, or from a caller's arrays. */
#ifndef TDI_TRAIN_BATCH_FEED_H
#define TDI_TRAIN_BATCH_FEED_H

#include "data/source.h"
#include "runtime/runtime.h"

typedef struct tdi_source_feed {
    tdi_source *source;
    const int64_t *order; /* [samples]; NULL: the samples in order, gathered row by row */
    int64_t batch;
    int n_inputs;  /* of the model; slots from here on are targets */
    int n_targets; /* slots from the last target on are weights of losses */
    bool in_order; /* order[i] is i */
    void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale); /* the device's, or NULL */
} tdi_source_feed;

tdi_feed tdi_feed_source(tdi_source_feed *feed);

typedef struct tdi_array_feed {
    const float *slots[TDI_MAX_FED]; /* the model's inputs, its targets, weights; NULL: ones */
    int64_t per_row[TDI_MAX_FED];    /* floats */
} tdi_array_feed;

tdi_feed tdi_feed_arrays(tdi_array_feed *feed);

#endif
