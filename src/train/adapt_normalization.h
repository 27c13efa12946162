/* adapt_normalization.h - sets the means and variances of Normalization layers to the data's. */
#ifndef TDI_TRAIN_ADAPT_NORMALIZATION_H
#define TDI_TRAIN_ADAPT_NORMALIZATION_H

#include "data/source.h"
#include "model/model.h"

/* Every Normalization layer that is called on an input takes that input's mean and variance over the samples; an
 * inverted one that gives an output takes its target's. TD_INVALID_ARGUMENT when a layer is neither, or there is none.
 * The source fits the model (tdi_check_data). */
td_status tdi_adapt(td_model *model, tdi_source *source, tdi_error *error);

#endif
