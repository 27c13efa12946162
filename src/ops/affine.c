/* affine.c - scale * x + shift. */
#include "ops/op_helpers.h"

static td_status affine_infer(tdi_node *node, tdi_error *error)
{
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return tdi_want_floats(node, error);
}

static void affine_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    float scale = ((const tdi_affine_attrs *)node->attrs)->scale;
    dx[0] = scale == 1.0f ? dy : tdi_affine(graph, dy, scale, 0.0f);
}

static void affine_reference(const tdi_call *call)
{
    const tdi_affine_attrs *attrs = call->attrs;
    const float *x = call->in[0].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = attrs->scale * x[i] + attrs->shift;
}

static double affine_flops(const tdi_call *call)
{
    return 2.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void affine_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_affine_attrs *attrs = node->attrs;
    snprintf(text, size, "%g x + %g", (double)attrs->scale, (double)attrs->shift);
}

const tdi_op tdi_op_affine = {.name = "affine",
                              .min_in = 1,
                              .max_in = 1,
                              .attrs_size = sizeof(tdi_affine_attrs),
                              .bfloat16 = 1,
                              .infer = affine_infer,
                              .gradient = affine_gradient,
                              .reference = affine_reference,
                              .flops = affine_flops,
                              .reads = tdi_reads_same,
                              .in_place = 1,
                              .describe = affine_describe,
                              .cheap = true};

tdi_node *tdi_affine(tdi_graph *graph, tdi_node *x, float scale, float shift)
{
    return tdi_node_create(graph, &tdi_op_affine, &(tdi_affine_attrs){scale, shift}, 1, &x);
}
