/* keras_config.c - a layer's or an optimizer's arguments: from Keras's JSON, and to it, by the table of fields. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/keras_json.h"

/* ---- small things ---- */

const char *tdi_keras_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int show_chunk(const char *chunk, size_t size, void *data)
{
    tdi_text *text = data;
    if (text->length < TDI_KERAS_TEXT)
        tdi_text_format(text, "%.*s", (int)size, chunk);
    return 0;
}

const char *tdi_keras_show(const json_t *value, char text[TDI_KERAS_TEXT])
{
    tdi_text all = {0};
    json_dump_callback(value, show_chunk, &all, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    const char *chars = all.chars ? all.chars : "";
    snprintf(text, TDI_KERAS_TEXT, all.length < TDI_KERAS_TEXT ? "%s" : "%.76s...", chars);
    tdi_text_free(&all);
    return text;
}

json_t *tdi_keras_object(const char *module, const char *class_name, json_t *config)
{
    return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name, "config", config,
                     "registered_name");
}

void tdi_keras_put(json_t **object, const char *key, json_t *value)
{
    if (*object && json_object_set_new(*object, key, value) == 0)
        return;
    if (!*object)
        json_decref(value);
    json_decref(*object);
    *object = NULL;
}

void tdi_keras_append(json_t **array, json_t *value)
{
    if (*array && json_array_append_new(*array, value) == 0)
        return;
    if (!*array)
        json_decref(value);
    json_decref(*array);
    *array = NULL;
}

json_t *tdi_keras_float(float value)
{
    double exact = (double)value;
    int exponent = value == 0 ? 0 : (int)floor(log10(fabs(exact)));
    for (int digits = 1; digits <= 9; digits++) {
        int shift = digits - 1 - exponent;
        if (abs(shift) > 22) /* beyond, powers of ten are not exact */
            break;
        double power = pow(10, abs(shift));
        double number = shift < 0 ? round(exact / power) * power : round(exact * power) / power;
        if ((float)number == value)
            return json_real(number);
    }
    return json_real(exact);
}

/* The name of a DTypePolicy, or of a type; NULL: neither. */
static const char *policy_name(const json_t *dtype)
{
    const char *class_name = tdi_keras_text(dtype, "class_name");
    if (!json_is_object(dtype))
        return json_string_value(dtype);
    return class_name && strcmp(class_name, "DTypePolicy") == 0
               ? tdi_keras_text(json_object_get(dtype, "config"), "name")
               : NULL;
}

td_status tdi_keras_check_dtype(const json_t *dtype, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const char *name = policy_name(dtype);
    if (!dtype || json_is_null(dtype) || (name && strcmp(name, "float32") == 0))
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "property \"dtype\" is %s; Tandem knows float32 only",
                    name ? name : tdi_keras_show(dtype, text));
}

td_status tdi_keras_read_dtype(const json_t *json, td_dtype *dtype, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const td_dtype known[] = {TD_FLOAT32, TD_INT32, TD_INT64};
    const char *name = !json || json_is_null(json) ? "float32" : policy_name(json);
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(name, td_dtype_name(known[i])) == 0) {
            *dtype = known[i];
            return TD_OK;
        }
    return tdi_fail(error, TD_UNSUPPORTED,
                    "property \"dtype\" is %s; Tandem knows inputs of float32, and of int32 and int64 for Embedding",
                    name ? name : tdi_keras_show(json, text));
}

td_status tdi_keras_read_policy(const json_t *dtype, bool *bfloat16, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const char *name = policy_name(dtype);
    *bfloat16 = name && strcmp(name, "mixed_bfloat16") == 0;
    if (*bfloat16 || !dtype || json_is_null(dtype) || (name && strcmp(name, "float32") == 0))
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "property \"dtype\" is %s; Tandem knows float32 and mixed_bfloat16",
                    name ? name : tdi_keras_show(dtype, text));
}

json_t *tdi_keras_policy(bool bfloat16)
{
    return tdi_keras_object("keras", "DTypePolicy",
                            json_pack("{s:s}", "name", bfloat16 ? "mixed_bfloat16" : "float32"));
}

