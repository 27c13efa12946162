/* softmax.h - what softmax and the cross-entropies share. */
#ifndef TDI_OPS_SOFTMAX_H
#define TDI_OPS_SOFTMAX_H

#include "ops/op_helpers.h"

/* log sum exp(x - largest); with *largest added it is the log of sum exp(x). */
double tdi_log_sum_exp(const float *x, int64_t count, double *largest);

#endif
