/* optimizers.c - SGD and Adam: their fields, checks, slots and updates, and what every Keras optimizer has: clipping,
 * averages of weights, accumulation of gradients. */
#include <math.h>
#include <string.h>

#include "layers/optimizers.h"
#include "ops/ops.h"

/* The fields of every Keras optimizer; `rate` is the optimizer's default learning rate. */
#define COMMON_FIELDS(rate)                                                                                            \
    TDI_FIELD(FLOAT, td_optimizer, learning_rate, "learning_rate", rate),                                              \
        TDI_FIELD(NULLABLE, td_optimizer, weight_decay, "weight_decay", 0),                                            \
        TDI_FIELD(NULLABLE, td_optimizer, clipnorm, "clipnorm", 0),                                                    \
        TDI_FIELD(NULLABLE, td_optimizer, global_clipnorm, "global_clipnorm", 0),                                      \
        TDI_FIELD(NULLABLE, td_optimizer, clipvalue, "clipvalue", 0),                                                  \
        TDI_FIELD(CHOICE, td_optimizer, use_ema, "use_ema", 0),                                                        \
        TDI_FIELD(OPTIONAL, td_optimizer, ema_momentum, "ema_momentum", 0.99),                                         \
        TDI_FIELD(COUNT, td_optimizer, ema_overwrite_frequency, "ema_overwrite_frequency", 0),                         \
        TDI_FIELD(NULLABLE, td_optimizer, loss_scale_factor, "loss_scale_factor", 0),                                  \
        TDI_FIELD(COUNT, td_optimizer, gradient_accumulation_steps, "gradient_accumulation_steps", 0)

static const tdi_field sgd_fields[] = {
    COMMON_FIELDS(0.01),
    TDI_FIELD(FLOAT, td_optimizer, momentum, "momentum", 0),
    TDI_FIELD(CHOICE, td_optimizer, nesterov, "nesterov", 0),
    {0},
};

static const tdi_field adam_fields[] = {
    COMMON_FIELDS(0.001),
    TDI_FIELD(OPTIONAL, td_optimizer, beta_1, "beta_1", 0.9),
    TDI_FIELD(OPTIONAL, td_optimizer, beta_2, "beta_2", 0.999),
    TDI_FIELD(OPTIONAL, td_optimizer, epsilon, "epsilon", 1e-7),
    TDI_FIELD(CHOICE, td_optimizer, amsgrad, "amsgrad", 0),
    {0},
};

const tdi_config_type tdi_optimizer_types[] = {
    {TD_OPTIMIZER_SGD, "SGD", "sgd", sgd_fields},
    {TD_OPTIMIZER_ADAM, "Adam", "adam", adam_fields},
    {0},
};

const tdi_config_type *tdi_config_type_of(const tdi_config_type *types, unsigned kind)
{
    for (; types->fields; types++)
        if (types->kind == kind)
            return types;
    return NULL;
}

const tdi_config_type *tdi_config_type_find(const tdi_config_type *types, const char *name)
{
    for (; types->fields; types++)
        if (strcmp(types->class_name, name) == 0 || strcmp(types->name, name) == 0)
            return types;
    return NULL;
}

int tdi_optimizer_update_slots(const td_optimizer *optimizer)
{
    switch (optimizer->kind) {
    case TD_OPTIMIZER_SGD:
        return optimizer->momentum != 0 ? 1 : 0;
    case TD_OPTIMIZER_ADAM:
        return optimizer->amsgrad == TD_YES ? 3 : 2;
    default:
        return 0;
    }
}

int tdi_optimizer_average_slot(const td_optimizer *optimizer)
{
    return optimizer->use_ema == TD_YES ? tdi_optimizer_update_slots(optimizer) : -1;
}

int tdi_optimizer_accumulator_slot(const td_optimizer *optimizer)
{
    int before = tdi_optimizer_update_slots(optimizer) + (optimizer->use_ema == TD_YES);
    return optimizer->gradient_accumulation_steps ? before : -1;
}

int tdi_optimizer_slots(const td_optimizer *optimizer)
{
    return tdi_optimizer_update_slots(optimizer) + (optimizer->use_ema == TD_YES) +
           (optimizer->gradient_accumulation_steps != 0);
}

float tdi_optimizer_rate(const td_optimizer *optimizer, int64_t step)
{
    return optimizer->schedule.kind ? tdi_schedule_rate(&optimizer->schedule, step) : optimizer->learning_rate;
}

