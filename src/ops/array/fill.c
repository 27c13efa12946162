/* fill.c - a constant: one number everywhere. */
#include "ops/op_helpers.h"

static td_status fill_infer(tdi_node *node, tdi_error *error)
{
    (void)error;
    node->shape = ((const tdi_fill_attrs *)node->attrs)->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void fill_reference(const tdi_call *call)
{
    const tdi_fill_attrs *attrs = call->attrs;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = attrs->value;
}

static void fill_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%g", (double)((const tdi_fill_attrs *)node->attrs)->value);
}

const tdi_op tdi_op_fill = {.name = "fill",
                            .attrs_size = sizeof(tdi_fill_attrs),
                            .infer = fill_infer,
                            .no_gradient = "it has no inputs",
                            .reference = fill_reference,
                            .flops = tdi_flops_none,
                            .describe = fill_describe,
                            .constant = true};

tdi_node *tdi_fill(tdi_graph *graph, float value, const td_shape *shape)
{
    return tdi_node_create(graph, &tdi_op_fill, &(tdi_fill_attrs){value, *shape}, 0, NULL);
}
