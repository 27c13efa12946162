/* confusion_matrix.h - a confusion matrix from a runtime's counts. */
#ifndef TDI_TRAIN_CONFUSION_MATRIX_H
#define TDI_TRAIN_CONFUSION_MATRIX_H

#include <tandem/confusion.h>

#include "runtime/runtime.h"

/* TD_INVALID_ARGUMENT with a sentence when the output has no classes. */
td_status tdi_confusion_check(const td_model *model, int output, td_optional ignore_class, tdi_error *error);
/* Makes the matrix from the runtime's TDI_CONFUSION steps over `samples` samples. */
td_status tdi_confusion_create(const tdi_runtime *runtime, const td_model *model, const td_evaluate_args *args,
                               int64_t samples, td_confusion **confusion, tdi_error *error);

#endif
