/* keras_metric.c - a metric: its name, a function's, or {"class_name": "MeanIoU", "config": {...}}. */
#include <string.h>

#include "formats/keras_json.h"

/* ---- reading ---- */

/* Keras logs a metric under the name by which it was given. */
static td_status take_name(tdi_arena *arena, const char *name, td_metric *metric, tdi_error *error)
{
    if (!name || strcmp(name, tdi_metric_type_of(metric->kind)->name) == 0)
        return TD_OK;
    metric->name = tdi_strdup(arena, name);
    return metric->name ? TD_OK : tdi_no_memory(error);
}

static td_status wrong_list(const char *key, const json_t *value, const char *wanted, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    return tdi_fail(error, TD_UNSUPPORTED, "property \"%s\" is %s; Tandem knows %s", key, tdi_keras_show(value, text),
                    wanted);
}

static td_status read_list(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error)
{
    size_t count = json_array_size(value);
    float *thresholds = TDI_NEW_ARRAY(arena, float, count + 1);
    if (!thresholds)
        return tdi_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        double threshold = json_number_value(json_array_get(value, i));
        if (!json_is_number(json_array_get(value, i)) || !(threshold >= 0 && threshold <= 1))
            return wrong_list("thresholds", value, "numbers from 0 to 1", error);
        thresholds[i] = (float)threshold;
    }
    thresholds[count] = TD_THRESHOLDS_END;
    metric->thresholds = thresholds;
    return TD_OK;
}

/* null, a number, or a list; of Precision and Recall a list of one is a number. */
static td_status read_thresholds(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error)
{
    bool single = metric->kind != TD_METRIC_AUC && json_array_size(value) == 1;
    const json_t *one = single ? json_array_get(value, 0) : value;
    if (!one || json_is_null(one))
        return TD_OK;
    if (json_is_array(one) && (json_array_size(one) || metric->kind == TD_METRIC_AUC))
        return read_list(arena, one, metric, error);
    if (!json_is_number(one) || metric->kind == TD_METRIC_AUC)
        return wrong_list("thresholds", value, "a number, or a list of them", error);
    metric->threshold = TD_SET((float)json_number_value(one));
    return TD_OK;
}

static td_status read_targets(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error)
{
    size_t count = json_array_size(value);
    int *targets = TDI_NEW_ARRAY(arena, int, count + 1);
    if (!targets)
        return tdi_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        const json_t *target = json_array_get(value, i);
        json_int_t number = json_integer_value(target);
        if (!json_is_integer(target) || number < 0 || number >= TDI_MOST_CLASSES)
            return wrong_list("target_class_ids", value, "class numbers", error);
        targets[i] = (int)number;
    }
    targets[count] = TD_CLASSES_END;
    metric->target_class_ids = targets;
    return count || !value ? TD_OK : wrong_list("target_class_ids", value, "at least one class number", error);
}

/* A list, or an array as Keras 3 writes it: {"class_name": "__tensor__", "config": {"value": [...]}}. */
static td_status read_label_weights(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error)
{
    const json_t *list = json_is_object(value) ? json_object_get(json_object_get(value, "config"), "value") : value;
    size_t count = json_array_size(list);
    float *weights = TDI_NEW_ARRAY(arena, float, count + 1);
    if (!weights)
        return tdi_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        double weight = json_number_value(json_array_get(list, i));
        if (!json_is_number(json_array_get(list, i)) || !(weight >= 0))
            return wrong_list("label_weights", value, "numbers not below 0", error);
        weights[i] = (float)weight;
    }
    weights[count] = TD_LABEL_WEIGHTS_END;
    metric->label_weights = weights;
    return count ? TD_OK : wrong_list("label_weights", value, "null, or a list of numbers", error);
}

/* Keras counts in integers, unless it is told otherwise. */
static bool is_whole(const json_t *config)
{
    const char *name = json_string_value(json_object_get(config, "dtype"));
    return name && strncmp(name, "int", 3) == 0;
}

static td_status check_dtype(const json_t *config, bool counts, tdi_error *error)
{
    return counts && is_whole(config) ? TD_OK : tdi_keras_check_dtype(json_object_get(config, "dtype"), error);
}

