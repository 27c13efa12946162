/* conv2d.c - Conv2D: [batch, height, width, channels] -> [batch, out_height, out_width, filters]. */
#include "layers/sliding_windows.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT64, td_conv2d_args, filters, "filters", 0),
    TDI_FIELD(SIZE, td_conv2d_args, kernel, "kernel_size", 0),
    TDI_FIELD(SIZE, td_conv2d_args, strides, "strides", 1),
    TDI_FIELD(PADDING, td_conv2d_args, padding, "padding", 0),
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    TDI_FIELD(SIZE, td_conv2d_args, dilation, "dilation_rate", 1),
    TDI_FIELD(INT, td_conv2d_args, groups, "groups", 1),
    TDI_FIELD(ACTIVATION, td_conv2d_args, activation, "activation", 0),
    TDI_FIELD(CHOICE, td_conv2d_args, use_bias, "use_bias", 1),
    TDI_INITIALIZER_FIELD(td_conv2d_args, kernel_initializer, "kernel_initializer", "GlorotUniform"),
    TDI_INITIALIZER_FIELD(td_conv2d_args, bias_initializer, "bias_initializer", "Zeros"),
    TDI_FIELD(REGULARIZER, td_conv2d_args, kernel_regularizer, "kernel_regularizer", 0),
    TDI_FIELD(REGULARIZER, td_conv2d_args, bias_regularizer, "bias_regularizer", 0),
    TDI_FIXED_FIELD("activity_regularizer", "null"),
    TDI_FIXED_FIELD("kernel_constraint", "null"),
    TDI_FIXED_FIELD("bias_constraint", "null"),
    {0},
};

static td_status check_numbers(const td_conv2d_args *args, tdi_error *error)
{
    if (args->filters < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "filters is %lld: it must be at least 1", (long long)args->filters);
    TDI_TRY(tdi_size_check("kernel_size", args->kernel, error));
    TDI_TRY(tdi_size_check("strides", args->strides, error));
    TDI_TRY(tdi_size_check("dilation", args->dilation, error));
    if ((args->strides.height > 1 || args->strides.width > 1) &&
        (args->dilation.height > 1 || args->dilation.width > 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "strides %d x %d together with dilation %d x %d: one of the two must be 1 x 1, as in Keras",
                        args->strides.height, args->strides.width, args->dilation.height, args->dilation.width);
    if (args->groups < 1 || args->filters % args->groups)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%lld filters cannot be cut into %d groups: groups must divide them", (long long)args->filters,
                        args->groups);
    return tdi_padding_check(args->padding, error);
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_conv2d_args *args = layer->args;
    char text[TDI_SHAPE_TEXT];
    (void)n_in;
    TDI_TRY(check_numbers(args, error));
    TDI_TRY(tdi_image_check(&in[0], error));
    if (in[0].dim[2] % args->groups)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the %lld channels of its input %s cannot be cut into %d groups: groups must divide them",
                        (long long)in[0].dim[2], tdi_sample_text(&in[0], text), args->groups);
    TDI_TRY(tdi_activation_check(args->activation, &in[0], error));
    tdi_windows windows = {args->kernel, args->strides, args->dilation, args->padding};
    TDI_TRY(tdi_windows_infer(&windows, "kernel", &in[0], out, error));
    out->dim[2] = args->filters;
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_conv2d_args *args = layer->args;
    (void)n_in;
    td_shape kernel = {4, {args->kernel.height, args->kernel.width, in[0].dim[2] / args->groups, args->filters}};
    td_shape bias = {1, {args->filters}};
    TDI_TRY(
        tdi_layer_weight(layer, "kernel", &kernel, true, &args->kernel_initializer, &args->kernel_regularizer, error));
    if (args->use_bias == TD_NO)
        return TD_OK;
    return tdi_layer_weight(layer, "bias", &bias, true, &args->bias_initializer, &args->bias_regularizer, error);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_conv2d_args *args = layer->args;
    (void)n_in;
    tdi_conv2d_attrs attrs = {
        .stride_h = args->strides.height,
        .stride_w = args->strides.width,
        .dilation_h = args->dilation.height,
        .dilation_w = args->dilation.width,
        .groups = args->groups,
        .padding = args->padding,
    };
    tdi_node *y = tdi_conv2d(emit->graph, in[0], tdi_layer_parameter(emit, layer, 0), &attrs);
    if (args->use_bias == TD_YES)
        y = tdi_bias_add(emit->graph, y, tdi_layer_parameter(emit, layer, 1));
    return tdi_activation_emit(emit->graph, y, args->activation);
}

const tdi_layer_type tdi_layer_type_conv2d = {
    TDI_LAYER("Conv2D", conv2d, 1, 1), .convolves = true, .infer = infer, .build = build, .emit = emit,
};

td_tensor *td_conv2d_(const td_conv2d_args *args)
{
    td_conv2d_args own = *args;
    if (own.kernel.height == 0)
        own.kernel.height = own.kernel_size;
    if (own.kernel.width == 0)
        own.kernel.width = own.kernel_size;
    return TDI_LAYER_APPLY(conv2d, &own, 1, &args->x);
}
