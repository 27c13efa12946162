/* cast.c - from one element type to another. Floats become integers by truncation towards zero. What does not fit
 * becomes the nearest end of the type's range, and NaN becomes zero. */
#include "base/bfloat16.h"
#include "ops/op_helpers.h"

static td_status cast_infer(tdi_node *node, tdi_error *error)
{
    td_dtype dtype = ((const tdi_cast_attrs *)node->attrs)->dtype;
    if (!td_dtype_size(dtype))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no element type number %d", (int)dtype);
    node->shape = node->in[0]->shape;
    node->dtype = dtype;
    return TD_OK;
}

static bool is_float(td_dtype dtype)
{
    return dtype == TD_FLOAT32 || dtype == TD_FLOAT64 || dtype == TD_BFLOAT16;
}

static void cast_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    td_dtype from = node->in[0]->dtype;
    if (is_float(from) && is_float(node->dtype))
        dx[0] = tdi_cast(graph, dy, from);
}

static bool load_integer(const tdi_value *value, int64_t i, int64_t *number)
{
    switch (value->dtype) {
    case TD_INT32:
        *number = ((const int32_t *)value->data)[i];
        return true;
    case TD_INT64:
        *number = ((const int64_t *)value->data)[i];
        return true;
    case TD_UINT8:
        *number = ((const uint8_t *)value->data)[i];
        return true;
    default:
        return false;
    }
}

static double load_float(const tdi_value *value, int64_t i)
{
    if (value->dtype == TD_BFLOAT16)
        return (double)tdi_widen(((const tdi_bfloat16 *)value->data)[i]);
    return value->dtype == TD_FLOAT32 ? (double)((const float *)value->data)[i] : ((const double *)value->data)[i];
}

static void store_float(const tdi_value *value, int64_t i, double number)
{
    if (value->dtype == TD_BFLOAT16)
        ((tdi_bfloat16 *)value->data)[i] = tdi_narrow((float)number);
    else if (value->dtype == TD_FLOAT32)
        ((float *)value->data)[i] = (float)number;
    else
        ((double *)value->data)[i] = number;
}

static int64_t truncated(double number)
{
    if (isnan(number))
        return 0;
    if (number >= 0x1p63)
        return INT64_MAX;
    return number <= -0x1p63 ? INT64_MIN : (int64_t)number;
}

static int64_t clamped(int64_t number, int64_t low, int64_t high)
{
    return number < low ? low : number > high ? high : number;
}

static void store_integer(const tdi_value *value, int64_t i, int64_t number)
{
    if (value->dtype == TD_INT32)
        ((int32_t *)value->data)[i] = (int32_t)clamped(number, INT32_MIN, INT32_MAX);
    else if (value->dtype == TD_INT64)
        ((int64_t *)value->data)[i] = number;
    else
        ((uint8_t *)value->data)[i] = (uint8_t)clamped(number, 0, UINT8_MAX);
}

static void cast_reference(const tdi_call *call)
{
    const tdi_value *from = &call->in[0], *to = &call->out;
    int64_t count = tdi_shape_elements(&to->shape), integer = 0;
    for (int64_t i = 0; i < count; i++) {
        bool whole = load_integer(from, i, &integer);
        if (is_float(to->dtype))
            store_float(to, i, whole ? (double)integer : load_float(from, i));
        else
            store_integer(to, i, whole ? integer : truncated(load_float(from, i)));
    }
}

static void cast_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "to %s", td_dtype_name(node->dtype));
}

const tdi_op tdi_op_cast = {.name = "cast",
                            .min_in = 1,
                            .max_in = 1,
                            .attrs_size = sizeof(tdi_cast_attrs),
                            .bfloat16 = 1,
                            .infer = cast_infer,
                            .gradient = cast_gradient,
                            .reference = cast_reference,
                            .reads = tdi_reads_same,
                            .describe = cast_describe,
                            .cheap = true};

tdi_node *tdi_cast(tdi_graph *graph, tdi_node *x, td_dtype dtype)
{
    return tdi_node_create(graph, &tdi_op_cast, &(tdi_cast_attrs){dtype}, 1, &x);
}
