/* keras_compile.c - how a model was compiled: optimizer, a loss and metrics per output.
 *
 * Keras writes a loss as a name, a serialized function, a serialized class, or a list or dictionary of these per
 * output; metrics likewise, a list of them per output. "run_eagerly", "jit_compile" and
 * "auto_scale_loss" say how Keras is to run, not what to compute, and are skipped. */
#include <math.h>
#include <string.h>

#include "formats/keras_json.h"

typedef struct compiled {
    td_optimizer optimizer;
    tdi_output_training training[TDI_MAX_IO];
} compiled;

/* ---- reading ---- */

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value);
}

/* In td_optimizer a rate of 0 would mean the default. */
static bool is_zero(const json_t *rate)
{
    return json_is_number(rate) && json_number_value(rate) == 0;
}

/* Reads the rate: a number, or a schedule in its place. A 0 is set after the other defaults have been resolved. */
static td_status read_optimizer_config(const td_model *model, const tdi_config_type *type, const json_t *config,
                                       td_optimizer *optimizer, tdi_error *error)
{
    static const char *const others[] = {"name", NULL};
    const json_t *rate = json_object_get(config, "learning_rate");
    if (!json_is_object(rate) && !is_zero(rate))
        return tdi_keras_read_fields(type->fields, config, others, optimizer, error);
    if (json_is_object(rate))
        TDI_TRY(tdi_keras_read_schedule(model->context->arena, rate, &optimizer->schedule, error));
    json_t *rest = json_copy((json_t *)(uintptr_t)config);
    if (!rest)
        return tdi_no_memory(error);
    json_object_del(rest, "learning_rate");
    td_status status = tdi_keras_read_fields(type->fields, rest, others, optimizer, error);
    json_decref(rest);
    return status;
}

static td_status read_optimizer(const td_model *model, const json_t *value, td_optimizer *optimizer, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *config;
    const char *name = tdi_keras_name_of(value, &config);
    const tdi_config_type *type = name ? tdi_config_type_find(tdi_optimizer_types, name) : NULL;
    if (!type)
        return tdi_fail(error, TD_UNSUPPORTED, "optimizer %s: Tandem knows SGD and Adam",
                        name ? name : tdi_keras_show(value, text));
    *optimizer = (td_optimizer){.kind = type->kind};
    if (config && read_optimizer_config(model, type, config, optimizer, error) != TD_OK) {
        tdi_error_prefix(error, "optimizer %s", type->class_name);
        return error ? error->status : TD_UNSUPPORTED;
    }
    TDI_TRY(tdi_optimizer_resolve(optimizer, error));
    if (is_zero(json_object_get(config, "learning_rate")))
        optimizer->learning_rate = 0;
    return tdi_optimizer_check(optimizer, error);
}

/* Properties of a loss or a metric class that must be as given, if they are there at all. */
typedef struct fixed {
    const char *key, *text;
} fixed;

static td_status check_fixed(const char *what, const json_t *config, const fixed *list, tdi_error *error)
{
    char seen[TDI_KERAS_TEXT];
    for (; list->key; list++) {
        const json_t *value = json_object_get(config, list->key);
        if (is_nothing(value) || strcmp(tdi_keras_show(value, seen), list->text) == 0)
            continue;
        return tdi_fail(error, TD_UNSUPPORTED, "%s: property \"%s\" is %s; Tandem knows %s only", what, list->key, seen,
                        list->text);
    }
    return tdi_keras_check_dtype(json_object_get(config, "dtype"), error);
}