static td_status read_extents(const json_t *json, size_t first, td_shape *shape, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count < first || count - first > TD_MAX_RANK)
        return tdi_fail(error, TD_BAD_FILE, "%s is not a shape of at most %d extents", tdi_keras_show(json, text),
                        TD_MAX_RANK);
    *shape = (td_shape){.rank = (int)(count - first)};
    for (size_t i = first; i < count; i++) {
        const json_t *extent = json_array_get(json, i);
        if (json_is_null(extent))
            return tdi_fail(error, TD_UNSUPPORTED,
                            "the shape %s leaves an extent open (null); Tandem needs every extent but the batch's: "
                            "give keras.Input a number for it, and save again",
                            tdi_keras_show(json, text));
        if (!json_is_integer(extent))
            return tdi_fail(error, TD_BAD_FILE, "%s is not a shape", tdi_keras_show(json, text));
        shape->dim[i - first] = json_integer_value(extent);
    }
    return TD_OK;
}

td_status tdi_keras_read_batch_shape(const json_t *json, td_shape *shape, int64_t *batch, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    const json_t *rows = json_array_get(json, 0);
    *batch = json_integer_value(rows);
    TDI_TRY(read_extents(json, 1, shape, error));
    if (json_is_null(rows) || *batch > 0)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "%s does not begin with a batch size, or null for any",
                    tdi_keras_show(json, text));
}

static json_t *write_extents(const td_shape *shape, json_t *into)
{
    for (int i = 0; i < shape->rank; i++)
        tdi_keras_append(&into, json_integer(shape->dim[i]));
    return into;
}

json_t *tdi_keras_batch_shape(const td_shape *sample, int64_t batch)
{
    return write_extents(sample, batch ? json_pack("[I]", (json_int_t)batch) : json_pack("[n]"));
}

/* ---- reading a field ---- */

static td_status unknown_value(const json_t *value, const char *known, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    return tdi_fail(error, TD_UNSUPPORTED, "is %s; %s", tdi_keras_show(value, text), known);
}

static td_status wrong_value(const json_t *value, const char *wanted, tdi_error *error)
{
    char text[TDI_KERAS_TEXT];
    return tdi_fail(error, TD_BAD_FILE, "is %s where %s is needed", tdi_keras_show(value, text), wanted);
}

static td_status read_int(const json_t *value, int64_t lowest, int64_t highest, int64_t *number, tdi_error *error)
{
    char wanted[64];
    *number = json_integer_value(value);
    if (json_is_integer(value) && *number >= lowest && *number <= highest)
        return TD_OK;
    snprintf(wanted, sizeof wanted, "an integer from %lld to %lld", (long long)lowest, (long long)highest);
    return wrong_value(value, wanted, error);
}

static td_status read_float(const json_t *value, float *number, tdi_error *error)
{
    *number = (float)json_number_value(value);
    if (!json_is_number(value) || !isfinite(*number))
        return wrong_value(value, "a number", error);
    return TD_OK;
}

static td_status read_size(const json_t *value, td_size *size, tdi_error *error)
{
    const json_t *height = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_t *width = json_is_array(value) ? json_array_get(value, 1) : value;
    int64_t numbers[2];
    if (json_is_array(value) && json_array_size(value) != 2)
        return wrong_value(value, "[height, width]", error);
    TDI_TRY(read_int(height, 1, INT32_MAX, &numbers[0], error));
    TDI_TRY(read_int(width, 1, INT32_MAX, &numbers[1], error));
    *size = (td_size){(int)numbers[0], (int)numbers[1]};
    return TD_OK;
}

/* The two numbers of [before, after], or one for both. */
static td_status read_pair(const json_t *value, int *before, int *after, tdi_error *error)
{
    int64_t numbers[2];
    if (json_is_array(value) && json_array_size(value) != 2)
        return wrong_value(value, "[[top, bottom], [left, right]]", error);
    for (size_t i = 0; i < 2; i++)
        TDI_TRY(read_int(json_is_array(value) ? json_array_get(value, i) : value, 0, INT32_MAX, &numbers[i], error));
    *before = (int)numbers[0];
    *after = (int)numbers[1];
    return TD_OK;
}

static td_status read_sides(const json_t *value, td_sides *sides, tdi_error *error)
{
    bool apart = json_is_array(value);
    if (apart && json_array_size(value) != 2)
        return wrong_value(value, "[[top, bottom], [left, right]]", error);
    TDI_TRY(read_pair(apart ? json_array_get(value, 0) : value, &sides->top, &sides->bottom, error));
    return read_pair(apart ? json_array_get(value, 1) : value, &sides->left, &sides->right, error);
}

const char *tdi_keras_name_of(const json_t *value, const json_t **config)
{
    const char *class_name = tdi_keras_text(value, "class_name");
    *config = NULL;
    if (json_is_string(value))
        return json_string_value(value);
    if (class_name && strcmp(class_name, "function") == 0)
        return tdi_keras_text(value, "config");
    *config = json_object_get(value, "config");
    return class_name;
}

