/* op_helpers.c - checks of inputs, index arithmetic, the usual `reads` rules. */
#include "ops/op_helpers.h"

static const td_shape *shape_of(const tdi_node *node, int i)
{
    return &node->in[i]->shape;
}

td_status tdi_want_dtype(const tdi_node *node, int i, td_dtype dtype, tdi_error *error)
{
    if (node->in[i]->dtype == dtype)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "input %d is %s %s, %s is needed: cast it first", i,
                    td_dtype_name(node->in[i]->dtype), TDI_TEXT(shape_of(node, i)), td_dtype_name(dtype));
}

static bool may_be_bfloat16(const tdi_node *node, int i)
{
    return node->in[i] && tdi_may_be_bfloat16(node->op, i);
}

td_dtype tdi_float_dtype(const tdi_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (may_be_bfloat16(node, i) && node->in[i]->dtype == TD_BFLOAT16)
            return TD_BFLOAT16;
    return TD_FLOAT32;
}

td_status tdi_want_floats(const tdi_node *node, tdi_error *error)
{
    td_dtype dtype = tdi_float_dtype(node);
    for (int i = 0; i < node->n_in; i++) {
        bool narrow = dtype == TD_BFLOAT16 && may_be_bfloat16(node, i);
        if (node->in[i] && (!narrow || !node->op->multiplies || node->in[i]->dtype != TD_BFLOAT16))
            TDI_TRY(tdi_want_dtype(node, i, narrow && !node->op->multiplies ? dtype : TD_FLOAT32, error));
    }
    return TD_OK;
}

td_status tdi_want_rank(const tdi_node *node, int i, int rank, tdi_error *error)
{
    if (shape_of(node, i)->rank == rank)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "input %d is %s, which has %d axes; %d are needed", i,
                    TDI_TEXT(shape_of(node, i)), shape_of(node, i)->rank, rank);
}

td_status tdi_want_shape(const tdi_node *node, int i, const td_shape *shape, tdi_error *error)
{
    if (tdi_shape_equal(shape_of(node, i), shape))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "input %d is %s, but input 0, %s, asks for %s", i,
                    TDI_TEXT(shape_of(node, i)), TDI_TEXT(shape_of(node, 0)), TDI_TEXT(shape));
}

td_status tdi_want_vector(const tdi_node *node, int i, int64_t n, tdi_error *error)
{
    td_shape shape = {.rank = 1, .dim = {n}};
    return tdi_want_shape(node, i, &shape, error);
}

td_status tdi_want_last_axis(const tdi_node *node, int i, tdi_error *error)
{
    const td_shape *shape = shape_of(node, i);
    if (shape->rank && shape->dim[shape->rank - 1] != TDI_BATCH)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "input %d is %s, which has no last axis besides the batch to work along", i, TDI_TEXT(shape));
}

td_status tdi_want_weights(const tdi_node *node, int i, tdi_error *error)
{
    if (i >= node->n_in)
        return TD_OK;
    const td_shape *x = shape_of(node, 0), *weights = shape_of(node, i);
    td_shape first = *x;
    first.rank = weights->rank < x->rank ? weights->rank : x->rank;
    TDI_TRY(tdi_want_dtype(node, i, TD_FLOAT32, error));
    if (tdi_shape_has_batch(weights) && tdi_shape_equal(&first, weights))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "input %d is %s, which are no weights of %s", i, TDI_TEXT(weights),
                    TDI_TEXT(x));
}

td_status tdi_want_axis(const tdi_node *node, int i, int axis, tdi_error *error)
{
    const td_shape *shape = shape_of(node, i);
    if (axis >= 0 && axis < shape->rank && shape->dim[axis] != TDI_BATCH)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "axis %d of %s: it must be one of its %d axes, and not the batch", axis,
                    TDI_TEXT(shape), shape->rank);
}

/* ---- shapes and indices ---- */

int64_t tdi_last_extent(const td_shape *shape)
{
    return shape->rank ? shape->dim[shape->rank - 1] : 1;
}

int64_t tdi_outer_extent(const td_shape *shape)
{
    td_shape outer = tdi_without_last(shape);
    return tdi_shape_elements(&outer);
}

