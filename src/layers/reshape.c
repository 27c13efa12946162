/* reshape.c - Reshape: [batch, ...] -> [batch, target_shape...]; one extent may be -1 and is inferred. */
#include <stdio.h>

#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(SHAPE, td_reshape_args, target_shape, "target_shape", 0),
    {0},
};

static td_status check_extents(const td_shape *target, tdi_error *error)
{
    int open_axes = 0;
    if (target->rank < 1 || target->rank > TD_MAX_RANK - 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "its target_shape has %d axes: 1 to %d are possible", target->rank,
                        TD_MAX_RANK - 1);
    for (int i = 0; i < target->rank; i++) {
        int64_t extent = target->dim[i];
        open_axes += extent == -1;
        if (extent == 0 || extent < -1 || open_axes > 1)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "axis %d of its target_shape is %lld: extents are at least 1, and one of them may be -1",
                            i + 1, (long long)extent);
    }
    return TD_OK;
}

/* Sets *out to the target with its -1 inferred. False when `elements` do not fit that shape. */
static bool infer_extents(const td_shape *target, int64_t elements, td_shape *out)
{
    int64_t left = elements;
    int open_axis = -1;
    *out = *target;
    for (int i = 0; i < target->rank; i++) {
        if (target->dim[i] == -1)
            open_axis = i;
        else if (left % target->dim[i] != 0)
            return false;
        else
            left /= target->dim[i];
    }
    if (open_axis >= 0)
        out->dim[open_axis] = left;
    return open_axis >= 0 || left == 1;
}

static const char *target_text(const td_shape *target, char text[TDI_SHAPE_TEXT])
{
    int used = snprintf(text, TDI_SHAPE_TEXT, "(");
    for (int i = 0; i < target->rank && used < TDI_SHAPE_TEXT; i++)
        used +=
            snprintf(text + used, (size_t)(TDI_SHAPE_TEXT - used), "%s%lld", i ? ", " : "", (long long)target->dim[i]);
    return text;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_reshape_args *args = layer->args;
    char seen[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    int64_t elements = tdi_shape_elements(&in[0]);
    (void)n_in;
    TDI_TRY(check_extents(&args->target_shape, error));
    if (!infer_extents(&args->target_shape, elements, out))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the %lld elements a sample of its input %s cannot be laid out as target_shape %s)",
                        (long long)elements, tdi_sample_text(&in[0], seen), target_text(&args->target_shape, wanted));
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_reshape_args *args = layer->args;
    td_shape sample;
    (void)n_in;
    if (!in[0] || !infer_extents(&args->target_shape, tdi_shape_per_row(&in[0]->shape), &sample))
        return NULL;
    td_shape shape = {.rank = sample.rank + 1, .dim = {TDI_BATCH}};
    for (int i = 0; i < sample.rank; i++)
        shape.dim[i + 1] = sample.dim[i];
    return tdi_reshape(emit->graph, in[0], &shape);
}

const tdi_layer_type tdi_layer_type_reshape = {
    TDI_LAYER("Reshape", reshape, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_reshape_(const td_reshape_args *args)
{
    return TDI_LAYER_APPLY(reshape, args, 1, &args->x);
}
