/* batch_feed.h - batches for the runtime: from a source in an epoch's order, or from a caller's arrays. */
#ifndef TDI_TRAIN_BATCH_FEED_H
#define TDI_TRAIN_BATCH_FEED_H

#include "data/source.h"
#include "runtime/runtime.h"

/* Which rows of each batch data of a process alone are for: those of shards [first, end) of `shards`, one batch's
 * behind the other's; shards 0: data have all rows of each batch. */
typedef struct tdi_own_rows {
    int first, end, shards;
} tdi_own_rows;
/* The first of them in a batch of `rows`, and how many they are. */
int64_t tdi_own_rows_of(const tdi_own_rows *own, int64_t rows, int64_t *count);

typedef struct tdi_source_feed {
    tdi_source *source;
    const int64_t *order; /* [samples]; NULL: the samples in order, gathered row by row */
    int64_t batch;
    const td_model *model;
    tdi_own_rows own;
    bool in_order;                                                                      /* order[i] is i */
    void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale); /* the device's, or NULL */
} tdi_source_feed;

tdi_feed tdi_feed_source(tdi_source_feed *feed);
/* The column of an output's target: data hold one for each output or, as in Keras, one for each that has a loss or a
 * metric. -1: the output has neither. */
int tdi_target_column(const td_model *model, const tdi_source *source, int output);
/* Has a model of several outputs with targets one column of weights for them all? */
bool tdi_weights_shared(const td_model *model, const tdi_source *source);
/* The column of an output's own weights: as for targets, data hold one for each output or one for each that has a loss
 * or a metric. -1: the output has no loss and no weighted metric. */
int tdi_weight_column(const td_model *model, const tdi_source *source, int output);
/* How many of the source's columns a mode reads: those behind the last one that is needed are left alone. */
int tdi_columns_read(const td_model *model, const tdi_source *source, tdi_mode mode);

typedef struct tdi_array_feed {
    const float *slots[TDI_MAX_FED]; /* the model's inputs, its targets, weights; NULL: ones */
    int64_t per_row[TDI_MAX_FED];    /* floats */
    int64_t first;                   /* the row of the batch that they begin with */
} tdi_array_feed;

tdi_feed tdi_feed_arrays(tdi_array_feed *feed);

#endif
