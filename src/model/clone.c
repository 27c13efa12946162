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
td_status tdi_model_shadow(const td_model *model, bool trains, td_model *shadow, tdi_error *error)
{
    *shadow = *model;
    shadow->runtime = shadow->runtimes_apart[0] = shadow->runtimes_apart[1] = NULL;
    shadow->recipe = NULL;
    shadow->fitting = false;
    shadow->values = copy_floats(model->values, model->total);
    bool complete = shadow->values;
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (model->slots[s]) {
            shadow->slots[s] = trains ? copy_floats(model->slots[s], model->trained) : NULL;
            complete = complete && (shadow->slots[s] || !trains);
        }
    if (complete)
        return TD_OK;
    tdi_model_release_shadow(shadow);
    int slots = trains ? tdi_optimizer_slots(&model->optimizer) : 0;
    return tdi_model_short(trains ? "a copy of the weights and slots" : "a copy of the weights",
                           model->total + slots * model->trained, error);
}

void tdi_model_take_shadow(td_model *model, const td_model *shadow)
{
    memcpy(tdi_model_write_values(model), shadow->values, (size_t)model->total * sizeof *model->values);
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (model->slots[s])
            memcpy(model->slots[s], shadow->slots[s], (size_t)model->trained * sizeof *model->slots[s]);
    model->iteration = shadow->iteration;
    model->optimizer.learning_rate = shadow->optimizer.learning_rate;
    model->last_rate = 0;
}

void tdi_model_release_shadow(td_model *shadow)
{
    tdi_model_drop_runtime(shadow);
    for (int s = 0; s < TDI_MAX_SLOTS; s++) {
        tdi_buffer_free(shadow->slots[s]);
        shadow->slots[s] = NULL;
    }
    tdi_buffer_free((void *)(uintptr_t)shadow->values);
    shadow->values = NULL;
    free(shadow->recipe);
    shadow->recipe = NULL;
}
