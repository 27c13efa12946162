/* thresholds.h - metrics that hold scores against thresholds: Precision, Recall, AUC, F1Score. */
#ifndef TDI_LAYERS_THRESHOLDS_H
#define TDI_LAYERS_THRESHOLDS_H

#include "layers/training.h"

bool tdi_has_thresholds(const td_metric *metric);
/* Fills in what follows from the sample shape, and checks the numbers. */
td_status tdi_thresholds_settle(td_metric *metric, const td_shape *prediction, tdi_error *error);
/* The bucket of each score; sums of the targets by bucket, in so many accumulators. */
tdi_node *tdi_thresholds_emit(tdi_graph *graph, const td_metric *metric, tdi_node *prediction);
void tdi_thresholds_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *buckets, tdi_node *target,
                               int slot);
int tdi_thresholds_accumulators(const td_metric *metric);
/* How many numbers the metric gives, and one of them. */
int tdi_thresholds_results(const td_metric *metric);
double tdi_thresholds_result(const td_metric *metric, const double *sums, int which);

#endif
