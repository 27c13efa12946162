/* keras_compile.c - how a model was compiled: optimizer, a loss and metrics per output.
 *
 * Keras writes a loss as a name, a serialized function, a serialized class, or a list or dictionary of these per
 * output; metrics likewise, a list of them per output. Each part stands alone: one that Tandem does not know is named
 * in a warning and left out, and the others are used. "run_eagerly", "jit_compile" and "auto_scale_loss" say how Keras
 * is to run, not what to compute, and are skipped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/keras_json.h"

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

/* Keras 2 has "decay", of which 0 is nothing, says how XLA is used, and once called the rate "lr". */
static void drop_old_keys(json_t *config)
{
    json_t *rate = json_object_get(config, "lr");
    if (is_zero(json_object_get(config, "decay")))
        json_object_del(config, "decay");
    json_object_del(config, "jit_compile");
    json_object_del(config, "is_legacy_optimizer");
    if (rate && !json_object_get(config, "learning_rate"))
        json_object_set(config, "learning_rate", rate);
    json_object_del(config, "lr");
}

/* Reads the rate: a number, or a schedule in its place. A 0 is set after the other defaults have been resolved. */
static td_status read_optimizer_config(const td_model *model, const tdi_config_type *type, json_t *config,
                                       td_optimizer *optimizer, tdi_error *error)
{
    static const char *const others[] = {"name", NULL};
    drop_old_keys(config);
    const json_t *rate = json_object_get(config, "learning_rate");
    if (json_is_object(rate))
        TDI_TRY(tdi_keras_read_schedule(model->kept, rate, &optimizer->schedule, error));
    if (json_is_object(rate) || is_zero(rate))
        json_object_del(config, "learning_rate");
    return tdi_keras_read_fields(type->fields, config, others, optimizer, error);
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
    json_t *own = json_copy((json_t *)(uintptr_t)config);
    td_status status = !config ? TD_OK
                       : !own  ? tdi_no_memory(error)
                               : read_optimizer_config(model, type, own, optimizer, error);
    json_decref(own);
    if (status != TD_OK) {
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
    static const fixed automatic[] = {{"reduction", "\"auto\""}, {"axis", "-1"}, {0}}; /* Keras 2's name for it */
    static const char *const known[] = {"name",         "dtype", "reduction", "axis", "from_logits", "label_smoothing",
                                        "ignore_class", "delta", "fn",        NULL};
    const json_t *smoothing = json_object_get(config, "label_smoothing");
    TDI_TRY(check_keys(name, config, known, error));
    if (check_fixed(name, config, automatic, NULL) != TD_OK)
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

/* What is read, and the file that it is read from, for warnings. */
typedef struct source {
    td_model *model;
    const json_t *config;
    const char *path;
} source;

/* Says what is left out and what that means; only memory that is out is a failure. */
static td_status leave_out(const source *from, const tdi_error *reason, const char *meaning, tdi_error *error)
{
    if (reason->status == TD_NO_MEMORY)
        return tdi_fail(error, TD_NO_MEMORY, "%s", reason->message);
    tdi_log(from->model->context, TD_LOG_WARNING, "\"%s\": %s; %s", from->path, reason->message, meaning);
    return TD_OK;
}

/* Keeps what a model that is saved again is to have still. */
static td_status keep_unknown(const source *from, const json_t *value, const char **kept, tdi_error *error)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    *kept = text ? tdi_strdup(from->model->kept, text) : NULL;
    free(text);
    return *kept ? TD_OK : tdi_no_memory(error);
}

static const char *output_name(const source *from, int output)
{
    return from->model->architecture->outputs[output]->site->layer->name;
}

static bool is_dictionary(const json_t *value)
{
    return json_is_object(value) && !json_object_get(value, "class_name");
}

static bool names_output(const source *from, const char *name)
{
    for (int o = 0; o < from->model->architecture->n_outputs; o++)
        if (strcmp(output_name(from, o), name) == 0)
            return true;
    return false;
}

static td_status check_names(const source *from, const char *key, const json_t *all, tdi_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)all, name, value)
    {
        if (!names_output(from, name))
            return tdi_fail(error, TD_UNSUPPORTED, "\"%s\" names \"%.64s\", which is no output of the model", key,
                            name);
    }
    return TD_OK;
}

/* The share of output `i` in what is given for all of them; NULL when there is none. An only output may have the whole,
 * and a loss that is no list is every output's. As in Keras, a list of losses may be short. */
