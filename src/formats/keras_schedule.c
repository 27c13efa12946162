/* keras_schedule.c - an optimizer's learning rate that is a schedule: {"class_name": "CosineDecay", "config": {...}}.
 */
#include <math.h>
#include <string.h>

#include "formats/keras_json.h"

/* ---- reading ---- */

static td_status read_number(const json_t *list, size_t i, const char *what, double *number, tdi_error *error)
{
    const json_t *value = json_array_get(list, i);
    *number = json_number_value(value);
    if (json_is_number(value) && fabs(*number) < 0x1p53)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "%s %zu is not a number that can be", what, i);
}

/* Keras compares the step with whole numbers, whatever the boundaries are. */
static td_status read_pieces(tdi_arena *arena, const json_t *config, td_schedule *schedule, tdi_error *error)
{
    const json_t *boundaries = json_object_get(config, "boundaries"), *values = json_object_get(config, "values");
    size_t count = json_array_size(values);
    double number;
    if (count < 2 || count > INT32_MAX || json_array_size(boundaries) != count - 1)
        return tdi_fail(error, TD_BAD_FILE, "there are %zu boundaries and %zu values; one value more was expected",
                        json_array_size(boundaries), count);
    int64_t *steps = TDI_NEW_ARRAY(arena, int64_t, count);
    float *rates = TDI_NEW_ARRAY(arena, float, count);
    if (!steps || !rates)
        return tdi_no_memory(error);
    for (size_t i = 0; i + 1 < count; i++) {
        TDI_TRY(read_number(boundaries, i, "boundary", &number, error));
        steps[i] = (int64_t)number;
    }
    for (size_t i = 0; i < count; i++) {
        TDI_TRY(read_number(values, i, "value", &number, error));
        rates[i] = (float)number;
    }
    schedule->pieces = (int)count;
    schedule->boundaries = steps;
    schedule->values = rates;
    return TD_OK;
}

static td_status read_schedule(tdi_arena *arena, const tdi_config_type *type, const json_t *config,
                               td_schedule *schedule, tdi_error *error)
{
    static const char *const others[] = {"name", NULL}, *const lists[] = {"name", "boundaries", "values", NULL};
    bool pieces = type->kind == TD_PIECEWISE_CONSTANT_DECAY;
    *schedule = (td_schedule){.kind = type->kind};
    TDI_TRY(tdi_keras_read_fields(type->fields, config, pieces ? lists : others, schedule, error));
    if (pieces)
        TDI_TRY(read_pieces(arena, config, schedule, error));
    tdi_fields_resolve(type->fields, schedule);
    return tdi_schedule_check(schedule, error);
}

td_status tdi_keras_read_schedule(tdi_arena *arena, const json_t *value, td_schedule *schedule, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const char *name = tdi_keras_text(value, "class_name");
    const tdi_config_type *type = name ? tdi_config_type_find(tdi_schedule_types, name) : NULL;
    if (!type)
        return tdi_fail(error, TD_UNSUPPORTED, "learning_rate %s: Tandem knows Keras's own schedules by name",
                        name ? name : tdi_keras_show(value, text));
    if (read_schedule(arena, type, json_object_get(value, "config"), schedule, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "learning_rate %s", name);
    return error ? error->status : TD_BAD_FILE;
}

/* ---- writing ---- */

static void write_pieces(const td_schedule *schedule, json_t **config)
{
    json_t *boundaries = json_array(), *values = json_array();
    for (int i = 0; i + 1 < schedule->pieces; i++)
        tdi_keras_append(&boundaries, json_integer(schedule->boundaries[i]));
    for (int i = 0; i < schedule->pieces; i++)
        tdi_keras_append(&values, tdi_keras_float(schedule->values[i]));
    tdi_keras_put(config, "boundaries", boundaries);
    tdi_keras_put(config, "values", values);
}

json_t *tdi_keras_write_schedule(const td_schedule *schedule)
{
    const tdi_config_type *type = tdi_config_type_of(tdi_schedule_types, schedule->kind);
    json_t *config = json_pack("{s:s}", "name", type->name);
    tdi_keras_write_fields(type->fields, schedule, &config);
    if (schedule->kind == TD_PIECEWISE_CONSTANT_DECAY)
        write_pieces(schedule, &config);
    return tdi_keras_object("keras.optimizers.schedules", type->class_name, config);
}
