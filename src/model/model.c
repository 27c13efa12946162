/* model.c - making and freeing models, the layout of their variables. */
#include "model/model.h"

#include <string.h>
#include <time.h>

#include "base/machine.h"
#include "model/order.h"

static int64_t padded(int64_t elements)
{
    return (elements + 15) & ~(int64_t)15;
}

static td_status adopt_layer(td_model *model, tdi_layer *layer, tdi_error *error)
{
    if (layer->owner)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "layer \"%s\" belongs to another model already; make the layer again for this one",
                        layer->name);
    layer->owner = model;
    for (int i = 0; i < layer->weights.count; i++) {
        layer->weights.at[i]->variable.index = model->weights.count;
        if (!tdi_push(&model->weights, layer->weights.at[i]))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

/* Trained variables in the order in which backpropagation finishes their gradients: last layer first. */
static void lay_out(td_model *model)
{
    int64_t offset = 0;
    for (int i = model->weights.count - 1; i >= 0; i--) {
        tdi_variable *variable = &model->weights.at[i]->variable;
        if (variable->trainable) {
            variable->offset = offset;
            offset += padded(variable->elements);
        }
    }
    model->trained = offset;
    for (int i = 0; i < model->weights.count; i++) {
        tdi_variable *variable = &model->weights.at[i]->variable;
        if (!variable->trainable) {
            variable->offset = offset;
            offset += padded(variable->elements);
        }
    }
    model->states = offset;
    for (int i = 0; i < model->layers.count; i++)
        for (int s = 0; s < model->layers.at[i]->states.count; s++) {
            tdi_variable *state = model->layers.at[i]->states.at[s];
            state->offset = offset;
            offset += padded(state->elements);
        }
    model->total = offset;
}

static uint64_t seed_from_clock(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A model has one batch size at a time. */
static td_status check_batches(const td_model *model, tdi_error *error)
{
    const tdi_layer *first = NULL;
    for (int i = 0; i < model->layers.count; i++) {
        const tdi_layer *layer = model->layers.at[i];
        if (first && layer->states.count && layer->batch != first->batch)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "stateful layers \"%s\" and \"%s\" are made for batches of %lld and of %lld samples",
                            first->name, layer->name, (long long)first->batch, (long long)layer->batch);
        if (layer->states.count)
            first = layer;
    }
    return TD_OK;
}

/* How many rows the smallest table has that `input` is looked up in; 0 where a layer takes it as numbers. */
static int64_t indices_of(const td_model *model, const td_tensor *input)
{
    int64_t least = 0;
    for (int i = 0; i < model->sites.count; i++) {
        const tdi_call_site *site = model->sites.at[i];
        for (int j = 0; j < site->n_in; j++) {
            if (site->in[j] != input)
                continue;
            if (!site->layer->type->indices)
                return 0;
            int64_t rows = site->layer->type->indices(site->layer);
            least = least && least < rows ? least : rows;
        }
    }
    return least;
}

static bool is_output(const td_model *model, const td_tensor *input)
{
    for (int o = 0; o < model->n_outputs; o++)
        if (model->outputs[o] == input)
            return true;
    return false;
}

/* An input that is an output too is given back as numbers. */
static td_status find_indices(td_model *model, tdi_error *error)
{
    for (int i = 0; i < model->n_inputs; i++) {
        const td_tensor *input = model->inputs[i];
        bool given_back = is_output(model, input);
        if (given_back && input->dtype != TD_FLOAT32)
            return tdi_fail(error, TD_UNSUPPORTED,
                            "model: input \"%s\" of %s is an output as well: make it float32, or leave it out of the "
                            "outputs",
                            input->site->layer->name, td_dtype_name(input->dtype));
        model->indices[i] = given_back ? 0 : indices_of(model, input);
    }
    return TD_OK;
}

td_status tdi_model_short(const char *what, int64_t floats, tdi_error *error)
{
    return tdi_memory_short(error, what, (size_t)floats * sizeof(float), "allow it more");
}

static td_status fill_model(td_model *model, tdi_error *error)
{
    TDI_TRY(tdi_model_order(model, error));
    TDI_TRY(check_batches(model, error));
    TDI_TRY(find_indices(model, error));
    for (int i = 0; i < model->layers.count; i++)
        TDI_TRY(adopt_layer(model, model->layers.at[i], error));
    lay_out(model);
    model->values = tdi_buffer_create((size_t)model->total * sizeof(float));
    return model->values ? TD_OK : tdi_model_short("room for the weights", model->total, error);
}

float *tdi_model_write_values(td_model *model)
{
    model->written++;
    return (float *)(uintptr_t)model->values;
}

static void draw_weights(td_model *model)
{
    for (int i = 0; i < model->weights.count; i++)
        tdi_initialize(model->weights.at[i], model->seed,
                       tdi_model_write_value(model, &model->weights.at[i]->variable));
}

static td_status check_io(int n_inputs, td_tensor *const *inputs, int n_outputs, td_tensor *const *outputs,
                          tdi_error *error)
{
    if (n_inputs < 1 || n_inputs > TDI_MAX_IO || n_outputs < 1 || n_outputs > TDI_MAX_IO)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model: 1 to %d inputs and outputs are possible, not %d and %d",
                        TDI_MAX_IO, n_inputs, n_outputs);
    for (int i = 0; i < n_inputs + n_outputs; i++) {
        const td_tensor *tensor = i < n_inputs ? inputs[i] : outputs[i - n_inputs];
        if (!tensor || !tensor->site)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "model: %s %d is not a tensor (an earlier call failed)",
                            i < n_inputs ? "input" : "output", i < n_inputs ? i : i - n_inputs);
        if (i < n_inputs && tensor->site->n_in)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "model: input %d is the output of layer \"%s\"; give what td_input made", i,
                            tensor->site->layer->name);
    }
    return TD_OK;
}

