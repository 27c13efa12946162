/* field_table.c - defaults, resolved by a table of fields; the names of enumerators. */
#include "layers/field_table.h"

#include <string.h>

#include "ops/ops.h"

/* Keras accepts a class name and its snake-case form. */
static const struct {
    const char *class_name, *snake_name;
} initializer_names[TD_INITIALIZER_COUNT] = {
    [TD_ZEROS] = {"Zeros", "zeros"},
    [TD_ONES] = {"Ones", "ones"},
    [TD_CONSTANT] = {"Constant", "constant"},
    [TD_RANDOM_UNIFORM] = {"RandomUniform", "random_uniform"},
    [TD_RANDOM_NORMAL] = {"RandomNormal", "random_normal"},
    [TD_TRUNCATED_NORMAL] = {"TruncatedNormal", "truncated_normal"},
    [TD_GLOROT_UNIFORM] = {"GlorotUniform", "glorot_uniform"},
    [TD_GLOROT_NORMAL] = {"GlorotNormal", "glorot_normal"},
    [TD_HE_UNIFORM] = {"HeUniform", "he_uniform"},
    [TD_HE_NORMAL] = {"HeNormal", "he_normal"},
    [TD_LECUN_UNIFORM] = {"LecunUniform", "lecun_uniform"},
    [TD_LECUN_NORMAL] = {"LecunNormal", "lecun_normal"},
    [TD_VARIANCE_SCALING] = {"VarianceScaling", "variance_scaling"},
    [TD_ORTHOGONAL] = {"Orthogonal", "orthogonal"},
    [TD_IDENTITY] = {"Identity", "identity"},
};

int tdi_activation_parse(const char *name)
{
    for (int i = 0; i < TD_ACTIVATION_COUNT; i++)
        if (strcmp(name, tdi_unary_name(i)) == 0)
            return i;
    if (strcmp(name, "swish") == 0)
        return TD_SILU;
    if (strcmp(name, "hard_swish") == 0)
        return TD_HARD_SILU;
    return -1;
}

const char *tdi_activation_name(int activation)
{
    return activation >= 0 && activation < TD_ACTIVATION_COUNT ? tdi_unary_name(activation) : NULL;
}

int tdi_initializer_parse(const char *class_name)
{
    static const struct {
        const char *name;
        td_initializer_kind kind;
    } aliases[] = {{"zero", TD_ZEROS},
                   {"one", TD_ONES},
                   {"normal", TD_RANDOM_NORMAL},
                   {"uniform", TD_RANDOM_UNIFORM},
                   {"OrthogonalInitializer", TD_ORTHOGONAL},
                   {"IdentityInitializer", TD_IDENTITY}};
    for (int i = TD_ZEROS; i < TD_INITIALIZER_COUNT; i++)
        if (strcmp(class_name, initializer_names[i].class_name) == 0 ||
            strcmp(class_name, initializer_names[i].snake_name) == 0)
            return i;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(class_name, aliases[i].name) == 0)
            return (int)aliases[i].kind;
    return -1;
}

const char *tdi_initializer_class(td_initializer_kind kind)
{
    return kind > TD_INIT_DEFAULT && kind < TD_INITIALIZER_COUNT ? initializer_names[kind].class_name : NULL;
}

/* Sets Keras's default numbers where the initializer's own are all zero. */
static void initializer_resolve(td_initializer *initializer, const char *default_class)
{
    if (initializer->kind == TD_INIT_DEFAULT)
        initializer->kind = (td_initializer_kind)tdi_initializer_parse(default_class);
    switch (initializer->kind) {
    case TD_RANDOM_UNIFORM:
        if (initializer->a == 0 && initializer->b == 0) {
            initializer->a = -0.05f;
            initializer->b = 0.05f;
        }
        break;
    case TD_RANDOM_NORMAL:
    case TD_TRUNCATED_NORMAL:
        if (initializer->b == 0)
            initializer->b = 0.05f;
        break;
    case TD_VARIANCE_SCALING:
    case TD_ORTHOGONAL:
    case TD_IDENTITY:
        if (initializer->a == 0)
            initializer->a = 1;
        break;
    default:
        break;
    }
}

static void size_resolve(td_size *size, int number)
{
    if (size->height == 0)
        size->height = number;
    if (size->width == 0)
        size->width = number;
}

static void optional_resolve(td_optional *optional, double number)
{
    if (!optional->is_set)
        *optional = (td_optional){1, (float)number};
}

static void activation_resolve(td_activation *activation, td_activation number)
{
    if (*activation == TD_LINEAR)
        *activation = number;
    else if (*activation == TD_NO_ACTIVATION)
        *activation = TD_LINEAR;
}

static void field_resolve(const tdi_field *field, void *value)
{
    switch (field->kind) {
    case TDI_FIELD_INT:
        if (*(int *)value == 0)
            *(int *)value = (int)field->number;
        break;
    case TDI_FIELD_INT64:
        if (*(int64_t *)value == 0)
            *(int64_t *)value = (int64_t)field->number;
        break;
    case TDI_FIELD_FLOAT:
        if (*(float *)value == 0)
            *(float *)value = (float)field->number;
        break;
    case TDI_FIELD_OPTIONAL:
        optional_resolve(value, field->number);
        break;
    case TDI_FIELD_CHOICE:
        if (*(td_choice *)value == TD_DEFAULT)
            *(td_choice *)value = field->number != 0 ? TD_YES : TD_NO;
        break;
    case TDI_FIELD_SIZE:
        size_resolve(value, (int)field->number);
        break;
    case TDI_FIELD_ACTIVATION:
        activation_resolve(value, (td_activation)field->number);
        break;
    case TDI_FIELD_INITIALIZER:
        initializer_resolve(value, field->text);
        break;
    default: /* zero is a value like any other */
        break;
    }
}

void tdi_fields_resolve(const tdi_field *fields, void *args)
{
    for (; fields->kind != TDI_FIELD_END; fields++)
        field_resolve(fields, (char *)args + fields->offset);
}

bool tdi_field_zero_is_default(const tdi_field *field)
{
    switch (field->kind) {
    case TDI_FIELD_INT:
    case TDI_FIELD_INT64:
    case TDI_FIELD_FLOAT:
    case TDI_FIELD_SIZE:
        return field->number != 0;
    default:
        return false;
    }
}
