/* softmax.h - what softmax and the cross-entropies share. */
#ifndef TDI_OPS_SOFTMAX_H
#define TDI_OPS_SOFTMAX_H

#include "ops/common.h"

/* log sum exp(x - largest): add `largest` for the log of the sum itself. */
double tdi_log_sum_exp(const float *x, int64_t count, double *largest);

#endif
