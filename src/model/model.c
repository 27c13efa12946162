/* model.c - making, compiling and freeing models. */
#include "model/model.h"

#include <string.h>
#include <time.h>

static uint64_t seed_from_clock(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void draw_weights(td_model *model)
{
    for (int i = 0; i < model->architecture->weights.count; i++)
        tdi_initialize(model->architecture->weights.at[i], model->state->seed,
                       tdi_model_write_value(model, &model->architecture->weights.at[i]->variable));
}

static void free_stored_slots(td_model *model)
{
    if (model->stored_slots)
        model->stored_slots->free(model->stored_slots);
    model->stored_slots = NULL;
}

static void free_model(void *object)
{
    td_model *model = object;
    tdi_model_drop_runtimes(model);
    free_stored_slots(model);
    tdi_model_state_free(model->state);
    tdi_architecture_free(model->architecture);
    free(model->compiled.devices);
    tdi_model_clear_weighting(model);
    free(model->recipe);
    tdi_arena_free(model->kept);
    tdi_parts_free(model->made);
    free(model);
}

static td_status fill_model(td_model *model, const tdi_architecture_spec *spec, uint64_t seed, tdi_error *error)
{
    tdi_architecture *architecture;
    TDI_TRY(tdi_architecture_create(spec, &architecture, error));
    model->architecture = architecture;
    return tdi_model_state_create(architecture, seed ? seed : seed_from_clock(), &model->state, error);
}

td_status tdi_model_create(td_context *context, const char *name, bool sequential, int n_inputs,
                           td_tensor *const *inputs, int n_outputs, td_tensor *const *outputs, uint64_t seed,
                           td_model **model, tdi_error *error)
{
    *model = NULL;
    td_model *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->context = context;
    made->kept = tdi_arena_create();
    for (int o = 0; o < TDI_MAX_IO; o++)
        made->compiled.outputs[o].loss_weight = 1.0f;
    tdi_architecture_spec spec = {.context = context,
                                  .owner = made,
                                  .name = name,
                                  .sequential = sequential,
                                  .n_inputs = n_inputs,
                                  .n_outputs = n_outputs,
                                  .inputs = inputs,
                                  .outputs = outputs};
    td_status status = made->kept ? fill_model(made, &spec, seed, error) : tdi_no_memory(error);
    if (status == TD_OK && !tdi_context_own(context, made, free_model))
        status = tdi_no_memory(error);
    if (status == TD_OK)
        *model = made;
    else
        free_model(made);
    return status;
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
                    function, model->architecture->name);
}

void tdi_model_drop_runtimes(td_model *model)
{
    if (model->runtimes)
        model->free_runtimes(model->runtimes);
    model->runtimes = NULL;
}

td_shape tdi_model_weight_shape(const td_model *model, bool trains, int column)
{
    td_shape shape = {0};
    if (!model->weighting[trains].by_position[column])
        return shape;
    shape = model->architecture->outputs[column]->shape;
    shape.dim[--shape.rank] = 0;
    return shape;
}

int64_t tdi_model_weight_elements(const td_model *model, bool trains, int column)
{
    td_shape shape = tdi_model_weight_shape(model, trains, column);
    bool shared = model->weighting[trains].columns == 1;
    return shared || tdi_model_is_weighted(model, column) ? tdi_shape_elements(&shape) : 0;
}

