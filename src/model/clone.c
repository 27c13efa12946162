/* clone.c - a model's copy to try things on: another state of the same architecture. */
#include <string.h>

#include "model/model.h"

td_status tdi_model_clone(const td_model *model, bool trains, td_model *clone, tdi_error *error)
{
    *clone = *model;
    clone->runtimes = NULL;
    clone->recipe = NULL;
    clone->fitting = false;
    return tdi_model_state_copy(model->state, trains, &clone->state, error);
}

void tdi_model_take_clone(td_model *model, const td_model *clone)
{
    const tdi_architecture *architecture = model->architecture;
    memcpy(tdi_model_write_values(model), tdi_model_values(clone), (size_t)architecture->total * sizeof(float));
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (tdi_model_slots(model, s))
            memcpy(tdi_model_write_slots(model, s), tdi_model_slots(clone, s),
                   (size_t)architecture->trained * sizeof(float));
    model->state->iteration = clone->state->iteration;
    model->state->optimizer.learning_rate = clone->state->optimizer.learning_rate;
    model->state->last_rate = 0;
}

void tdi_model_release_clone(td_model *clone)
{
    tdi_model_drop_runtimes(clone);
    tdi_model_state_free(clone->state);
    clone->state = NULL;
    free(clone->recipe);
    clone->recipe = NULL;
}
