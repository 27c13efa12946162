/* small.h - small models for tests of training, and data for them. */
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

/* A compiled model of samples [6, 5, 2], with the same weights each time. A strategy without devices gets
 * test_devices(0). */
td_model *small_model(td_context *context, small_kind kind, td_optimizer optimizer, td_strategy strategy);

/* Writes noise around a mean per class, the same each time: x [samples, 6, 5, 2], y [samples]. */
void small_data(int64_t samples, float *x, float *y);

/* All weights in Keras's order; the caller frees them. */
float *small_weights(td_model *model, int64_t *count);

/* What td_explain says of batches of `batch` rows; the caller frees the text. */
char *small_explained(td_model *model, int64_t batch);

/* Fails the test unless both hold the same bits; frees b. */
void small_expect_same(const float *a, float *b, int64_t count);

/* A callback that stops its td_fit from another thread, a moment after an epoch has begun. */
td_callback *small_stop_soon(void);

/* max|a - b| / max|b| */
double relative_difference(const float *a, const float *b, int64_t count);

#endif