/* Refuses a key that none of Keras's own losses has: its meaning is unknown. */
static td_status check_keys(const char *what, const json_t *config, const char *const *known, tdi_error *error)
{
    static const tdi_field none[] = {{0}};
    if (tdi_keras_read_fields(none, config, known, NULL, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s", what);
    return error ? error->status : TD_UNSUPPORTED;
}

/* Keras 3.15 has ignore_class, but leaves it out of its files. */
static td_status read_delta(const json_t *value, tdi_loss *loss, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    if (is_nothing(value))
        return TD_OK;
    if (!json_is_number(value))
        return tdi_fail(error, TD_BAD_FILE, "%s: property \"delta\" is %s, which is no number",
                        tdi_loss_class(loss->kind), tdi_keras_show(value, text));
    return tdi_loss_set_delta(loss, (float)json_number_value(value), error);
}

static td_status read_ignored(const json_t *value, tdi_loss *loss, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    if (is_nothing(value))
        return TD_OK;
    if (!json_is_integer(value))
        return tdi_fail(error, TD_BAD_FILE, "%s: property \"ignore_class\" is %s, which is no class number",
                        tdi_loss_class(loss->kind), tdi_keras_show(value, text));
    return tdi_loss_ignore(loss, (float)json_integer_value(value), error);
}

static td_status read_loss_config(const json_t *config, const char *name, tdi_loss *loss, tdi_error *error)
{
    static const fixed must_be[] = {{"reduction", "\"sum_over_batch_size\""}, {"axis", "-1"}, {0}};
    static const char *const known[] = {"name",         "dtype", "reduction", "axis", "from_logits", "label_smoothing",
                                        "ignore_class", "delta", "fn",        NULL};
    const json_t *smoothing = json_object_get(config, "label_smoothing");
    TDI_TRY(check_keys(name, config, known, error));
    TDI_TRY(check_fixed(name, config, must_be, error));
    double amount = json_number_value(smoothing);
    if ((smoothing && !json_is_number(smoothing)) || !(amount >= 0 && amount <= 1))
        return tdi_fail(error, TD_BAD_FILE, "%s: property \"label_smoothing\" must be in [0, 1]", name);
    loss->from_logits = json_is_true(json_object_get(config, "from_logits"));
    loss->label_smoothing = (float)amount;
    TDI_TRY(read_delta(json_object_get(config, "delta"), loss, error));
    return read_ignored(json_object_get(config, "ignore_class"), loss, error);
}

static td_status read_loss(const json_t *value, tdi_loss *loss, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *config;
    const char *name = tdi_keras_name_of(value, &config);
    *loss = (tdi_loss){0};
    if (is_nothing(value))
        return TD_OK;
    loss->kind = name ? tdi_loss_parse(name) : TDI_LOSS_NONE;
    if (loss->kind == TDI_LOSS_NONE)
        return tdi_fail(error, TD_UNSUPPORTED, "loss %s: Tandem does not know it",
                        name ? name : tdi_keras_show(value, text));
    if (loss->kind == TDI_LOSS_HUBER)
        loss->delta = 1;
    return config ? read_loss_config(config, name, loss, error) : TD_OK;
}

/* ["accuracy"], "accuracy" or null; lists may be nested where there is one output. */
static td_status read_metrics(const td_model *model, int output, const json_t *value, tdi_output_training *training,
                              tdi_error *error)
{
    td_metric metric;
    if (is_nothing(value))
        return TD_OK;
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            TDI_TRY(read_metrics(model, output, json_array_get(value, i), training, error));
        return TD_OK;
    }
    TDI_TRY(tdi_keras_read_metric(model->context->arena, value, &metric, error));
    return tdi_model_add_metric(model, output, training, &metric, error);
}

static bool is_dictionary(const json_t *value)
{
    return json_is_object(value) && !json_object_get(value, "class_name");
}

/* The share of output `i` in what is given for all of them; NULL when there is none. An only output may have the whole.
 */
static td_status share(const td_model *model, const char *key, const json_t *all, int i, const json_t **part,
                       tdi_error *error)
{
    bool nested = is_dictionary(all);
    *part = all;
    if (is_nothing(all))
        return TD_OK;
    if (nested)
        *part = json_object_get(all, model->architecture->outputs[i]->site->layer->name);
    else if (json_is_array(all) && json_array_size(all) == (size_t)model->architecture->n_outputs)
        *part = json_array_get(all, (size_t)i);
    else if (model->architecture->n_outputs > 1)
        return tdi_fail(error, TD_UNSUPPORTED, "\"%s\" does not give one entry for each of the %d outputs", key,
                        model->architecture->n_outputs);
    if (nested && json_object_size(all) > (size_t)model->architecture->n_outputs)
        return tdi_fail(error, TD_UNSUPPORTED, "\"%s\" names outputs that the model does not have", key);
    return TD_OK;
}

static td_status read_weight(const json_t *value, float *weight, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    *weight = is_nothing(value) ? 1 : (float)json_number_value(value);
    if ((!is_nothing(value) && !json_is_number(value)) || !isfinite(*weight))
        return tdi_fail(error, TD_BAD_FILE, "\"loss_weights\" holds %s, which is no number",
                        tdi_keras_show(value, text));
    return TD_OK;
}

static td_status read_metrics_of(const td_model *model, const json_t *config, const char *key, int output,
                                 tdi_output_training *training, tdi_error *error)
{
    const json_t *all = json_object_get(config, key), *metrics;
    bool bare = model->architecture->n_outputs == 1 && json_is_array(all);
    if (json_is_array(all) && !json_array_size(all))
        return TD_OK;
    TDI_TRY(share(model, key, all, output, &metrics, error));
    return read_metrics(model, output, bare ? all : metrics, training, error);
}

static td_status read_output(const td_model *model, const json_t *config, int i, tdi_output_training *training,
                             tdi_error *error)
{
    const json_t *loss, *weight;
    TDI_TRY(share(model, "loss", json_object_get(config, "loss"), i, &loss, error));
    TDI_TRY(share(model, "loss_weights", json_object_get(config, "loss_weights"), i, &weight, error));
    TDI_TRY(read_loss(loss, &training->loss, error));
    TDI_TRY(read_weight(weight, &training->loss_weight, error));
    TDI_TRY(read_metrics_of(model, config, "metrics", i, training, error));
    int unweighted = training->n_metrics;
    TDI_TRY(read_metrics_of(model, config, "weighted_metrics", i, training, error));
    training->n_weighted = training->n_metrics - unweighted;
    return TD_OK;
}

static td_status read_all(const td_model *model, const json_t *config, compiled *to, tdi_error *error)
{
    bool any_loss = false;
    if (!json_is_object(config))
        return tdi_fail(error, TD_BAD_FILE, "the compile configuration is damaged");
    TDI_TRY(read_optimizer(model, json_object_get(config, "optimizer"), &to->optimizer, error));
    for (int i = 0; i < model->architecture->n_outputs; i++) {
        TDI_TRY(read_output(model, config, i, &to->training[i], error));
        any_loss = any_loss || to->training[i].loss.kind != TDI_LOSS_NONE;
    }
    return any_loss ? TD_OK : tdi_fail(error, TD_UNSUPPORTED, "the model was compiled without a loss");
}

/* Keras writes 1 unless told otherwise, and then Tandem decides. */
static td_status read_steps_per_execution(const json_t *config, int64_t *steps, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *value = json_object_get(config, "steps_per_execution");
    bool automatic = is_nothing(value) || (json_is_string(value) && strcmp(json_string_value(value), "auto") == 0);
    if (!automatic && (!json_is_integer(value) || json_integer_value(value) < 1))
        return tdi_fail(error, TD_BAD_FILE,
                        "\"steps_per_execution\" is %s where a whole number of at least 1 is needed",
                        tdi_keras_show(value, text));
    *steps = json_integer_value(value) > 1 ? json_integer_value(value) : 0;
    return TD_OK;
}

td_status tdi_keras_read_compile(td_model *model, const json_t *config, tdi_error *error)
{
    compiled all = {0};
    TDI_TRY(read_all(model, config, &all, error));
    TDI_TRY(read_steps_per_execution(config, &model->compiled.steps_per_execution, error));
    TDI_TRY(tdi_model_set_optimizer(model, &all.optimizer, error));
    memcpy(model->compiled.outputs, all.training, sizeof all.training);
    model->compiled.is_set = true;
    return TD_OK;
}

/* ---- writing ---- */

static json_t *write_optimizer(const td_optimizer *optimizer)
{
    const tdi_config_type *type = tdi_config_type_of(tdi_optimizer_types, optimizer->kind);
    json_t *config = type ? json_pack("{s:s}", "name", type->name) : NULL;
    if (type)
        tdi_keras_write_fields(type->fields, optimizer, &config);
    if (optimizer->schedule.kind)
        tdi_keras_put(&config, "learning_rate", tdi_keras_write_schedule(&optimizer->schedule));
    return type ? tdi_keras_object("keras.optimizers", type->class_name, config) : NULL;
}

static json_t *write_loss(const tdi_loss *loss)
{
    if (loss->kind == TDI_LOSS_NONE)
        return json_null();
    json_t *config = json_pack("{s:s}", "reduction", "sum_over_batch_size");
    if (loss->kind <= TDI_LOSS_BINARY)
        tdi_keras_put(&config, "from_logits", json_boolean(loss->from_logits));
    if (loss->kind == TDI_LOSS_HUBER)
        tdi_keras_put(&config, "delta", tdi_keras_float(loss->delta));
    if (loss->ignore.any)
        tdi_keras_put(&config, "ignore_class", json_integer(loss->ignore.number));
    if (loss->kind == TDI_LOSS_CATEGORICAL || loss->kind == TDI_LOSS_BINARY)
        tdi_keras_put(&config, "label_smoothing", tdi_keras_float(loss->label_smoothing));
    return tdi_keras_object("keras.losses", tdi_loss_class(loss->kind), config);
}

static json_t *write_metrics(const tdi_output_training *training, bool weighted)
{
    json_t *list = json_array();
    for (int i = 0; i < training->n_metrics; i++)
        if (tdi_is_weighted(training, i) == weighted)
            tdi_keras_append(&list, tdi_keras_write_metric(&training->metrics[i]));
    return list;
}

/* A single output's metrics are written bare. */
static json_t *write_all_metrics(const td_model *model, bool weighted)
{
    if (model->architecture->n_outputs == 1)
        return write_metrics(&model->compiled.outputs[0], weighted);
    json_t *lists = json_array();
    for (int i = 0; i < model->architecture->n_outputs; i++)
        tdi_keras_append(&lists, write_metrics(&model->compiled.outputs[i], weighted));
    return lists;
}

static bool has_weighted_metrics(const td_model *model)
{
    for (int i = 0; i < model->architecture->n_outputs; i++)
        if (model->compiled.outputs[i].n_weighted)
            return true;
    return false;
}

static bool has_weights(const td_model *model)
{
    for (int i = 0; i < model->architecture->n_outputs; i++)
        if (model->compiled.outputs[i].loss_weight != 1)
            return true;
    return false;
}

/* Those of several outputs are written as lists. */
static json_t *write_outputs(const td_model *model, json_t **losses, json_t **weights)
{
    *losses = json_array();
    *weights = json_array();
    for (int i = 0; i < model->architecture->n_outputs; i++) {
        tdi_keras_append(losses, write_loss(&model->compiled.outputs[i].loss));
        tdi_keras_append(weights, tdi_keras_float(model->compiled.outputs[i].loss_weight));
    }
    return *losses;
}

json_t *tdi_keras_write_compile(const td_model *model)
{
    json_t *losses, *weights;
    write_outputs(model, &losses, &weights);
    json_t *weighted = has_weighted_metrics(model) ? write_all_metrics(model, true) : json_null();
    int64_t steps = model->compiled.steps_per_execution ? model->compiled.steps_per_execution : 1;
    json_t *config =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:I}", "optimizer", write_optimizer(&model->state->optimizer), "loss",
                  losses, "loss_weights", weights, "metrics", write_all_metrics(model, false), "weighted_metrics",
                  weighted, "run_eagerly", 0, "steps_per_execution", (json_int_t)steps);
    if (config && model->architecture->n_outputs == 1)
        json_object_set(config, "loss", json_array_get(losses, 0));
    if (!has_weights(model))
        tdi_keras_put(&config, "loss_weights", json_null());
    return config;
}
