/* zero_padding2d.c - ZeroPadding2D: zeros around height and width of [batch, height, width, channels]. */
#include "layers/sliding_windows.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(SIDES, td_zero_padding2d_args, sides, "padding",
              0), /* default: args->padding on all sides; files always have it */
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_sides *sides = &((const td_zero_padding2d_args *)layer->args)->sides;
    (void)n_in;
    if (sides->top < 0 || sides->bottom < 0 || sides->left < 0 || sides->right < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "padding is %d above, %d below, %d left and %d right: none of them may be negative", sides->top,
                        sides->bottom, sides->left, sides->right);
    TDI_TRY(tdi_image_check(&in[0], error));
    *out = in[0];
    out->dim[0] += (int64_t)sides->top + sides->bottom;
    out->dim[1] += (int64_t)sides->left + sides->right;
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_sides *sides = &((const td_zero_padding2d_args *)layer->args)->sides;
    tdi_node *node = in[0];
    (void)n_in;
    if (sides->top || sides->bottom)
        node = tdi_pad(emit->graph, node, 1, sides->top, sides->bottom);
    if (sides->left || sides->right)
        node = tdi_pad(emit->graph, node, 2, sides->left, sides->right);
    return node;
}

const tdi_layer_type tdi_layer_type_zero_padding2d = {
    TDI_LAYER("ZeroPadding2D", zero_padding2d, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_zero_padding2d_(const td_zero_padding2d_args *args)
{
    td_zero_padding2d_args own = *args;
    int all = own.padding;
    if (!(own.sides.top || own.sides.bottom || own.sides.left || own.sides.right))
        own.sides = (td_sides){all, all, all, all};
    return TDI_LAYER_APPLY(zero_padding2d, &own, 1, &args->x);
}
