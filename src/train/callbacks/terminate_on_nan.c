/* terminate_on_nan.c - Keras's TerminateOnNaN. */
#include <stdlib.h>

#include "train/callbacks/callbacks.h"

static td_status end_training(void *user, td_training *training)
{
    const td_terminate_on_nan_args *self = user;
    long long batch = (long long)training->steps - 1;
    char line[96];
    if (self->raise_error == TD_YES)
        return tdi_fail(&training->error, TD_NOT_FINITE,
                        "NaN or Inf loss encountered at batch %lld. Terminating training immediately.", batch);
    snprintf(line, sizeof line, "Batch %lld: Invalid loss, terminating training", batch);
    td_training_say(training, line);
    return TD_OK;
}

td_callback *td_terminate_on_nan_(const td_terminate_on_nan_args *args)
{
    static const td_callback_functions functions = {.not_finite = end_training, .release = free};
    td_terminate_on_nan_args *self = malloc(sizeof *self);
    if (!self)
        return tdi_callback_poison("td_terminate_on_nan", "out of memory");
    *self = *args;
    return tdi_callback_create(&functions, self);
}
