/* add.c - Add: the element-wise sum of tensors of one shape. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {{0}};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    char first[TDI_SHAPE_TEXT], other[TDI_SHAPE_TEXT];
    (void)layer;
    for (int i = 1; i < n_in; i++)
        if (!tdi_shape_equal(&in[0], &in[i]))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "its inputs 1 and %d have the shapes %s and %s: what is added must have one shape", i + 1,
                            tdi_sample_text(&in[0], first), tdi_sample_text(&in[i], other));
    *out = in[0];
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    tdi_node *sum = in[0];
    (void)layer;
    for (int i = 1; i < n_in; i++)
        sum = tdi_binary(emit->graph, TDI_ADD, sum, in[i]);
    return sum;
}

const tdi_layer_type tdi_layer_type_add = {
    TDI_LAYER("Add", add, 1, -1),
    .list_input = true,
    .infer = infer,
    .emit = emit,
};

td_tensor *td_add_(const td_add_args *args)
{
    int n_in = tdi_tensor_list_count(args->inputs);
    return TDI_LAYER_APPLY(add, args, n_in, args->inputs);
}
