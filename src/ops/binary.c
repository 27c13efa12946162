/* binary.c - functions of two elements; the operands are broadcast as NumPy does. */
#include "ops/op_helpers.h"

static const char *const binary_names[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum"};

static int kind_of(const void *attrs)
{
    return ((const tdi_binary_attrs *)attrs)->kind;
}

static td_status binary_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *a = &node->in[0]->shape, *b = &node->in[1]->shape;
    TDI_TRY(tdi_want_floats(node, error));
    if (kind_of(node->attrs) < TDI_ADD || kind_of(node->attrs) > TDI_MINIMUM)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no function number %d", kind_of(node->attrs));
    if (!tdi_shape_broadcast(a, b, &node->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s of %s and %s: aligned at the last axis, extents must be equal or 1",
                        binary_names[kind_of(node->attrs)], TDI_TEXT(a), TDI_TEXT(b));
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

/* 1 where a is larger, 0 where b is, and one half where they are equal. */
static tdi_node *share(tdi_graph *graph, tdi_node *a, tdi_node *b)
{
    tdi_node *sign = tdi_unary(graph, tdi_binary(graph, TDI_SUBTRACT, a, b), TDI_UNARY_SIGN);
    return tdi_affine(graph, sign, 0.5f, 0.5f);
}

static void extreme_gradient(tdi_graph *graph, tdi_node *dy, tdi_node *larger, tdi_node *smaller, tdi_node **d_larger,
                             tdi_node **d_smaller)
{
    *d_larger = tdi_binary(graph, TDI_MULTIPLY, dy, share(graph, larger, smaller));
    *d_smaller = tdi_binary(graph, TDI_MULTIPLY, dy, share(graph, smaller, larger));
}

static void binary_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    tdi_node *a = node->in[0], *b = node->in[1], *da = dy, *db = dy;
    switch ((tdi_binary_kind)kind_of(node->attrs)) {
    case TDI_ADD:
        break;
    case TDI_SUBTRACT:
        db = tdi_unary(graph, dy, TDI_UNARY_NEGATE);
        break;
    case TDI_MULTIPLY:
        da = tdi_binary(graph, TDI_MULTIPLY, dy, b);
        db = tdi_binary(graph, TDI_MULTIPLY, dy, a);
        break;
    case TDI_DIVIDE:
        da = tdi_binary(graph, TDI_DIVIDE, dy, b);
        db = tdi_unary(graph, tdi_binary(graph, TDI_MULTIPLY, da, node), TDI_UNARY_NEGATE);
        break;
    case TDI_MAXIMUM:
        extreme_gradient(graph, dy, a, b, &da, &db);
        break;
    case TDI_MINIMUM:
        extreme_gradient(graph, dy, b, a, &da, &db);
        break;
    }
    dx[0] = tdi_sum_to(graph, da, &a->shape);
    dx[1] = tdi_sum_to(graph, db, &b->shape);
}

static float binary_value(int kind, float a, float b)
{
    switch ((tdi_binary_kind)kind) {
    case TDI_ADD:
        return a + b;
    case TDI_SUBTRACT:
        return a - b;
    case TDI_MULTIPLY:
        return a * b;
    case TDI_DIVIDE:
        return a / b;
    case TDI_MAXIMUM:
        return a > b || isnan(a) ? a : b;
    case TDI_MINIMUM:
        break;
    }
    return a < b || isnan(a) ? a : b;
}

static void binary_reference(const tdi_call *call)
{
    const td_shape *shape = &call->out.shape;
    const float *a = call->in[0].data, *b = call->in[1].data;
    float *out = call->out.data;
    int64_t of_a[TD_MAX_RANK], of_b[TD_MAX_RANK], count = tdi_shape_elements(shape);
    tdi_broadcast_strides(&call->in[0].shape, shape, of_a);
    tdi_broadcast_strides(&call->in[1].shape, shape, of_b);
    for (int64_t i = 0; i < count; i++)
        out[i] = binary_value(kind_of(call->attrs), a[tdi_offset_of(shape, of_a, i)], b[tdi_offset_of(shape, of_b, i)]);
}

static void binary_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s", binary_names[kind_of(node->attrs)]);
}

const tdi_op tdi_op_binary = {.name = "binary",
                              .min_in = 2,
                              .max_in = 2,
                              .attrs_size = sizeof(tdi_binary_attrs),
                              .bfloat16 = 3,
                              .infer = binary_infer,
                              .gradient = binary_gradient,
                              .reference = binary_reference,
                              .reads = tdi_reads_broadcast,
                              .in_place = 1,
                              .describe = binary_describe,
                              .cheap = true};

tdi_node *tdi_binary(tdi_graph *graph, tdi_binary_kind kind, tdi_node *a, tdi_node *b)
{
    return tdi_node_create(graph, &tdi_op_binary, &(tdi_binary_attrs){(int)kind}, 2, (tdi_node *[]){a, b});
}