static td_status read_config(tdi_arena *arena, const tdi_metric_type *type, const json_t *config, td_metric *metric,
                             tdi_error *error)
{
    bool auc = metric->kind == TD_METRIC_AUC;
    const json_t *weights = auc ? json_object_get(config, "label_weights") : NULL;
    const char *const others[] = {"name", "dtype", type->lists, auc ? "label_weights" : NULL, NULL};
    bool counts = metric->kind == TD_METRIC_MEAN_IOU || metric->kind == TD_METRIC_IOU;
    bool targets = metric->kind == TD_METRIC_IOU || metric->kind == TD_METRIC_BINARY_IOU;
    TDI_TRY(tdi_keras_read_fields(type->fields, config, others, metric, error));
    TDI_TRY(check_dtype(config, counts || targets, error));
    if (counts || targets)
        metric->fractions = tdi_keras_text(config, "dtype") && !is_whole(config) ? TD_YES : TD_DEFAULT;
    if (targets && json_object_get(config, type->lists))
        TDI_TRY(read_targets(arena, json_object_get(config, type->lists), metric, error));
    else if (type->lists)
        TDI_TRY(read_thresholds(arena, json_object_get(config, type->lists), metric, error));
    if (weights && !json_is_null(weights))
        TDI_TRY(read_label_weights(arena, weights, metric, error));
    tdi_fields_resolve(type->fields, metric);
    if (counts && metric->num_classes < 1)
        return tdi_fail(error, TD_BAD_FILE, "property \"num_classes\" is missing, or below 1");
    return take_name(arena, tdi_keras_text(config, "name"), metric, error);
}

td_status tdi_keras_read_metric(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *config;
    const char *name = tdi_keras_name_of(value, &config);
    if (name && strcmp(name, "MeanMetricWrapper") == 0) { /* Keras 2's "accuracy": a function, and a name of its own */
        const char *own = tdi_keras_text(config, "name");
        name = tdi_keras_name_of(json_object_get(config, "fn"), &config);
        *metric = (td_metric){.kind = name ? tdi_metric_parse(name) : TD_METRIC_END};
        if (metric->kind != TD_METRIC_END)
            return take_name(arena, own, metric, error);
    }
    *metric = (td_metric){.kind = name ? tdi_metric_parse(name) : TD_METRIC_END};
    if (metric->kind == TD_METRIC_END)
        return tdi_fail(error, TD_UNSUPPORTED, "metric %s: Tandem does not know it",
                        name ? name : tdi_keras_show(value, text));
    if (!config)
        return take_name(arena, name, metric, error);
    if (read_config(arena, tdi_metric_type_of(metric->kind), config, metric, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s", name);
    return error ? error->status : TD_UNSUPPORTED;
}

/* ---- writing ---- */

static json_t *write_thresholds(const td_metric *metric)
{
    if (!metric->thresholds)
        return metric->threshold.is_set ? tdi_keras_float(metric->threshold.value) : json_null();
    json_t *list = json_array();
    for (int i = 0; metric->thresholds[i] != TD_THRESHOLDS_END; i++)
        tdi_keras_append(&list, tdi_keras_float(metric->thresholds[i]));
    return list;
}

/* As a list: arrays Keras 3.15 writes, but does not read back. */
static json_t *write_label_weights(const td_metric *metric)
{
    json_t *list = metric->label_weights ? json_array() : json_null();
    for (int i = 0; metric->label_weights && metric->label_weights[i] != TD_LABEL_WEIGHTS_END; i++)
        tdi_keras_append(&list, tdi_keras_float(metric->label_weights[i]));
    return list;
}

static json_t *write_targets(const td_metric *metric)
{
    json_t *list = json_array();
    const int *targets = metric->target_class_ids;
    int classes = metric->kind == TD_METRIC_BINARY_IOU ? 2 : metric->num_classes;
    for (int i = 0; targets ? targets[i] != TD_CLASSES_END : i < classes; i++)
        tdi_keras_append(&list, json_integer(targets ? targets[i] : i));
    return list;
}

json_t *tdi_keras_write_metric(const td_metric *metric)
{
    const tdi_metric_type *type = tdi_metric_type_of(metric->kind);
    const char *name = tdi_metric_name(metric);
    bool targets = metric->kind == TD_METRIC_IOU || metric->kind == TD_METRIC_BINARY_IOU;
    bool plain = type->fields->kind == TDI_FIELD_END && !type->lists;
    if (plain && tdi_metric_parse(name) == metric->kind)
        return json_string(name);
    json_t *config = json_pack("{s:s}", "name", name);
    tdi_keras_write_fields(type->fields, metric, &config);
    if (type->lists)
        tdi_keras_put(&config, type->lists, targets ? write_targets(metric) : write_thresholds(metric));
    if (metric->fractions == TD_YES)
        tdi_keras_put(&config, "dtype", json_string("float32"));
    if (metric->kind == TD_METRIC_AUC)
        tdi_keras_put(&config, "label_weights", write_label_weights(metric));
    return tdi_keras_object("keras.metrics", type->class_name, config);
}
