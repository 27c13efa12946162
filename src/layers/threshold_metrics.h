/* threshold_metrics.h - the metrics that compare scores with thresholds: Precision, Recall, AUC, F1Score. metrics.c
 * calls these functions for them; each does what its namesake in metrics.h does. */
#ifndef TDI_LAYERS_THRESHOLD_METRICS_H
#define TDI_LAYERS_THRESHOLD_METRICS_H

#include "layers/metrics.h"

bool tdi_has_thresholds(const td_metric *metric);
/* Sets what follows from the sample shape, and checks the numbers. */
td_status tdi_thresholds_resolve(td_metric *metric, const td_shape *prediction, tdi_error *error);
/* Emits the bucket of each score. */
tdi_node *tdi_thresholds_emit(tdi_graph *graph, const td_metric *metric, tdi_node *prediction);
/* Emits the addition of the targets to the sums of their buckets. */
void tdi_thresholds_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *buckets, tdi_node *target,
                               tdi_node *weights, int slot);
int tdi_thresholds_accumulators(const td_metric *metric);
int tdi_thresholds_results(const td_metric *metric);
double tdi_thresholds_result(const td_metric *metric, const double *sums, int which);

#endif