td_status tdi_optimizer_resolve(td_optimizer *optimizer, tdi_error *error)
{
    const tdi_config_type *type = tdi_config_type_of(tdi_optimizer_types, optimizer->kind);
    const tdi_config_type *schedule = tdi_config_type_of(tdi_schedule_types, optimizer->schedule.kind);
    if (!type)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: %d is not one of the td_optimizer_kind values",
                        (int)optimizer->kind);
    tdi_fields_resolve(type->fields, optimizer);
    if (schedule)
        tdi_fields_resolve(schedule->fields, &optimizer->schedule);
    return TD_OK;
}

/* ---- checks ---- */

static td_status check_at_least_0(const char *what, float value, tdi_error *error)
{
    if (value >= 0 && isfinite(value))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: %s is %g and must be a finite number of at least 0", what,
                    (double)value);
}

static td_status check_decay_rate(const char *what, float value, tdi_error *error)
{
    if (value >= 0 && value < 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: %s is %g and must be at least 0 and below 1", what,
                    (double)value);
}

static td_status check_clips(const td_optimizer *optimizer, tdi_error *error)
{
    TDI_TRY(check_at_least_0("clipvalue", optimizer->clipvalue, error));
    TDI_TRY(check_at_least_0("clipnorm", optimizer->clipnorm, error));
    TDI_TRY(check_at_least_0("global_clipnorm", optimizer->global_clipnorm, error));
    if ((optimizer->clipvalue > 0) + (optimizer->clipnorm > 0) + (optimizer->global_clipnorm > 0) <= 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "optimizer: clipvalue is %g, clipnorm %g and global_clipnorm %g; only one of them can be given",
                    (double)optimizer->clipvalue, (double)optimizer->clipnorm, (double)optimizer->global_clipnorm);
}

