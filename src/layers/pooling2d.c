/* pooling2d.c - MaxPooling2D and AveragePooling2D, [batch, height, width, channels] -> [batch, out_height, out_width,
 * channels]. They differ in one op. */
#include "layers/sliding_windows.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(SIZE, td_pooling2d_args, pool, "pool_size", 2),
    TDI_FIELD(PADDING, td_pooling2d_args, padding, "padding", 0),
    TDI_FIELD(SIZE, td_pooling2d_args, strides, "strides", 0), /* default: the pool's size (apply); files always have it
                                                                */
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_pooling2d_args *args = layer->args;
    (void)n_in;
    TDI_TRY(tdi_size_check("pool_size", args->pool, error));
    TDI_TRY(tdi_size_check("strides", args->strides, error));
    TDI_TRY(tdi_padding_check(args->padding, error));
    TDI_TRY(tdi_image_check(&in[0], error));
    tdi_windows windows = {args->pool, args->strides, {1, 1}, args->padding};
    return tdi_windows_infer(&windows, "pool", &in[0], out, error);
}

static tdi_pool2d_attrs attributes(const tdi_layer *layer)
{
    const td_pooling2d_args *args = layer->args;
    return (tdi_pool2d_attrs){
        .pool_h = args->pool.height,
        .pool_w = args->pool.width,
        .stride_h = args->strides.height,
        .stride_w = args->strides.width,
        .padding = args->padding,
    };
}

static tdi_node *emit_max(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    tdi_pool2d_attrs attrs = attributes(layer);
    (void)n_in;
    return tdi_max_pool2d(emit->graph, in[0], &attrs);
}

static tdi_node *emit_average(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    tdi_pool2d_attrs attrs = attributes(layer);
    (void)n_in;
    return tdi_average_pool2d(emit->graph, in[0], &attrs);
}

const tdi_layer_type tdi_layer_type_max_pooling2d = {
    .class_name = "MaxPooling2D",
    .base_name = "max_pooling2d",
    .args_size = sizeof(td_pooling2d_args),
    .fields = fields,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .emit = emit_max,
};

const tdi_layer_type tdi_layer_type_average_pooling2d = {
    .class_name = "AveragePooling2D",
    .base_name = "average_pooling2d",
    .args_size = sizeof(td_pooling2d_args),
    .fields = fields,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .emit = emit_average,
};

static int first_not_zero(int a, int b, int c)
{
    return a ? a : b ? b : c;
}

static td_tensor *apply(const tdi_layer_type *type, const char *function, const td_pooling2d_args *args)
{
    td_pooling2d_args own = *args;
    own.pool.height = first_not_zero(own.pool.height, own.pool_size, 2);
    own.pool.width = first_not_zero(own.pool.width, own.pool_size, 2);
    own.strides.height = first_not_zero(own.strides.height, own.pool.height, 0);
    own.strides.width = first_not_zero(own.strides.width, own.pool.width, 0);
    return tdi_layer_apply(tdi_tensors_context(1, &args->x), type, &own,
                           &(tdi_layer_use){function, args->at, args->guard, args->name, args->trainable, 1, &args->x});
}

td_tensor *td_max_pooling2d_(const td_pooling2d_args *args)
{
    return apply(&tdi_layer_type_max_pooling2d, "td_max_pooling2d", args);
}

td_tensor *td_average_pooling2d_(const td_pooling2d_args *args)
{
    return apply(&tdi_layer_type_average_pooling2d, "td_average_pooling2d", args);
}
