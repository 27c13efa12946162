/* update.c - the numbers of an optimizer's step. */
#include "cpu/update.h"

#include <math.h>

tdi_update tdi_update_of(const tdi_op *op, const tdi_optimizer_attrs *attrs, const tdi_control *control)
{
    tdi_update update = {.op = op,
                         .rate = control->learning_rate,
                         .epsilon = attrs->epsilon,
                         .momentum = attrs->momentum,
                         .clip = attrs->clipvalue > 0.0f ? attrs->clipvalue : INFINITY,
                         .decay = attrs->weight_decay * control->learning_rate,
                         .nesterov = attrs->nesterov,
                         .amsgrad = attrs->amsgrad};
    if (op != &tdi_op_adam)
        return update;
    tdi_adam_rates rates = tdi_adam_rates_at(attrs, control);
    update.rate = rates.alpha;
    update.rate_1 = rates.rate_1;
    update.rate_2 = rates.rate_2;
    return update;
}