static td_status unknown_activation(const json_t *value, tdi_error *error)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; i < TD_ACTIVATION_COUNT; i++)
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     i ? ", " : "Tandem has these: ", tdi_activation_name(i));
    return unknown_value(value, known, error);
}

static td_status read_activation(const json_t *value, td_activation *activation, tdi_error *error)
{
    const json_t *config;
    const char *name = tdi_keras_name_of(value, &config);
    int known = json_is_null(value) ? TD_LINEAR : name ? tdi_activation_parse(name) : -1;
    if (known < 0)
        return unknown_activation(value, error);
    *activation = known == TD_LINEAR ? TD_NO_ACTIVATION : (td_activation)known;
    return TD_OK;
}

/* Keras accepts a word in capitals too. */
static td_status read_word(const tdi_field *field, const json_t *value, unsigned *number, tdi_error *error)
{
    const char *name = json_is_null(value) ? "null" : json_string_value(value);
    size_t length = name ? strlen(name) : 0;
    unsigned at = 0;
    for (const char *word = field->text; *word && name; word += *word == '|', at++) {
        size_t size = strcspn(word, "|");
        if (size == length && strncasecmp(word, name, size) == 0) {
            *number = at;
            return TD_OK;
        }
        word += size;
    }
    return wrong_value(value, field->text, error);
}

static td_status read_padding(const json_t *value, td_padding *padding, tdi_error *error)
{
    const char *name = json_string_value(value);
    if (!name || (strcmp(name, "valid") != 0 && strcmp(name, "same") != 0))
        return unknown_value(value, "Tandem knows \"valid\" and \"same\"", error);
    *padding = name[0] == 'v' ? TD_VALID : TD_SAME;
    return TD_OK;
}

static td_status read_interpolation(const json_t *value, td_interpolation *interpolation, tdi_error *error)
{
    const char *name = json_string_value(value);
    if (!name || (strcmp(name, "nearest") != 0 && strcmp(name, "bilinear") != 0))
        return unknown_value(value, "Tandem knows \"nearest\" and \"bilinear\"", error);
    *interpolation = name[0] == 'n' ? TD_NEAREST : TD_BILINEAR;
    return TD_OK;
}

/* A seed may be an integer, null, or a SeedGenerator that holds one. */
static int64_t read_seed(const json_t *value)
{
    if (json_is_object(value))
        value = json_object_get(json_object_get(value, "config"), "seed");
    return json_integer_value(value);
}

static td_status read_member(const json_t *config, const char *key, float *number, tdi_error *error)
{
    const json_t *value = json_object_get(config, key);
    if (!value || read_float(value, number, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "its \"%s\"", key);
    return error ? error->status : TD_BAD_FILE;
}

/* The position of `name` in a list; -1 when it is not there, 0 for NULL. */
static int position(const char *name, int count, const char *const *list)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(list[i], name) == 0)
            return i;
    return name ? -1 : 0;
}

static const char *const modes[] = {"fan_in", "fan_out", "fan_avg"};
static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform"};

/* The names of a kind's two numbers. */
static void number_names(td_initializer_kind kind, const char *keys[2])
{
    keys[0] = keys[1] = NULL;
    switch (kind) {
    case TD_CONSTANT:
        keys[0] = "value";
        break;
    case TD_RANDOM_UNIFORM:
        keys[0] = "minval";
        keys[1] = "maxval";
        break;
    case TD_RANDOM_NORMAL:
    case TD_TRUNCATED_NORMAL:
        keys[0] = "mean";
        keys[1] = "stddev";
        break;
    case TD_VARIANCE_SCALING:
        keys[0] = "scale";
        break;
    case TD_ORTHOGONAL:
    case TD_IDENTITY:
        keys[0] = "gain";
        break;
    default:
        break;
    }
}