static void free_model(void *object)
{
    td_model *model = object;
    tdi_model_drop_runtime(model);
    for (int i = 0; i < TDI_MAX_SLOTS; i++)
        tdi_buffer_free(model->slots[i]);
    tdi_buffer_free((void *)(uintptr_t)model->values);
    tdi_vec_free(&model->sites);
    tdi_vec_free(&model->layers);
    tdi_vec_free(&model->weights);
    free(model->devices);
    free(model->recipe);
    free(model);
}

td_status tdi_model_create(td_context *context, const char *name, bool sequential, int n_inputs,
                           td_tensor *const *inputs, int n_outputs, td_tensor *const *outputs, uint64_t seed,
                           td_model **model, tdi_error *error)
{
    *model = NULL;
    TDI_TRY(check_io(n_inputs, inputs, n_outputs, outputs, error));
    td_model *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->context = context;
    made->sequential = sequential;
    made->seed = seed ? seed : seed_from_clock();
    made->n_inputs = n_inputs;
    made->n_outputs = n_outputs;
    memcpy(made->inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    memcpy(made->outputs, outputs, (size_t)n_outputs * sizeof *outputs);
    made->name =
        name ? tdi_strdup(context->arena, name) : tdi_context_name(context, sequential ? "sequential" : "functional");
    td_status status = made->name ? fill_model(made, error) : tdi_no_memory(error);
    if (status == TD_OK && !tdi_context_own(context, made, free_model))
        status = tdi_no_memory(error);
    if (status != TD_OK) {
        free_model(made);
        return status;
    }
    *model = made;
    return TD_OK;
}

void td_model_free(td_model *model)
{
    if (!model)
        return;
    if (model->fitting) {
        tdi_model_check_idle(model, "td_model_free", &model->context->error);
        return;
    }
    tdi_context_disown(model->context, model);
    free_model(model);
}

td_status tdi_model_check_idle(const td_model *model, const char *function, tdi_error *error)
{
    if (!model->fitting)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: model \"%s\" is being trained, and this is one of its callbacks: wait until its td_fit has "
                    "returned",
                    function, model->name);
}

void tdi_model_drop_runtime(td_model *model)
{
    tdi_runtime **all[] = {&model->runtimes_apart[0], &model->runtimes_apart[1], &model->runtime};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i])
            model->free_runtime(*all[i]);
        *all[i] = NULL;
    }
}

td_status tdi_model_set_recipe(td_model *model, const char *recipe, tdi_error *error)
{
    char *copy = recipe ? strdup(recipe) : NULL;
    if (!recipe)
        return TD_OK;
    if (!copy)
        return tdi_no_memory(error);
    free(model->recipe);
    model->recipe = copy;
    return TD_OK;
}

const char *td_model_recipe(const td_model *model)
{
    return model ? model->recipe : NULL;
}

static td_status keep_targets(const td_model *model, td_metric *metric, tdi_error *error)
{
    size_t count = 0;
    if (!metric->target_class_ids)
        return TD_OK;
    while (metric->target_class_ids[count++] != TD_CLASSES_END)
        ;
    int *kept = TDI_NEW_ARRAY(model->context->arena, int, count);
    if (!kept)
        return tdi_no_memory(error);
    metric->target_class_ids = memcpy(kept, metric->target_class_ids, count * sizeof *kept);
    return TD_OK;
}

static td_status keep_floats(const td_model *model, const float **list, float end, tdi_error *error)
{
    size_t count = 0;
    if (!*list)
        return TD_OK;
    while ((*list)[count++] != end)
        ;
    float *kept = TDI_NEW_ARRAY(model->context->arena, float, count);
    if (!kept)
        return tdi_no_memory(error);
    *list = memcpy(kept, *list, count * sizeof *kept);
    return TD_OK;
}

