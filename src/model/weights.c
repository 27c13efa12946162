/* weights.c - a model's weights, shapes and learning rate, for the public interface. */
#include <math.h>
#include <string.h>

#include "model/model.h"

int td_weight_count(const td_model *model)
{
    return model ? model->architecture->weights.count : 0;
}

static td_status find(const td_model *model, int index, tdi_variable **variable)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (index < 0 || index >= model->architecture->weights.count)
        return tdi_fail(&model->context->error, TD_NOT_FOUND, "model \"%s\" has %d weights; there is no number %d",
                        model->architecture->name, model->architecture->weights.count, index);
    *variable = &model->architecture->weights.at[index]->variable;
    return TD_OK;
}

td_status td_weight(const td_model *model, int index, td_weight_info *info)
{
    tdi_variable *variable = NULL;
    TDI_TRY(find(model, index, &variable));
    if (info)
        *info = (td_weight_info){variable->layer, variable->name, variable->shape, variable->trainable};
    return TD_OK;
}

static td_status find_sized(td_model *model, int index, const float *values, size_t count, tdi_variable **variable)
{
    TDI_TRY(find(model, index, variable));
    if (!values)
        return tdi_fail(&model->context->error, TD_INVALID_ARGUMENT, "%s/%s: values is NULL", (*variable)->layer,
                        (*variable)->name);
    if (count != (size_t)(*variable)->elements)
        return tdi_fail(&model->context->error, TD_INVALID_ARGUMENT, "%s/%s has %lld elements, not %zu",
                        (*variable)->layer, (*variable)->name, (long long)(*variable)->elements, count);
    return TD_OK;
}

td_status td_get_weight(td_model *model, int index, float *values, size_t count)
{
    tdi_variable *variable = NULL;
    TDI_TRY(find_sized(model, index, values, count, &variable));
    memcpy(values, tdi_model_value(model, variable), count * sizeof *values);
    return TD_OK;
}

td_status td_set_weight(td_model *model, int index, const float *values, size_t count)
{
    tdi_variable *variable = NULL;
    TDI_TRY(find_sized(model, index, values, count, &variable));
    memcpy(tdi_model_write_value(model, variable), values, count * sizeof *values);
    return TD_OK;
}

/* Slots have the layout of the trained weights, which come first among the values. */
void td_finalize_variable_values(td_model *model)
{
    int slot = model ? tdi_optimizer_average_slot(&model->state->optimizer) : -1;
    if (slot >= 0 && model->state->iteration > 0 && tdi_model_need_slots(model, &model->context->error) == TD_OK)
        memcpy(tdi_model_write_values(model), tdi_model_slots(model, slot),
               (size_t)model->architecture->trained * sizeof(float));
}

int64_t td_parameter_count(const td_model *model, int64_t *trainable)
{
    int64_t all = 0, trained = 0;
    for (int i = 0; i < td_weight_count(model); i++) {
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        all += variable->elements;
        trained += variable->trainable ? variable->elements : 0;
    }
    if (trainable)
        *trainable = trained;
    return all;
}

static td_status shape_of(td_tensor *const *tensors, int count, int index, td_shape *shape)
{
    bool there = index >= 0 && index < count;
    if (shape)
        *shape = there ? tensors[index]->shape : (td_shape){0};
    return there ? TD_OK : TD_NOT_FOUND;
}

td_status td_input_shape(const td_model *model, int index, td_shape *shape)
{
    return shape_of(model ? model->architecture->inputs : NULL, model ? model->architecture->n_inputs : 0, index,
                    shape);
}

td_status td_output_shape(const td_model *model, int index, td_shape *shape)
{
    return shape_of(model ? model->architecture->outputs : NULL, model ? model->architecture->n_outputs : 0, index,
                    shape);
}

const char *td_output_name(const td_model *model, int index)
{
    bool there = model && index >= 0 && index < model->architecture->n_outputs;
    return there ? model->architecture->outputs[index]->site->layer->name : NULL;
}

/* Does the layer hand on the numbers that it gets, in another shape perhaps? */
static bool hands_on(const tdi_layer *layer)
{
    const tdi_layer_type *type = layer->type;
    return type == &tdi_layer_type_reshape || type == &tdi_layer_type_flatten || type == &tdi_layer_type_dropout;
}

static td_activation activation_of(const tdi_layer *layer)
{
    if (layer->type == &tdi_layer_type_softmax)
        return TD_SOFTMAX;
    for (const tdi_field *field = layer->type->fields; field->kind != TDI_FIELD_END; field++)
        if (field->kind == TDI_FIELD_ACTIVATION && strcmp(field->key, "activation") == 0)
            return *(const td_activation *)(const void *)((const char *)layer->args + field->offset);
    return TD_LINEAR;
}

td_activation td_output_activation(const td_model *model, int index)
{
    if (!td_output_name(model, index))
        return TD_LINEAR;
    const tdi_call_site *site = model->architecture->outputs[index]->site;
    while (site->n_in == 1 && hands_on(site->layer))
        site = site->in[0]->site;
    return activation_of(site->layer);
}

float td_learning_rate(const td_model *model)
{
    return model ? tdi_optimizer_rate(&model->state->optimizer, model->state->iteration) : 0;
}

td_status tdi_model_set_learning_rate(td_model *model, float learning_rate, tdi_error *error)
{
    const td_optimizer *optimizer = &model->state->optimizer;
    if (optimizer->kind == TD_OPTIMIZER_NONE)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model \"%s\" has no optimizer; call td_compile first",
                        model->architecture->name);
    if (optimizer->schedule.kind)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "the learning rate is a %s schedule and cannot be set; compile with an optimizer whose learning "
            "rate is a number",
            tdi_config_type_of(tdi_schedule_types, optimizer->schedule.kind)->class_name);
    if (!(learning_rate >= 0) || !isfinite(learning_rate))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the learning rate was to be set to %g; a finite number not below 0 was expected",
                        (double)learning_rate);
    model->state->optimizer.learning_rate = learning_rate;
    return TD_OK;
}

td_status td_set_learning_rate(td_model *model, float learning_rate)
{
    return !model ? TD_INVALID_ARGUMENT : tdi_model_set_learning_rate(model, learning_rate, &model->context->error);
}
