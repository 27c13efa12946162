/* metrics.h - metrics: their Keras names and fields, the ops that they emit, and the results that follow from their
 * sums.
 *
 * A step adds to a metric's accumulators; a result is computed from them when logs are read. A mean takes one
 * accumulator (a sum and a count), an IoU a matrix of counts, a metric with thresholds the sums of each bucket. */
#ifndef TDI_LAYERS_METRICS_H
#define TDI_LAYERS_METRICS_H

#include "layers/field_table.h"
#include "layers/losses.h"

typedef struct tdi_metric_type {
    const char *class_name;  /* "MeanIoU"; NULL for "accuracy", which is replaced by one of the accuracies */
    const char *name;        /* Keras's default name: "mean_io_u" */
    const char *alias;       /* "mse", in any case; NULL: there is none */
    const tdi_field *fields; /* of td_metric, without the list that `lists` names */
    const char *lists;       /* the key of a list (thresholds, target_class_ids); NULL: there is none */
} tdi_metric_type;

const tdi_metric_type *tdi_metric_type_of(td_metric_kind kind);
/* Takes a class name, a snake-case name or an alias; TD_METRIC_END when the name is unknown. */
td_metric_kind tdi_metric_parse(const char *name);
/* Keras's log key: the metric's own name, else its type's. */
const char *tdi_metric_name(const td_metric *metric);
/* True for errors, of which less is better; Keras's callbacks in mode "auto" ask for it. */
bool tdi_metric_falls(const td_metric *metric);
/* True when a metric of an output without a loss takes class numbers. "accuracy" does, where it chooses among
 * several classes. */
bool tdi_metric_wants_classes(const td_metric *metric, const td_shape *prediction);
/* Sets every default, for an output with this loss and sample shape. TD_INVALID_ARGUMENT naming the number that is out
 * of range. */
td_status tdi_metric_resolve(td_metric *metric, const tdi_loss *loss, const td_shape *prediction, tdi_error *error);
/* Emits the values to add up: a number or a bucket per position, [batch, ...]. NULL after a failure. */
tdi_node *tdi_metric_emit(tdi_graph *graph, const td_metric *metric, const tdi_loss *loss, tdi_node *prediction,
                          tdi_node *target);
/* The number of accumulators that the metric takes up. */
int tdi_metric_accumulators(const td_metric *metric);
/* Emits the addition of `values` to the accumulators from number `slot` on; `weights`, [batch, ...] as the outputs'
 * losses have them, or NULL. */
void tdi_metric_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *values, tdi_node *target,
                           tdi_node *weights, int slot);
/* The number of results; more than one where each threshold or label has its own. */
int tdi_metric_results(const td_metric *metric);
/* Result number `which`, from the accumulators' sums. */
double tdi_metric_result(const td_metric *metric, const double *sums, int which);

#endif