static td_status check_averages(const td_optimizer *optimizer, tdi_error *error)
{
    float momentum = optimizer->ema_momentum.value;
    if (optimizer->use_ema == TD_YES && !(momentum >= 0 && momentum <= 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: ema_momentum is %g and must be in [0, 1]",
                        (double)momentum);
    if (optimizer->ema_overwrite_frequency < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "optimizer: ema_overwrite_frequency is %d and must be at least 1, or 0 for never",
                        optimizer->ema_overwrite_frequency);
    return TD_OK;
}

td_status tdi_optimizer_check(const td_optimizer *optimizer, tdi_error *error)
{
    if (!tdi_config_type_of(tdi_optimizer_types, optimizer->kind))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "optimizer: there is none of number %d: use td_sgd(...) or td_adam(...)", (int)optimizer->kind);
    if (optimizer->schedule.kind)
        TDI_TRY(tdi_schedule_check(&optimizer->schedule, error));
    TDI_TRY(check_at_least_0("learning_rate", optimizer->learning_rate, error));
    TDI_TRY(check_at_least_0("weight_decay", optimizer->weight_decay, error));
    TDI_TRY(check_clips(optimizer, error));
    TDI_TRY(check_averages(optimizer, error));
    TDI_TRY(check_at_least_0("loss_scale_factor", optimizer->loss_scale_factor, error));
    if (optimizer->gradient_accumulation_steps < 0 || optimizer->gradient_accumulation_steps == 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "optimizer: gradient_accumulation_steps is %d and must be at least 2, or 0 for none",
                        optimizer->gradient_accumulation_steps);
    if (optimizer->kind == TD_OPTIMIZER_ADAM) {
        TDI_TRY(check_decay_rate("beta_1", optimizer->beta_1.value, error));
        TDI_TRY(check_decay_rate("beta_2", optimizer->beta_2.value, error));
        return check_at_least_0("epsilon", optimizer->epsilon.value, error);
    }
    if (!(optimizer->momentum >= 0 && optimizer->momentum <= 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: momentum is %g and must be in [0, 1]",
                        (double)optimizer->momentum);
    return TD_OK;
}

/* ---- emission ---- */

typedef struct emitter {
    tdi_graph *graph;
    const td_optimizer *optimizer;
    int count;
    tdi_variable *const *variables;
    tdi_node **gradients; /* [count], NULL where a variable has none; replaced as emission proceeds */
} emitter;

static void accumulate(const emitter *e)
{
    int slot = tdi_optimizer_accumulator_slot(e->optimizer);
    for (int i = 0; i < e->count && slot >= 0; i++)
        if (e->gradients[i]) {
            e->graph->scope = e->variables[i]->layer;
            tdi_node *accumulator = tdi_slot(e->graph, e->variables[i], slot);
            e->gradients[i] = tdi_accumulate_gradient(e->graph, e->gradients[i], accumulator,
                                                      e->optimizer->gradient_accumulation_steps, e->variables[i]);
        }
}

/* Fills norms[0 .. n) for the gradients that exist, in order, and returns n. */
static int emit_norms(const emitter *e, tdi_node **norms)
{
    int n = 0;
    for (int i = 0; i < e->count; i++)
        if (e->gradients[i]) {
            e->graph->scope = e->variables[i]->layer;
            norms[n++] = tdi_squared_norm(e->graph, e->gradients[i], e->variables[i]);
        }
    return n;
}

static void clip_each(const emitter *e, tdi_node *const *norms, tdi_node *global)
{
    for (int i = 0, n = 0; i < e->count; i++)
        if (e->gradients[i]) {
            e->graph->scope = e->variables[i]->layer;
            tdi_node *factor = global ? global : tdi_clip_factor(e->graph, 1, &norms[n], e->optimizer->clipnorm, false);
            e->gradients[i] = tdi_clip_by_norm(e->graph, e->gradients[i], factor, e->variables[i]);
            n++;
        }
}

static void clip_by_norms(const emitter *e)
{
    float limit = e->optimizer->global_clipnorm;
    tdi_node **norms = TDI_NEW_ARRAY(e->graph->arena, tdi_node *, e->count), *global = NULL;
    if (!norms) {
        tdi_no_memory(&e->graph->error);
        return;
    }
    e->graph->norms = true;
    int count = emit_norms(e, norms);
    e->graph->scope = "optimizer";
    if (limit > 0 && count)
        global = tdi_clip_factor(e->graph, count, norms, limit, true);
    clip_each(e, norms, global);
}

static tdi_optimizer_attrs update_attrs(const td_optimizer *optimizer)
{
    return (tdi_optimizer_attrs){
        .momentum = optimizer->momentum,
        .beta_1 = optimizer->beta_1.value,
        .beta_2 = optimizer->beta_2.value,
        .epsilon = optimizer->epsilon.value,
        .weight_decay = optimizer->weight_decay,
        .clipvalue = optimizer->clipvalue,
        .nesterov = optimizer->nesterov == TD_YES,
        .amsgrad = optimizer->amsgrad == TD_YES,
    };
}

static tdi_moving_average_attrs average_attrs(const td_optimizer *optimizer)
{
    return (tdi_moving_average_attrs){optimizer->ema_momentum.value, optimizer->ema_overwrite_frequency};
}

void tdi_optimizer_reckon(const td_optimizer *optimizer, tdi_control *control)
{
    const tdi_op *update = optimizer->kind == TD_OPTIMIZER_ADAM ? &tdi_op_adam : &tdi_op_sgd;
    const tdi_optimizer_attrs attrs = update_attrs(optimizer);
    const tdi_moving_average_attrs average = average_attrs(optimizer);
    update->numbers(&attrs, control);
    tdi_op_moving_average.numbers(&average, control);
    control->optimizer.norm = optimizer->global_clipnorm > 0 ? optimizer->global_clipnorm : optimizer->clipnorm;
}

static tdi_node *emit_update(const emitter *e, tdi_variable *variable, tdi_node *gradient)
{
    const td_optimizer *optimizer = e->optimizer;
    const tdi_optimizer_attrs attrs = update_attrs(optimizer);
    tdi_node *slots[3] = {0};
    int n_slots = tdi_optimizer_update_slots(optimizer);
    for (int i = 0; i < n_slots; i++)
        slots[i] = tdi_slot(e->graph, variable, i);
    tdi_node *weight = tdi_parameter(e->graph, variable);
    return optimizer->kind == TD_OPTIMIZER_ADAM ? tdi_adam(e->graph, weight, gradient, n_slots, slots, &attrs)
                                                : tdi_sgd(e->graph, weight, gradient, n_slots, slots, &attrs);
}

/* Keras averages weights without a gradient too; their average is the weight itself. */
static void emit_average(const emitter *e, tdi_variable *variable, tdi_node *weight)
{
    const tdi_moving_average_attrs attrs = average_attrs(e->optimizer);
    tdi_node *average = tdi_slot(e->graph, variable, tdi_optimizer_average_slot(e->optimizer));
    tdi_moving_average(e->graph, weight, average, &attrs);
}

td_status tdi_optimizer_emit(tdi_graph *graph, const td_optimizer *optimizer, int count, tdi_variable *const *variables,
                             tdi_node **gradients)
{
    emitter e = {graph, optimizer, count, variables, gradients};
    accumulate(&e);
    if (optimizer->clipnorm > 0 || optimizer->global_clipnorm > 0)
        clip_by_norms(&e);
    for (int i = 0; i < count && graph->error.status == TD_OK; i++) {
        graph->scope = variables[i]->layer;
        tdi_node *weight = gradients[i] ? emit_update(&e, variables[i], gradients[i]) : NULL;
        if (optimizer->use_ema == TD_YES)
            emit_average(&e, variables[i], weight ? weight : tdi_parameter(graph, variables[i]));
    }
    return graph->error.status;
}
