/* clone.c - a model's copy to try things on. */
#include <string.h>

#include "model/model.h"

static float *copy_floats(const float *from, int64_t count)
{
    float *to = tdi_buffer_create((size_t)count * sizeof *to);
    if (to)
        memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

/* Every copy is tried, so that what is released afterwards is never the model's. */
td_status tdi_model_clone(const td_model *model, bool trains, td_model *clone, tdi_error *error)
{
    *clone = *model;
    clone->runtime = clone->runtimes_apart[0] = clone->runtimes_apart[1] = NULL;
    clone->recipe = NULL;
    clone->fitting = false;
    clone->values = copy_floats(model->values, model->total);
    bool complete = clone->values;
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (model->slots[s]) {
            clone->slots[s] = trains ? copy_floats(model->slots[s], model->trained) : NULL;
            complete = complete && (clone->slots[s] || !trains);
        }
    if (complete)
        return TD_OK;
    tdi_model_release_clone(clone);
    int slots = trains ? tdi_optimizer_slots(&model->optimizer) : 0;
    return tdi_model_short(trains ? "a copy of the weights and slots" : "a copy of the weights",
                           model->total + slots * model->trained, error);
}

void tdi_model_take_clone(td_model *model, const td_model *clone)
{
    memcpy(tdi_model_write_values(model), clone->values, (size_t)model->total * sizeof *model->values);
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (model->slots[s])
            memcpy(model->slots[s], clone->slots[s], (size_t)model->trained * sizeof *model->slots[s]);
    model->iteration = clone->iteration;
    model->optimizer.learning_rate = clone->optimizer.learning_rate;
    model->last_rate = 0;
}

void tdi_model_release_clone(td_model *clone)
{
    tdi_model_drop_runtime(clone);
    for (int s = 0; s < TDI_MAX_SLOTS; s++) {
        tdi_buffer_free(clone->slots[s]);
        clone->slots[s] = NULL;
    }
    tdi_buffer_free((void *)(uintptr_t)clone->values);
    clone->values = NULL;
    free(clone->recipe);
    clone->recipe = NULL;
}
