/* reshape.c - Reshape: [batch, ...] -> [batch, target_shape...]; one extent may be -1, what is left. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(SHAPE, td_reshape_args, target_shape, "target_shape", 0),
    {0},
};

/* The product of the known extents, 0 beyond `limit`, and the position of the -1 (-1: there is none). */
static td_status read_target(const td_shape *target, int64_t limit, int64_t *known, int *open_axis, tdi_error *error)
{
    *known = 1;
    *open_axis = -1;
    for (int i = 0; i < target->rank; i++) {
        int64_t extent = target->dim[i];
        if (extent == 0 || extent < -1 || (extent == -1 && *open_axis >= 0))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "axis %d of its target_shape is %lld: extents are at least 1, and one may be -1", i + 1,
                            (long long)extent);
        if (extent == -1)
            *open_axis = i;
        else
            *known = extent > limit || *known > limit / extent ? 0 : *known * extent;
    }
    return TD_OK;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_reshape_args *args = layer->args;
    const td_shape *target = &args->target_shape;
    char seen[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    int64_t elements = tdi_shape_elements(&in[0]), known;
    int open_axis;
    (void)n_in;
    if (target->rank < 1 || target->rank > TD_MAX_RANK - 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "its target_shape has %d axes: 1 to %d are possible", target->rank,
                        TD_MAX_RANK - 1);
    TDI_TRY(read_target(target, elements, &known, &open_axis, error));
    if (known == 0 || (open_axis < 0 ? known != elements : elements % known != 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the %lld elements of its input %s cannot be laid out as %s",
                        (long long)elements, tdi_sample_text(&in[0], seen), tdi_shape_text(target, wanted));
    *out = *target;
    if (open_axis >= 0)
        out->dim[open_axis] = elements / known;
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_reshape_args *args = layer->args;
    td_shape shape = {.rank = args->target_shape.rank + 1, .dim = {TDI_BATCH}};
    int64_t known = 1;
    (void)n_in;
    if (!in[0])
        return NULL;
    for (int i = 0; i < args->target_shape.rank; i++)
        if (args->target_shape.dim[i] > 0)
            known *= args->target_shape.dim[i];
    for (int i = 0; i < args->target_shape.rank; i++)
        shape.dim[i + 1] =
            args->target_shape.dim[i] > 0 ? args->target_shape.dim[i] : tdi_shape_per_row(&in[0]->shape) / known;
    return tdi_reshape(emit->graph, in[0], &shape);
}

const tdi_layer_type tdi_layer_type_reshape = {
    .class_name = "Reshape",
    .base_name = "reshape",
    .args_size = sizeof(td_reshape_args),
    .fields = fields,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .emit = emit,
};

td_tensor *td_reshape_(const td_reshape_args *args)
{
    return tdi_layer_apply(tdi_tensors_context(1, &args->x), &tdi_layer_type_reshape, args,
                           &(tdi_layer_use){"td_reshape", args->at, args->guard, args->name, args->trainable, 1, &args->x});
}
