/* small.h - small models and data for tests of training. */
#ifndef TESTS_SUPPORT_SMALL_H
#define TESTS_SUPPORT_SMALL_H

#include <tandem/callbacks.h>

#include "model/model.h"

typedef enum small_kind {
    SMALL_MLP,     /* dense only */
    SMALL_CNN,     /* conv, pooling, dense */
    SMALL_NORM,    /* conv, batch normalization per replica, dense */
    SMALL_SYNC,    /* the same, synchronized */
    SMALL_MIXED,   /* one of each */
    SMALL_DENSE,   /* dense, one of each, dense */
    SMALL_DROPOUT, /* dense with dropout */
    SMALL_LSTM,    /* an LSTM over the rows, with dropout of both kinds */
    SMALL_KINDS
} small_kind;

enum { SMALL_HEIGHT = 6, SMALL_WIDTH = 5, SMALL_CHANNELS = 2, SMALL_CLASSES = 4, SMALL_SAMPLE = 60 };

/* A compiled model on [6, 5, 2]; the same weights each time. Without devices in the strategy it has those of the test,
 * test_devices(0). */
td_model *small_model(td_context *context, small_kind kind, td_optimizer optimizer, td_strategy strategy);

/* `samples` samples of noise around a mean per class, the same each time; x and y must hold them. */
void small_data(int64_t samples, float *x, float *y);

/* All weights in Keras's order; the caller frees. */
float *small_weights(td_model *model, int64_t *count);

/* What td_explain says of batches of so many rows; the caller frees. */
char *small_explained(td_model *model, int64_t batch);

/* The same weights, bit by bit; frees b. */
void small_expect_same(const float *a, float *b, int64_t count);

/* Asks the td_fit that it is given to for a stop, from another thread, a moment after an epoch has begun. */
td_callback *small_stop_soon(void);

/* max|a - b| / max|b| */
double relative_difference(const float *a, const float *b, int64_t count);

#endif