static td_status read_initializer(const json_t *value, td_initializer *initializer, tdi_error *error)
{
    const json_t *config;
    const char *keys[2], *name = tdi_keras_name_of(value, &config);
    int kind = name ? tdi_initializer_parse(name) : -1;
    if (kind < 0)
        return unknown_value(value, "Tandem does not know this initializer", error);
    *initializer =
        (td_initializer){.kind = (td_initializer_kind)kind, .seed = read_seed(json_object_get(config, "seed"))};
    number_names(initializer->kind, keys);
    if (keys[0])
        TDI_TRY(read_member(config, keys[0], &initializer->a, error));
    if (keys[1])
        TDI_TRY(read_member(config, keys[1], &initializer->b, error));
    int mode = position(tdi_keras_text(config, "mode"), 3, modes);
    const char *drawn = tdi_keras_text(config, "distribution");
    int distribution = drawn && strcmp(drawn, "normal") == 0 ? 0 : position(drawn, 3, distributions); /* Keras 2.2 */
    if (mode < 0 || distribution < 0)
        return unknown_value(value, "Tandem does not know its mode or distribution", error);
    initializer->mode = (td_fan_mode)mode;
    initializer->distribution = (td_distribution)distribution;
    return TD_OK;
}

static td_status read_regularizer(const json_t *value, td_regularizer *regularizer, tdi_error *error)
{
    static const char *const known[] = {"L1", "l1", "L2", "l2", "L1L2", "l1_l2"};
    const json_t *config;
    const char *name = tdi_keras_name_of(value, &config);
    *regularizer = (td_regularizer){0};
    if (json_is_null(value))
        return TD_OK;
    int kind = name ? position(name, 6, known) : -1;
    if (kind < 0)
        return unknown_value(value, "Tandem knows the regularizers L1, L2 and L1L2", error);
    if (kind / 2 != 1 && !json_object_get(config, "l1"))
        regularizer->l1 = 0.01f;
    if (kind / 2 != 0 && !json_object_get(config, "l2"))
        regularizer->l2 = 0.01f;
    if (kind / 2 != 1)
        TDI_TRY(read_member(config, "l1", &regularizer->l1, error));
    if (kind / 2 != 0)
        TDI_TRY(read_member(config, "l2", &regularizer->l2, error));
    return TD_OK;
}

static td_status check_fixed(const json_t *value, const char *text, tdi_error *error)
{
    char known[TDI_KERAS_TEXT];
    json_t *only = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!only)
        return tdi_no_memory(error);
    bool same = json_is_number(only) && json_is_number(value) ? json_number_value(only) == json_number_value(value)
                                                              : json_equal(only, value);
    json_decref(only);
    snprintf(known, sizeof known, "Tandem knows %s only", text);
    return same ? TD_OK : unknown_value(value, known, error);
}

static td_status read_whole_number(const tdi_field *field, const json_t *value, void *to, tdi_error *error)
{
    int64_t number;
    bool is_small = field->kind == TDI_FIELD_INT;
    if (strcmp(field->key, "axis") == 0 && json_array_size(value) == 1) /* BatchNormalization's, of Keras 2 */
        value = json_array_get(value, 0);
    TDI_TRY(read_int(value, is_small ? INT32_MIN : INT64_MIN, is_small ? INT32_MAX : INT64_MAX, &number, error));
    if (number == 0 && tdi_field_zero_is_default(field))
        return unknown_value(value, "Tandem cannot do that", error);
    if (is_small)
        *(int *)to = (int)number;
    else
        *(int64_t *)to = number;
    return TD_OK;
}

static td_status read_real(const tdi_field *field, const json_t *value, float *to, tdi_error *error)
{
    if (field->kind == TDI_FIELD_NULLABLE && json_is_null(value)) {
        *to = 0;
        return TD_OK;
    }
    TDI_TRY(read_float(value, to, error));
    bool no_maximum = strcmp(field->key, "max_value") == 0; /* where 0 means none */
    if (*to == 0 && (no_maximum || tdi_field_zero_is_default(field)))
        return unknown_value(value, "Tandem cannot do that", error);
    return TD_OK;
}

static td_status read_count(const json_t *value, int *to, tdi_error *error)
{
    int64_t number = 0;
    if (!json_is_null(value) && (read_int(value, 0, INT32_MAX, &number, NULL) != TD_OK))
        return wrong_value(value, "null or an integer not below 0", error);
    *to = (int)number;
    return TD_OK;
}

static td_status read_optional(const tdi_field *field, const json_t *value, td_optional *to, tdi_error *error)
{
    to->is_set = field->kind == TDI_FIELD_OPTIONAL || !json_is_null(value);
    return to->is_set ? read_float(value, &to->value, error) : TD_OK;
}

static td_status read_class(const json_t *value, td_optional *to, tdi_error *error)
{
    int64_t number = 0;
    if (!json_is_null(value) && read_int(value, -TDI_MOST_LABEL, TDI_MOST_LABEL, &number, NULL) != TD_OK)
        return wrong_value(value, "null or a class number", error);
    *to = (td_optional){!json_is_null(value), (float)number};
    return TD_OK;
}

