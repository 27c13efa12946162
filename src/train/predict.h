/* predict.h - where predictions go. */
#ifndef TDI_TRAIN_PREDICT_H
#define TDI_TRAIN_PREDICT_H

#include "files/array_file.h"
#include "model/model.h"

/* Where the predictions of every output go: rows of step s from row s * batch on. */
typedef struct tdi_collector {
    float *outputs[TDI_MAX_IO]; /* NULL: not wanted */
    tdi_array_file *file;       /* instead of outputs */
    int64_t capacity;           /* floats in outputs[0], where it may not suffice; 0: it does */
    int64_t per_row[TDI_MAX_IO], batch;
} tdi_collector;

void tdi_collector_init(tdi_collector *collector, const td_model *model, int64_t batch, float *const *outputs);
/* A job's `take`. */
td_status tdi_collect(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values,
                      tdi_error *error);

#endif