static td_status share(const source *from, const char *key, int i, const json_t **part, tdi_error *error)
{
    const json_t *all = json_object_get(from->config, key);
    size_t outputs = (size_t)from->model->architecture->n_outputs, entries = json_array_size(all);
    bool losses = strcmp(key, "loss") == 0;
    *part = all;
    if (is_dictionary(all)) {
        *part = json_object_get(all, output_name(from, i));
        return check_names(from, key, all, error);
    }
    if (json_is_array(all) && (entries == outputs || (losses && entries < outputs)))
        *part = json_array_get(all, (size_t)i);
    else if (!is_nothing(all) && (losses ? json_is_array(all) : outputs > 1))
        return tdi_fail(error, TD_UNSUPPORTED, "\"%s\" does not give one entry for each of the %zu outputs", key,
                        outputs);
    return TD_OK;
}

static td_status read_output_loss(const source *from, int output, tdi_error *error)
{
    tdi_output_training *training = &from->model->compiled.outputs[output];
    tdi_error reason = {0};
    const json_t *value;
    if (share(from, "loss", output, &value, &reason) == TD_OK && read_loss(value, &training->loss, &reason) == TD_OK)
        return TD_OK;
    training->loss = (tdi_loss){0};
    TDI_TRY(keep_unknown(from, value ? value : json_object_get(from->config, "loss"), &training->unknown_loss, error));
    if (from->model->architecture->n_outputs > 1)
        tdi_error_prefix(&reason, "output \"%.64s\"", output_name(from, output));
    return leave_out(from, &reason, "the model predicts, and trains and is evaluated once it has another loss", error);
}

static td_status read_weight(const source *from, int output, float *weight, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *value;
    TDI_TRY(share(from, "loss_weights", output, &value, error));
    *weight = is_nothing(value) ? 1 : (float)json_number_value(value);
    if ((!is_nothing(value) && !json_is_number(value)) || !isfinite(*weight))
        return tdi_fail(error, TD_BAD_FILE, "\"loss_weights\" holds %s, which is no number",
                        tdi_keras_show(value, text));
    return TD_OK;
}

/* All weights or none, since only their proportions mean something. */
static td_status read_weights(const source *from, tdi_error *error)
{
    float weights[TDI_MAX_IO];
    tdi_error reason = {0};
    int outputs = from->model->architecture->n_outputs;
    for (int o = 0; o < outputs; o++)
        if (read_weight(from, o, &weights[o], &reason) != TD_OK)
            return leave_out(from, &reason, "they are left out, and all losses weigh 1", error);
    for (int o = 0; o < outputs; o++)
        from->model->compiled.outputs[o].loss_weight = weights[o];
    return TD_OK;
}

static td_status read_metric(const source *from, int output, const json_t *value, tdi_error *error)
{
    td_metric metric;
    tdi_error reason = {0};
    if (tdi_keras_read_metric(from->model->kept, value, &metric, &reason) == TD_OK &&
        tdi_model_add_metric(from->model, output, &from->model->compiled.outputs[output], &metric, &reason) == TD_OK)
        return TD_OK;
    return leave_out(from, &reason, "it is left out", error);
}

/* ["accuracy"], "accuracy" or null; lists may be nested where there is one output. */
static td_status read_metrics(const source *from, int output, const json_t *value, tdi_error *error)
{
    if (is_nothing(value))
        return TD_OK;
    if (!json_is_array(value))
        return read_metric(from, output, value, error);
    for (size_t i = 0; i < json_array_size(value); i++)
        TDI_TRY(read_metrics(from, output, json_array_get(value, i), error));
    return TD_OK;
}

static bool is_empty_list(const json_t *value)
{
    return json_is_array(value) && !json_array_size(value);
}

/* Reads "metrics", and then "weighted_metrics" behind them. */
static td_status read_all_metrics(const source *from, const char *key, bool weighted, tdi_error *error)
{
    const json_t *all = json_object_get(from->config, key), *value = all;
    tdi_error reason = {0};
    for (int o = 0; o < from->model->architecture->n_outputs && !is_empty_list(all); o++) {
        tdi_output_training *training = &from->model->compiled.outputs[o];
        bool bare = from->model->architecture->n_outputs == 1 && json_is_array(all);
        int before = training->n_metrics;
        if (!bare && share(from, key, o, &value, &reason) != TD_OK)
            return leave_out(from, &reason, "they are left out", error);
        TDI_TRY(read_metrics(from, o, value, error));
        training->n_weighted = weighted ? training->n_metrics - before : 0;
        tdi_model_choose_targets(from->model, o);
    }
    return TD_OK;
}

static td_status read_compiled_optimizer(const source *from, tdi_error *error)
{
    td_optimizer optimizer = {0};
    tdi_error reason = {0};
    const json_t *value = json_object_get(from->config, "optimizer");
    if (is_nothing(value))
        return TD_OK;
    if (read_optimizer(from->model, value, &optimizer, &reason) == TD_OK)
        return tdi_model_set_optimizer(from->model, &optimizer, error);
    TDI_TRY(keep_unknown(from, value, &from->model->compiled.unknown_optimizer, error));
    return leave_out(from, &reason, "the model predicts and is evaluated, and trains once it has another optimizer",
                     error);
}

