/* shadow.c - a model's copy to try things on. */
#include <string.h>

#include "model/model.h"

static bool copy_floats(float **floats, int64_t count)
{
    const float *from = *floats;
    if (!from)
        return true;
    *floats = tdi_buffer_create((size_t)count * sizeof **floats);
    if (*floats)
        memcpy(*floats, from, (size_t)count * sizeof **floats);
    return *floats;
}

/* Every copy is tried, so that what is released afterwards is never the model's. */
td_status tdi_model_shadow(const td_model *model, td_model *shadow, tdi_error *error)
{
    *shadow = *model;
    shadow->runtime = NULL;
    shadow->recipe = NULL;
    shadow->fitting = false;
    bool complete = copy_floats(&shadow->values, model->total);
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        complete = copy_floats(&shadow->slots[s], model->trained) && complete;
    if (complete)
        return TD_OK;
    tdi_model_release_shadow(shadow);
    return tdi_model_short("a copy of the weights and slots",
                           model->total + tdi_optimizer_slots(&model->optimizer) * model->trained, error);
}

void tdi_model_take_shadow(td_model *model, const td_model *shadow)
{
    memcpy(model->values, shadow->values, (size_t)model->total * sizeof *model->values);
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
    tdi_buffer_free(shadow->values);
    shadow->values = NULL;
    free(shadow->recipe);
    shadow->recipe = NULL;
}