static td_status read_choice(const json_t *value, td_choice *choice, tdi_error *error)
{
    if (!json_is_boolean(value))
        return wrong_value(value, "true or false", error);
    *choice = json_is_true(value) ? TD_YES : TD_NO;
    return TD_OK;
}

/* An input's shape is the only one with a batch in front, whose size keras_model.c reads and writes. */
static bool has_batch(const tdi_field *field)
{
    return strcmp(field->key, "batch_shape") == 0;
}

static td_status read_field(const tdi_field *field, const json_t *value, void *to, tdi_error *error)
{
    switch (field->kind) {
    case TDI_FIELD_INT:
    case TDI_FIELD_INT64:
        return read_whole_number(field, value, to, error);
    case TDI_FIELD_FLOAT:
    case TDI_FIELD_NULLABLE:
        return read_real(field, value, to, error);
    case TDI_FIELD_OPTIONAL:
    case TDI_FIELD_IF_SET:
        return read_optional(field, value, to, error);
    case TDI_FIELD_COUNT:
        return read_count(value, to, error);
    case TDI_FIELD_CLASS:
        return read_class(value, to, error);
    case TDI_FIELD_CHOICE:
        return read_choice(value, to, error);
    case TDI_FIELD_SIZE:
        return read_size(value, to, error);
    case TDI_FIELD_SIDES:
        return read_sides(value, to, error);
    case TDI_FIELD_SHAPE:
        return read_extents(value, has_batch(field) ? 1 : 0, to, error);
    case TDI_FIELD_ACTIVATION:
        return read_activation(value, to, error);
    case TDI_FIELD_PADDING:
        return read_padding(value, to, error);
    case TDI_FIELD_INTERPOLATION:
        return read_interpolation(value, to, error);
    case TDI_FIELD_WORD:
        return read_word(field, value, to, error);
    case TDI_FIELD_INITIALIZER:
        return read_initializer(value, to, error);
    case TDI_FIELD_REGULARIZER:
        return read_regularizer(value, to, error);
    case TDI_FIELD_SEED:
        *(int64_t *)to = read_seed(value);
        return TD_OK;
    case TDI_FIELD_IGNORED:
        return TD_OK;
    default:
        return check_fixed(value, field->text, error);
    }
}

/* ---- reading all fields ---- */

static bool is_field(const tdi_field *fields, const char *key)
{
    for (; fields->kind != TDI_FIELD_END; fields++)
        if (strcmp(fields->key, key) == 0)
            return true;
    return false;
}

static bool is_listed(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

/* Is the value empty? A property of a newer Keras does no harm while it is. */
static td_status check_unknown_keys(const tdi_field *fields, const json_t *config, const char *const *others,
                                    tdi_error *error)
{
    const char *key;
    json_t *value;
    char text[TDI_KERAS_TEXT];
    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        if (!is_field(fields, key) && !is_listed(others, key) && !json_is_null(value) && !json_is_false(value))
            return tdi_fail(error, TD_UNSUPPORTED, "property \"%.64s\" is %s; Tandem does not know it", key,
                            tdi_keras_show(value, text));
    }
    return TD_OK;
}

td_status tdi_keras_read_fields(const tdi_field *fields, const json_t *config, const char *const *others, void *args,
                                tdi_error *error)
{
    tdi_error local = {0};
    TDI_TRY(check_unknown_keys(fields, config, others, error));
    for (const tdi_field *field = fields; field->kind != TDI_FIELD_END; field++) {
        const json_t *value = json_object_get(config, field->key);
        if (value && read_field(field, value, (char *)args + field->offset, &local) != TD_OK)
            return tdi_fail(error, local.status, "property \"%s\" %s", field->key, local.message);
    }
    return TD_OK;
}

/* ---- writing ---- */

static json_t *write_seed(int64_t seed)
{
    return seed ? json_integer(seed) : json_null();
}

static bool is_random(td_initializer_kind kind)
{
    return kind != TD_ZEROS && kind != TD_ONES && kind != TD_CONSTANT && kind != TD_IDENTITY;
}