td_shape tdi_without_last(const td_shape *shape)
{
    td_shape outer = *shape;
    if (outer.rank)
        outer.dim[--outer.rank] = 0;
    return outer;
}

void tdi_strides(const td_shape *shape, int64_t stride[TD_MAX_RANK])
{
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape->dim[i];
    }
}

void tdi_broadcast_strides(const td_shape *in, const td_shape *out, int64_t stride[TD_MAX_RANK])
{
    int64_t own[TD_MAX_RANK];
    tdi_strides(in, own);
    int missing = out->rank - in->rank;
    for (int i = 0; i < out->rank; i++)
        stride[i] = i < missing || in->dim[i - missing] == 1 ? 0 : own[i - missing];
}

int64_t tdi_offset_of(const td_shape *shape, const int64_t stride[TD_MAX_RANK], int64_t flat)
{
    int64_t offset = 0;
    for (int i = shape->rank - 1; i >= 0; i--) {
        offset += flat % shape->dim[i] * stride[i];
        flat /= shape->dim[i];
    }
    return offset;
}

int64_t tdi_elements_per_weight(const tdi_call *call, int i)
{
    int64_t weights = tdi_shape_elements(&call->in[i].shape);
    return weights ? tdi_shape_elements(&call->in[0].shape) / weights : 1;
}

int64_t tdi_argmax(const float *x, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

void tdi_copy_box(const td_shape *box, size_t size, char *to, const int64_t *to_stride, const char *from,
                  const int64_t *from_stride)
{
    int64_t count = tdi_shape_elements(box);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + tdi_offset_of(box, to_stride, i) * (int64_t)size,
               from + tdi_offset_of(box, from_stride, i) * (int64_t)size, size);
}

tdi_runs tdi_call_runs(const tdi_call *call)
{
    const td_shape *shape = &call->out.shape;
    int64_t elements = tdi_shape_elements(shape), last = tdi_last_extent(shape);
    switch ((tdi_split)call->split) {
    case TDI_ROWS: {
        int64_t per_row = shape->rank && shape->dim[0] ? elements / shape->dim[0] : 1;
        return (tdi_runs){1, call->begin * per_row, 0, (call->end - call->begin) * per_row};
    }
    case TDI_COLUMNS:
        return (tdi_runs){tdi_outer_extent(shape), call->begin, last, call->end - call->begin};
    case TDI_FLAT:
        return (tdi_runs){1, call->begin, 0, call->end - call->begin};
    case TDI_WHOLE:
    case TDI_DEPTH:
        break;
    }
    return (tdi_runs){1, 0, 0, elements};
}

/* ---- reads ---- */

tdi_split tdi_reads_same(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    return split;
}

tdi_split tdi_reads_broadcast(const tdi_node *node, int i, tdi_split split)
{
    const td_shape *in = shape_of(node, i), *out = &node->shape;
    if (tdi_shape_equal(in, out))
        return split;
    if (split == TDI_ROWS && in->rank == out->rank && in->dim[0] == out->dim[0])
        return TDI_ROWS;
    if (split == TDI_COLUMNS && in->rank && tdi_last_extent(in) == tdi_last_extent(out))
        return TDI_COLUMNS;
    return TDI_WHOLE;
}

tdi_split tdi_reads_rows(const tdi_node *node, int i, tdi_split split)
{
    (void)i;
    return split == TDI_ROWS && shape_of(node, 0)->rank > 1 ? TDI_ROWS : TDI_WHOLE;
}

tdi_split tdi_reads_columns(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    return split == TDI_COLUMNS ? TDI_COLUMNS : TDI_WHOLE;
}

/* ---- numbers ---- */

static double decimal(float value)
{
    double scale = 10;
    for (int digits = 1; digits < 9; digits++, scale *= 10) {
        double rounded = round((double)value * scale) / scale;
        if ((float)rounded == value)
            return rounded;
    }
    return (double)value;
}

float tdi_one_minus(float value)
{
    return (float)(1 - decimal(value));
}

double tdi_flops_none(const tdi_call *call)
{
    (void)call;
    return 0;
}

double tdi_flops_per_input(const tdi_call *call)
{
    return (double)tdi_shape_elements(&call->in[0].shape);
}
