/* event_file.h - writes TensorBoard's event files: records (tfrecord_file.h) of protocol-buffer messages, in the form
 * that TensorFlow 2 writes.
 *
 * After a write that fails, further writes do nothing and tdi_events_flush returns the first failure. */
#ifndef TDI_FILES_EVENT_FILE_H
#define TDI_FILES_EVENT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tandem/tensor.h>

#include "base/error.h"

typedef struct tdi_events tdi_events;

/* Creates a file in `folder` with a name that no other run has. Missing folders are made; the string is changed
 * meanwhile, as by tdi_make_folders. */
td_status tdi_events_create(char *folder, tdi_events **events, tdi_error *error);
/* Opens an old file to append to it. TD_NOT_FOUND, TD_IO. */
td_status tdi_events_reopen(const char *path, tdi_events **events, tdi_error *error);
const char *tdi_events_path(const tdi_events *events); /* borrowed */
FILE *tdi_events_file(const tdi_events *events);       /* borrowed; open for reading too */
/* Flushes what was written to the file. */
td_status tdi_events_flush(tdi_events *events, tdi_error *error);
void tdi_events_close(tdi_events *events); /* accepts NULL */

void tdi_events_scalar(tdi_events *events, const char *tag, int64_t step, double value);
void tdi_events_text(tdi_events *events, const char *tag, int64_t step, const char *markdown);
/* Writes 30 buckets from the least to the greatest finite value, as tf.summary.histogram does. */
void tdi_events_histogram(tdi_events *events, const char *tag, int64_t step, const float *values, int64_t count);
/* Writes `count` images of [height, width] shades. */
void tdi_events_images(tdi_events *events, const char *tag, int64_t step, int64_t count, int64_t height, int64_t width,
                       const uint8_t *shades);
/* Writes a Keras model's JSON, which TensorBoard draws as the conceptual graph. */
void tdi_events_keras_model(tdi_events *events, const char *tag, const char *json);

/* A node of the graph that TensorBoard draws. "/" in a name nests it. */
typedef struct tdi_events_node {
    const char *name, *op;
    const char *const *inputs; /* names */
    int n_inputs;
    td_shape shape;    /* -1: any */
    const char *words; /* describe its attributes; NULL: there are none */
} tdi_events_node;
void tdi_events_graph(tdi_events *events, int count, const tdi_events_node *nodes);

typedef struct tdi_hparam {
    const char *name;
    const char *text; /* NULL: the value is `number` */
    double number;
} tdi_hparam;
void tdi_events_session_start(tdi_events *events, const char *group, int count, const tdi_hparam *hparams);
void tdi_events_session_end(tdi_events *events, bool success);

#endif