void tdi_model_clear_weighting(td_model *model)
{
    for (int i = 0; i < 2; i++) {
        free(model->weighting[i].class_weights);
        model->weighting[i] = (tdi_weighting){0};
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

/* ---- what the caller lends: copied into an arena ---- */

static td_status keep_bytes(tdi_arena *arena, const void **list, size_t size, tdi_error *error)
{
    void *kept = *list ? tdi_alloc(arena, size) : NULL;
    if (*list && !kept)
        return tdi_no_memory(error);
    *list = kept ? memcpy(kept, *list, size) : NULL;
    return TD_OK;
}

static td_status keep_text(tdi_arena *arena, const char **text, tdi_error *error)
{
    return keep_bytes(arena, (const void **)text, *text ? strlen(*text) + 1 : 0, error);
}

static td_status keep_targets(tdi_arena *arena, const int **list, tdi_error *error)
{
    size_t count = 0;
    while (*list && (*list)[count++] != TD_CLASSES_END)
        ;
    return keep_bytes(arena, (const void **)list, count * sizeof **list, error);
}

static td_status keep_floats(tdi_arena *arena, const float **list, float end, tdi_error *error)
{
    size_t count = 0;
    while (*list && (*list)[count++] != end)
        ;
    return keep_bytes(arena, (const void **)list, count * sizeof **list, error);
}

static td_status keep_metric(tdi_arena *arena, td_metric *metric, tdi_error *error)
{
    TDI_TRY(keep_text(arena, &metric->name, error));
    TDI_TRY(keep_targets(arena, &metric->target_class_ids, error));
    TDI_TRY(keep_floats(arena, &metric->thresholds, TD_THRESHOLDS_END, error));
    return keep_floats(arena, &metric->label_weights, TD_LABEL_WEIGHTS_END, error);
}

static td_status keep_schedule(tdi_arena *arena, td_schedule *schedule, tdi_error *error)
{
    size_t count = (size_t)schedule->pieces;
    if (schedule->kind != TD_PIECEWISE_CONSTANT_DECAY)
        return TD_OK;
    TDI_TRY(keep_bytes(arena, (const void **)&schedule->boundaries, (count - 1) * sizeof *schedule->boundaries, error));
    return keep_bytes(arena, (const void **)&schedule->values, count * sizeof *schedule->values, error);
}

static td_status keep_compiled(tdi_arena *arena, tdi_compiled *compiled, tdi_error *error)
{
    TDI_TRY(keep_text(arena, &compiled->unknown_optimizer, error));
    for (int o = 0; o < TDI_MAX_IO; o++) {
        tdi_output_training *training = &compiled->outputs[o];
        TDI_TRY(keep_text(arena, &training->unknown_loss, error));
        for (int m = 0; m < training->n_metrics; m++)
            TDI_TRY(keep_metric(arena, &training->metrics[m], error));
    }
    return TD_OK;
}

td_status tdi_model_keep_anew(td_model *model, tdi_error *error)
{
    tdi_compiled compiled = model->compiled;
    td_schedule schedule = model->state->optimizer.schedule;
    tdi_arena *kept = tdi_arena_create();
    if (!kept)
        return tdi_no_memory(error);
    td_status status = keep_compiled(kept, &compiled, error);
    if (status == TD_OK)
        status = keep_schedule(kept, &schedule, error);
    if (status != TD_OK) {
        tdi_arena_free(kept);
        return status;
    }
    model->compiled = compiled;
    model->state->optimizer.schedule = schedule;
    tdi_arena_free(model->kept);
    model->kept = kept;
    return TD_OK;
}

int tdi_model_losses(const td_model *model)
{
    int count = 0;
    for (int o = 0; o < model->architecture->n_outputs; o++)
        count += model->compiled.outputs[o].loss.kind != TDI_LOSS_NONE;
    return count;
}

bool tdi_model_losses_known(const td_model *model)
{
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (model->compiled.outputs[o].unknown_loss)
            return false;
    return tdi_model_losses(model) > 0;
}

bool tdi_model_has_target(const td_model *model, int output)
{
    const tdi_output_training *training = &model->compiled.outputs[output];
    return training->loss.kind != TDI_LOSS_NONE || training->n_metrics > 0;
}

int tdi_model_targets(const td_model *model)
{
    int count = 0;
    for (int o = 0; o < model->architecture->n_outputs; o++)
        count += tdi_model_has_target(model, o);
    return count;
}

bool tdi_model_is_weighted(const td_model *model, int output)
{
    const tdi_output_training *training = &model->compiled.outputs[output];
    return training->loss.kind != TDI_LOSS_NONE || training->n_weighted > 0;
}

void tdi_model_choose_targets(td_model *model, int output)
{
    tdi_output_training *training = &model->compiled.outputs[output];
    const td_shape *shape = &model->architecture->outputs[output]->shape;
    training->loss.classes = false;
    for (int m = 0; m < training->n_metrics && training->loss.kind == TDI_LOSS_NONE; m++)
        training->loss.classes = training->loss.classes || tdi_metric_wants_classes(&training->metrics[m], shape);
}

td_status tdi_model_add_metric(const td_model *model, int output, tdi_output_training *training,
                               const td_metric *metric, tdi_error *error)
{
    td_metric kept = *metric;
    if (training->n_metrics == TDI_MAX_METRICS)
        return tdi_fail(error, TD_UNSUPPORTED, "more than %d metrics of one output", TDI_MAX_METRICS);
    TDI_TRY(keep_metric(model->kept, &kept, error));
    TDI_TRY(tdi_metric_resolve(&kept, &training->loss, &model->architecture->outputs[output]->shape, error));
    training->metrics[training->n_metrics++] = kept;
    return TD_OK;
}

td_status tdi_model_set_optimizer(td_model *model, const td_optimizer *optimizer, tdi_error *error)
{
    td_optimizer kept = *optimizer;
    TDI_TRY(keep_schedule(model->kept, &kept.schedule, error));
    free_stored_slots(model);
    tdi_model_state_set_optimizer(model->state, &kept);
    tdi_model_drop_runtimes(model);
    return TD_OK;
}

td_status tdi_model_need_slots(td_model *model, tdi_error *error)
{
    td_status status = tdi_model_state_make_slots(model->state, error);
    if (status == TD_OK && model->stored_slots)
        status = model->stored_slots->read(model->stored_slots, model, error);
    if (status == TD_OK)
        free_stored_slots(model);
    else
        tdi_model_state_drop_slots(model->state);
    return status;
}

/* ---- td_model_create ---- */

static int list_length(td_tensor *const *list)
{
    int n = 0;
    while (list[n])
        n++;
    return n;
}

/* Whether the model is single calls in a row from one input: Keras's Sequential. */
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
