/* concatenate.c - Concatenate: joins tensors along an axis of [batch, ...]; their other extents agree. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT, td_concatenate_args, axis, "axis", -1),
    {0},
};

/* The axis in [batch, ...]: a sample's first is 1. */
static int axis_of(const tdi_layer *layer, int sample_rank)
{
    const td_concatenate_args *args = layer->args;
    return args->axis < 0 ? args->axis + sample_rank + 1 : args->axis;
}

static bool agree_but(const td_shape *a, const td_shape *b, int axis)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != axis && a->dim[i] != b->dim[i])
            return false;
    return true;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_concatenate_args *args = layer->args;
    char first[TDI_SHAPE_TEXT], other[TDI_SHAPE_TEXT];
    int axis = axis_of(layer, in[0].rank);
    if (axis < 1 || axis > in[0].rank)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s cannot be joined along axis %d: the batch is axis 0, what can be joined is 1 to %d",
                        tdi_sample_text(&in[0], first), args->axis, in[0].rank);
    *out = in[0];
    for (int i = 1; i < n_in; i++) {
        if (!agree_but(&in[0], &in[i], axis - 1))
            return tdi_fail(
                error, TD_INVALID_ARGUMENT,
                "its inputs 1 and %d have the shapes %s and %s: all extents but those of axis %d must agree", i + 1,
                tdi_sample_text(&in[0], first), tdi_sample_text(&in[i], other), axis);
        out->dim[axis - 1] += in[i].dim[axis - 1];
    }
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    if (!in[0] || n_in == 1)
        return in[0];
    return tdi_concat(emit->graph, n_in, in, axis_of(layer, in[0]->shape.rank - 1));
}

const tdi_layer_type tdi_layer_type_concatenate = {
    TDI_LAYER("Concatenate", concatenate, 1, -1),
    .list_input = true,
    .infer = infer,
    .emit = emit,
};

td_tensor *td_concatenate_(const td_concatenate_args *args)
{
    int n_in = tdi_tensor_list_count(args->inputs);
    return TDI_LAYER_APPLY(concatenate, args, n_in, args->inputs);
}
