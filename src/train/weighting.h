/* weighting.h - how a call's data and class weights weigh the losses. */
#ifndef TDI_TRAIN_WEIGHTING_H
#define TDI_TRAIN_WEIGHTING_H

#include "data/source.h"
#include "model/model.h"

/* What weighs losses, besides the weights that the data hold. */
typedef struct tdi_weights_wanted {
    const td_class_weight *class_weight; /* ends as TD_CLASS_WEIGHTS does; NULL: none */
    bool balanced;                       /* instead: each class by how seldom it is in the data */
} tdi_weights_wanted;

/* Sets how the losses of steps that train, or of those that evaluate, are weighted from now on: by the source's weights
 * and by those wanted. TD_INVALID_ARGUMENT, with nothing changed, when they do not fit the model's outputs. */
td_status tdi_weigh(td_model *model, bool trains, tdi_source *source, const tdi_weights_wanted *wanted,
                    tdi_error *error);
/* The same for a caller's batch, of which `by_position` says how many weights a sample has for each output; `weights`
 * false: it has none. Steps whose losses were weighted by such arrays before keep their columns, to be fed ones. */
void tdi_weigh_batch(td_model *model, bool trains, bool weights, bool by_position);

#endif
