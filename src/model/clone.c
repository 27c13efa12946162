/* clone.c - a model's copy to try things on: another state of the same architecture. */
#include <string.h>

#include "model/model.h"

td_status tdi_model_shadow(const td_model *model, bool trains, td_model *shadow, tdi_error *error)
{
    *shadow = *model;
    shadow->runtime = shadow->runtimes_apart[0] = shadow->runtimes_apart[1] = NULL;
    shadow->recipe = NULL;
    shadow->fitting = false;
    return tdi_model_state_copy(model->state, trains, &shadow->state, error);
}

void tdi_model_take_shadow(td_model *model, const td_model *shadow)
{
    const tdi_architecture *architecture = model->architecture;
    memcpy(tdi_model_write_values(model), tdi_model_values(shadow), (size_t)architecture->total * sizeof(float));
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (tdi_model_slots(model, s))
            memcpy(tdi_model_write_slots(model, s), tdi_model_slots(shadow, s),
                   (size_t)architecture->trained * sizeof(float));
    model->state->iteration = shadow->state->iteration;
    model->state->optimizer.learning_rate = shadow->state->optimizer.learning_rate;
    model->state->last_rate = 0;
}

void tdi_model_release_shadow(td_model *shadow)
{
    tdi_model_drop_runtime(shadow);
    tdi_model_state_free(shadow->state);
    shadow->state = NULL;
    free(shadow->recipe);
    shadow->recipe = NULL;
}