td_status tdi_model_add_metric(const td_model *model, int output, tdi_output_training *training,
                               const td_metric *metric, tdi_error *error)
{
    td_metric kept = *metric;
    if (training->n_metrics == TDI_MAX_METRICS)
        return tdi_fail(error, TD_UNSUPPORTED, "more than %d metrics of one output", TDI_MAX_METRICS);
    if (kept.name && !(kept.name = tdi_strdup(model->context->arena, kept.name)))
        return tdi_no_memory(error);
    TDI_TRY(keep_targets(model, &kept, error));
    TDI_TRY(keep_floats(model, &kept.thresholds, TD_THRESHOLDS_END, error));
    TDI_TRY(keep_floats(model, &kept.label_weights, TD_LABEL_WEIGHTS_END, error));
    TDI_TRY(tdi_metric_resolve(&kept, &training->loss, &model->outputs[output]->shape, error));
    training->metrics[training->n_metrics++] = kept;
    return TD_OK;
}

/* A schedule's lists are the caller's. */
static td_status keep_pieces(const td_model *model, td_schedule *schedule, tdi_error *error)
{
    size_t count = (size_t)schedule->pieces;
    if (schedule->kind != TD_PIECEWISE_CONSTANT_DECAY)
        return TD_OK;
    int64_t *boundaries = TDI_NEW_ARRAY(model->context->arena, int64_t, count);
    float *values = TDI_NEW_ARRAY(model->context->arena, float, count);
    if (!boundaries || !values)
        return tdi_no_memory(error);
    memcpy(boundaries, schedule->boundaries, (count - 1) * sizeof *boundaries);
    memcpy(values, schedule->values, count * sizeof *values);
    schedule->boundaries = boundaries;
    schedule->values = values;
    return TD_OK;
}

td_status tdi_model_set_optimizer(td_model *model, const td_optimizer *optimizer, tdi_error *error)
{
    td_optimizer kept = *optimizer;
    TDI_TRY(keep_pieces(model, &kept.schedule, error));
    float *slots[TDI_MAX_SLOTS] = {0};
    bool failed = false;
    for (int i = 0; i < tdi_optimizer_slots(optimizer); i++) {
        slots[i] = tdi_buffer_create((size_t)model->trained * sizeof(float));
        failed = failed || !slots[i];
    }
    for (int i = 0; i < TDI_MAX_SLOTS; i++)
        tdi_buffer_free(failed ? slots[i] : model->slots[i]);
    if (failed)
        return tdi_model_short("a slot of the optimizer", model->trained, error);
    memcpy(model->slots, slots, sizeof slots);
    model->optimizer = kept;
    model->iteration = 0;
    model->last_rate = 0;
    tdi_model_drop_runtime(model);
    return TD_OK;
}

/* ---- td_model_create ---- */

static int list_length(td_tensor *const *list)
{
    int n = 0;
    while (list[n])
        n++;
    return n;
}

/* A chain of single calls from one input: Keras's Sequential. */
static bool is_chain(td_tensor *const *inputs, int n_inputs, td_tensor *const *outputs, int n_outputs)
{
    if (n_inputs != 1 || n_outputs != 1)
        return false;
    const td_tensor *tensor = outputs[0];
    while (tensor && tensor->site && tensor->site->n_in == 1 && tensor->site->n_out == 1 &&
           !tensor->site->layer->type->list_input && tensor->site->layer->n_calls == 1)
        tensor = tensor->site->in[0];
    return tensor == inputs[0];
}

td_model *td_model_create_(const td_model_args *args)
{
    td_tensor *const *inputs = args->inputs ? args->inputs : &args->x;
    td_tensor *const *outputs = args->outputs ? args->outputs : &args->y;
    int n_inputs = args->inputs ? list_length(args->inputs) : 1;
    int n_outputs = args->outputs ? list_length(args->outputs) : 1;
    td_context *context = n_outputs && outputs[0] ? outputs[0]->context
                          : n_inputs && inputs[0] ? inputs[0]->context
                                                  : NULL;
    if (!context)
        return NULL;
    td_model *model = NULL;
    if (args->guard) {
        tdi_fail(&context->error, TD_INVALID_ARGUMENT,
                 "%s:%d: td_model_create takes two arguments; give the rest by name", args->at.file, args->at.line);
        return NULL;
    }
    if (context->error.status != TD_OK)
        return NULL;
    bool chain = n_inputs == 1 && is_chain(inputs, n_inputs, outputs, n_outputs);
    if (tdi_model_create(context, args->name, chain, n_inputs, inputs, n_outputs, outputs, args->seed, &model,
                         &context->error) != TD_OK)
        tdi_error_prefix(&context->error, "%s:%d", args->at.file ? args->at.file : "?", args->at.line);
    else
        draw_weights(model);
    return model;
}
