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
    clone->stored_slots = NULL;
    for (int i = 0; i < 2; i++)
        clone->weighting[i].class_weights = NULL;
    TDI_TRY(copy_weighting(model, clone, error));
    td_status status = tdi_model_state_copy(model->state, trains, &clone->state, error);
    if (status != TD_OK)
        tdi_model_clear_weighting(clone);
    return status;
}

static void take_slots(td_model *model, td_model *clone)
{
    size_t size = (size_t)model->architecture->trained * sizeof(float);
    for (int s = 0; s < TDI_MAX_SLOTS; s++) {
        float **to = &model->state->host_slots[s], **from = &clone->state->host_slots[s];
        if (*to && *from)
            memcpy(*to, *from, size); /* plans are bound to the place */
        else if (*from) {
            *to = *from;
            *from = NULL;
        }
    }
}

void tdi_model_take_clone(td_model *model, td_model *clone)
{
    bool has_slots = clone->state->host_slots[0] || clone->stored_slots;
    memcpy(tdi_model_write_values(model), tdi_model_values(clone), (size_t)model->architecture->total * sizeof(float));
    if (has_slots && model->stored_slots)
        model->stored_slots->free(model->stored_slots);
    if (has_slots)
        model->stored_slots = clone->stored_slots;
    clone->stored_slots = NULL;
    take_slots(model, clone);
    model->state->iteration = clone->state->iteration;
    model->state->optimizer.learning_rate = clone->state->optimizer.learning_rate;
    model->state->last_rate = 0;
}

void tdi_model_release_clone(td_model *clone)
{
    tdi_model_drop_runtimes(clone);
    if (clone->stored_slots)
        clone->stored_slots->free(clone->stored_slots);
    clone->stored_slots = NULL;
    tdi_model_state_free(clone->state);
    clone->state = NULL;
    tdi_model_clear_weighting(clone);
    free(clone->recipe);
    clone->recipe = NULL;
}
