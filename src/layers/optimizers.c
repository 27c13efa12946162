/* optimizers.c - SGD and Adam: their arguments, their slots, their updates. */
#include <math.h>
#include <string.h>

#include "layers/training.h"
#include "ops/ops.h"

/* What every Keras optimizer writes; the learning rate's default is the optimizer's own. */
#define COMMON_FIELDS(rate)                                                                                            \
    TDI_FIELD(FLOAT, td_optimizer, learning_rate, "learning_rate", rate),                                              \
        TDI_FIELD(NULLABLE, td_optimizer, weight_decay, "weight_decay", 0), TDI_FIXED_FIELD("clipnorm", "null"),       \
        TDI_FIXED_FIELD("global_clipnorm", "null"), TDI_FIELD(NULLABLE, td_optimizer, clipvalue, "clipvalue", 0),      \
        TDI_FIXED_FIELD("use_ema", "false"), TDI_FIXED_FIELD("ema_momentum", "0.99"),                                  \
        TDI_FIXED_FIELD("ema_overwrite_frequency", "null"), TDI_FIXED_FIELD("loss_scale_factor", "null"),              \
        TDI_FIXED_FIELD("gradient_accumulation_steps", "null")

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

static const tdi_optimizer_type types[] = {
    {TD_OPTIMIZER_SGD, "SGD", "sgd", sgd_fields},
    {TD_OPTIMIZER_ADAM, "Adam", "adam", adam_fields},
};

#define TYPE_COUNT (sizeof types / sizeof *types)

const tdi_optimizer_type *tdi_optimizer_type_of(td_optimizer_kind kind)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].kind == kind)
            return &types[i];
    return NULL;
}

const tdi_optimizer_type *tdi_optimizer_type_find(const char *class_name)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i].class_name, class_name) == 0 || strcmp(types[i].base_name, class_name) == 0)
            return &types[i];
    return NULL;
}

int tdi_optimizer_slots(const td_optimizer *optimizer)
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

td_status tdi_optimizer_check(const td_optimizer *optimizer, tdi_error *error)
{
    if (!tdi_optimizer_type_of(optimizer->kind))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "optimizer: there is none of number %d: use td_sgd(...) or td_adam(...)", (int)optimizer->kind);
    TDI_TRY(check_at_least_0("learning_rate", optimizer->learning_rate, error));
    TDI_TRY(check_at_least_0("weight_decay", optimizer->weight_decay, error));
    TDI_TRY(check_at_least_0("clipvalue", optimizer->clipvalue, error));
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

tdi_node *tdi_optimizer_emit(tdi_graph *graph, const td_optimizer *optimizer, tdi_variable *variable,
                             tdi_node *gradient)
{
    tdi_optimizer_attrs attrs = {
        .momentum = optimizer->momentum,
        .beta_1 = optimizer->beta_1.value,
        .beta_2 = optimizer->beta_2.value,
        .epsilon = optimizer->epsilon.value,
        .weight_decay = optimizer->weight_decay,
        .clipvalue = optimizer->clipvalue,
        .nesterov = optimizer->nesterov == TD_YES,
        .amsgrad = optimizer->amsgrad == TD_YES,
    };
    tdi_node *slots[3] = {0};
    int n_slots = tdi_optimizer_slots(optimizer);
    for (int i = 0; i < n_slots; i++)
        slots[i] = tdi_slot(graph, variable, i);
    tdi_node *weight = tdi_parameter(graph, variable);
    return optimizer->kind == TD_OPTIMIZER_ADAM ? tdi_adam(graph, weight, gradient, n_slots, slots, &attrs)
                                                : tdi_sgd(graph, weight, gradient, n_slots, slots, &attrs);
}
