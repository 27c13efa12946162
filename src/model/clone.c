/* clone.c - a model's copy to try things on: another state of the same architecture. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

static td_status copy_weighting(const td_model *model, td_model *clone, tdi_error *error)
{
    for (int i = 0; i < 2; i++) {
        const tdi_weighting *of = &model->weighting[i];
        size_t size = (size_t)of->classes * sizeof *of->class_weights;
        clone->weighting[i].class_weights = of->classes ? malloc(size) : NULL;
        if (!of->classes)
            continue;
        if (!clone->weighting[i].class_weights) {
            tdi_model_clear_weighting(clone);
            return tdi_no_memory(error);
        }
        memcpy(clone->weighting[i].class_weights, of->class_weights, size);
    }
    return TD_OK;
}

td_status tdi_model_clone(const td_model *model, bool trains, td_model *clone, tdi_error *error)
{
    *clone = *model;
    clone->runtimes = NULL;
    clone->recipe = NULL;
    clone->fitting = false;
    for (int i = 0; i < 2; i++)
        clone->weighting[i].class_weights = NULL;
    TDI_TRY(copy_weighting(model, clone, error));
    td_status status = tdi_model_state_copy(model->state, trains, &clone->state, error);
    if (status != TD_OK)
        tdi_model_clear_weighting(clone);
    return status;
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
    tdi_model_clear_weighting(clone);
    free(clone->recipe);
    clone->recipe = NULL;
}