/* Keras writes 1 unless told otherwise, and then Tandem decides. */
static td_status read_steps_per_execution(const source *from, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    tdi_error reason = {0};
    const json_t *value = json_object_get(from->config, "steps_per_execution");
    bool automatic = is_nothing(value) || (json_is_string(value) && strcmp(json_string_value(value), "auto") == 0);
    from->model->compiled.steps_per_execution = json_integer_value(value) > 1 ? json_integer_value(value) : 0;
    if (automatic || (json_is_integer(value) && json_integer_value(value) >= 1))
        return TD_OK;
    tdi_fail(&reason, TD_BAD_FILE, "\"steps_per_execution\" is %s where a whole number of at least 1 is needed",
             tdi_keras_show(value, text));
    return leave_out(from, &reason, "it is left out", error);
}

/* A key that no Keras has written so far is named. */
static td_status name_unknown_keys(const source *from, tdi_error *error)
{
    static const char *const known[] = {"optimizer",        "loss",        "loss_weights", "metrics",
                                        "weighted_metrics", "run_eagerly", "jit_compile",  "steps_per_execution",
                                        "auto_scale_loss",  NULL};
    static const tdi_field none[] = {{0}};
    tdi_error reason = {0};
    if (tdi_keras_read_fields(none, from->config, known, NULL, &reason) == TD_OK)
        return TD_OK;
    tdi_error_prefix(&reason, "the compile configuration");
    return leave_out(from, &reason, "it is left out", error);
}

static td_status read_all(const source *from, tdi_error *error)
{
    TDI_TRY(read_compiled_optimizer(from, error));
    for (int o = 0; o < from->model->architecture->n_outputs; o++)
        TDI_TRY(read_output_loss(from, o, error));
    TDI_TRY(read_weights(from, error));
    TDI_TRY(read_all_metrics(from, "metrics", false, error));
    TDI_TRY(read_all_metrics(from, "weighted_metrics", true, error));
    TDI_TRY(read_steps_per_execution(from, error));
    return name_unknown_keys(from, error);
}

td_status tdi_keras_read_compile(td_model *model, const json_t *config, const char *path, tdi_error *error)
{
    const source from = {model, config, path};
    tdi_error reason = {0};
    if (is_nothing(config))
        return TD_OK;
    if (!json_is_object(config)) {
        tdi_fail(&reason, TD_BAD_FILE, "the compile configuration is damaged");
        return leave_out(&from, &reason, "the model predicts, and trains once it is compiled anew", error);
    }
    TDI_TRY(read_all(&from, error));
    model->compiled.is_set = tdi_model_losses_known(model);
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
        const char *unknown = model->compiled.outputs[i].unknown_loss;
        tdi_keras_append(losses, unknown ? json_loads(unknown, JSON_DECODE_ANY, NULL)
                                         : write_loss(&model->compiled.outputs[i].loss));
        tdi_keras_append(weights, tdi_keras_float(model->compiled.outputs[i].loss_weight));
    }
    return *losses;
}

bool tdi_keras_is_compiled(const td_model *model)
{
    bool any = model->state->optimizer.kind != TD_OPTIMIZER_NONE || model->compiled.unknown_optimizer;
    for (int o = 0; o < model->architecture->n_outputs; o++)
        any = any || tdi_model_has_target(model, o) || model->compiled.outputs[o].unknown_loss;
    return any;
}

json_t *tdi_keras_write_compile(const td_model *model)
{
    json_t *losses, *weights;
    write_outputs(model, &losses, &weights);
    json_t *weighted = has_weighted_metrics(model) ? write_all_metrics(model, true) : json_null();
    int64_t steps = model->compiled.steps_per_execution ? model->compiled.steps_per_execution : 1;
    json_t *config = json_pack("{s:o, s:o, s:o, s:o, s:b, s:I}", "loss", losses, "loss_weights", weights, "metrics",
                               write_all_metrics(model, false), "weighted_metrics", weighted, "run_eagerly", 0,
                               "steps_per_execution", (json_int_t)steps);
    if (model->state->optimizer.kind != TD_OPTIMIZER_NONE) /* Keras takes its default where there is no key */
        tdi_keras_put(&config, "optimizer", write_optimizer(&model->state->optimizer));
    else if (model->compiled.unknown_optimizer)
        tdi_keras_put(&config, "optimizer", json_loads(model->compiled.unknown_optimizer, JSON_DECODE_ANY, NULL));
    if (config && model->architecture->n_outputs == 1)
        json_object_set(config, "loss", json_array_get(losses, 0));
    if (!has_weights(model))
        tdi_keras_put(&config, "loss_weights", json_null());
    return config;
}