static json_t *write_initializer(const td_initializer *initializer)
{
    const char *keys[2];
    json_t *config = json_object();
    number_names(initializer->kind, keys);
    if (keys[0])
        tdi_keras_put(&config, keys[0], tdi_keras_float(initializer->a));
    if (keys[1])
        tdi_keras_put(&config, keys[1], tdi_keras_float(initializer->b));
    if (initializer->kind == TD_VARIANCE_SCALING) {
        tdi_keras_put(&config, "mode", json_string(modes[initializer->mode]));
        tdi_keras_put(&config, "distribution", json_string(distributions[initializer->distribution]));
    }
    if (is_random(initializer->kind))
        tdi_keras_put(&config, "seed", write_seed(initializer->seed));
    return tdi_keras_object("keras.initializers", tdi_initializer_class(initializer->kind), config);
}

static json_t *write_regularizer(const td_regularizer *regularizer)
{
    float l1 = regularizer->l1, l2 = regularizer->l2;
    if (l1 == 0 && l2 == 0)
        return json_null();
    json_t *config = json_object();
    if (l1 != 0)
        tdi_keras_put(&config, "l1", tdi_keras_float(l1));
    if (l2 != 0)
        tdi_keras_put(&config, "l2", tdi_keras_float(l2));
    return tdi_keras_object("keras.regularizers", l1 == 0 ? "L2" : l2 == 0 ? "L1" : "L1L2", config);
}

static json_t *write_nullable(float value)
{
    return value == 0 ? json_null() : tdi_keras_float(value);
}

static json_t *write_count(int count)
{
    return count == 0 ? json_null() : json_integer(count);
}

static json_t *write_class(const td_optional *number)
{
    return number->is_set ? json_integer((json_int_t)number->value) : json_null();
}

static json_t *write_shape(const tdi_field *field, const td_shape *shape)
{
    return has_batch(field) ? tdi_keras_batch_shape(shape, 0) : write_extents(shape, json_array());
}

static json_t *write_word(const tdi_field *field, unsigned number)
{
    const char *word = field->text;
    for (; number; number--)
        word = strchr(word, '|') + 1;
    size_t size = strcspn(word, "|");
    return strncmp(word, "null", size) == 0 ? json_null() : json_stringn(word, size);
}

static json_t *write_field(const tdi_field *field, const void *from)
{
    const td_size *size = from;
    const td_sides *sides = from;
    switch (field->kind) {
    case TDI_FIELD_INT:
        return json_integer(*(const int *)from);
    case TDI_FIELD_INT64:
        return json_integer(*(const int64_t *)from);
    case TDI_FIELD_FLOAT:
        return tdi_keras_float(*(const float *)from);
    case TDI_FIELD_NULLABLE:
        return write_nullable(*(const float *)from);
    case TDI_FIELD_OPTIONAL:
        return tdi_keras_float(((const td_optional *)from)->value);
    case TDI_FIELD_IF_SET:
        return ((const td_optional *)from)->is_set ? tdi_keras_float(((const td_optional *)from)->value) : json_null();
    case TDI_FIELD_COUNT:
        return write_count(*(const int *)from);
    case TDI_FIELD_CLASS:
        return write_class(from);
    case TDI_FIELD_CHOICE:
        return json_boolean(*(const td_choice *)from == TD_YES);
    case TDI_FIELD_SIZE:
        return json_pack("[i, i]", size->height, size->width);
    case TDI_FIELD_SIDES:
        return json_pack("[[i, i], [i, i]]", sides->top, sides->bottom, sides->left, sides->right);
    case TDI_FIELD_SHAPE:
        return write_shape(field, from);
    case TDI_FIELD_ACTIVATION:
        return json_string(tdi_activation_name((int)*(const td_activation *)from));
    case TDI_FIELD_INTERPOLATION:
        return json_string(*(const td_interpolation *)from == TD_BILINEAR ? "bilinear" : "nearest");
    case TDI_FIELD_WORD:
        return write_word(field, *(const unsigned *)from);
    case TDI_FIELD_PADDING:
        return json_string(*(const td_padding *)from == TD_SAME ? "same" : "valid");
    case TDI_FIELD_INITIALIZER:
        return write_initializer(from);
    case TDI_FIELD_REGULARIZER:
        return write_regularizer(from);
    case TDI_FIELD_SEED:
        return write_seed(*(const int64_t *)from);
    default:
        return json_loads(field->text, JSON_DECODE_ANY, NULL);
    }
}

/* A fixed property that older versions of Keras do not know is left out, since its absence means the same to all. */
void tdi_keras_write_fields(const tdi_field *fields, const void *args, json_t **config)
{
    for (; fields->kind != TDI_FIELD_END; fields++)
        if (!fields->since && fields->kind != TDI_FIELD_IGNORED)
            tdi_keras_put(config, fields->key, write_field(fields, (const char *)args + fields->offset));
}
