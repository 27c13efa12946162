/* copy_boxes.c - concat, slice, pad and broadcast: copies boxes in the longest runs there are. Also leave_gradient
 * where it leaves factors: copies them to where a joint update finds them. */
#include <string.h>

#include "cpu/kernels.h"
#include "ops/op_helpers.h"

/* A box of elements, strides in elements. Adjacent axes that are contiguous in both arrays are merged. */
typedef struct box {
    int rank;
    int64_t dim[TD_MAX_RANK], to[TD_MAX_RANK], from[TD_MAX_RANK];
} box;

static box merged(const td_shape *shape, const int64_t *to, const int64_t *from)
{
    box b = {0};
    for (int i = 0; i < shape->rank; i++) {
        int last = b.rank - 1;
        int64_t extent = shape->dim[i];
        if (extent == 1)
            continue;
        if (b.rank && b.to[last] == extent * to[i] && b.from[last] == extent * from[i]) {
            b.dim[last] *= extent;
            b.to[last] = to[i];
            b.from[last] = from[i];
            continue;
        }
        b.dim[b.rank] = extent;
        b.to[b.rank] = to[i];
        b.from[b.rank++] = from[i];
    }
    return b;
}

static void copy_line(int64_t n, size_t size, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    if (size == sizeof(float)) {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * 4, from + i * from_stride * 4, 4);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_stride * (int64_t)size, from + i * from_stride * (int64_t)size, size);
}

static void copy_axis(const box *b, int axis, size_t size, char *to, const char *from)
{
    if (axis >= b->rank - 1) {
        copy_line(b->rank ? b->dim[axis] : 1, size, to, b->rank ? b->to[axis] : 1, from, b->rank ? b->from[axis] : 1);
        return;
    }
    for (int64_t i = 0; i < b->dim[axis]; i++)
        copy_axis(b, axis + 1, size, to + i * b->to[axis] * (int64_t)size, from + i * b->from[axis] * (int64_t)size);
}

static void copy_box(const td_shape *shape, size_t size, char *to, const int64_t *to_stride, const char *from,
                     const int64_t *from_stride)
{
    if (tdi_shape_elements(shape) == 0)
        return;
    box b = merged(shape, to_stride, from_stride);
    copy_axis(&b, 0, size, to, from);
}

/* The rows of the result that a call makes. */
typedef struct row_range {
    int64_t begin, end;
} row_range;

static row_range rows_of(const tdi_call *call)
{
    if (call->split == TDI_ROWS)
        return (row_range){call->begin, call->end};
    return (row_range){0, call->out.shape.rank ? call->out.shape.dim[0] : 1};
}

/* Fills these rows from an array; `from` is the element that belongs to the result's first one. */
static void copy_rows(const tdi_call *call, const char *from, const int64_t *from_stride)
{
    row_range rows = rows_of(call);
    int64_t to_stride[TD_MAX_RANK], size = (int64_t)td_dtype_size(call->out.dtype);
    td_shape shape = call->out.shape;
    tdi_strides(&shape, to_stride);
    if (!shape.rank) {
        memcpy(call->out.data, from, (size_t)size);
        return;
    }
    shape.dim[0] = rows.end - rows.begin;
    copy_box(&shape, (size_t)size, (char *)call->out.data + rows.begin * to_stride[0] * size, to_stride,
             from + rows.begin * from_stride[0] * size, from_stride);
}

static void slice_run(const tdi_call *call)
{
    const tdi_slice_attrs *attrs = call->attrs;
    int64_t from[TD_MAX_RANK];
    tdi_strides(&call->in[0].shape, from);
    int64_t skip = attrs->begin * from[attrs->axis] * (int64_t)td_dtype_size(call->out.dtype);
    copy_rows(call, (const char *)call->in[0].data + skip, from);
}

static void broadcast_run(const tdi_call *call)
{
    int64_t from[TD_MAX_RANK];
    tdi_broadcast_strides(&call->in[0].shape, &call->out.shape, from);
    copy_rows(call, call->in[0].data, from);
}

/* Copies `in` to the result, from position `at` of its axis on, as far as it falls into the rows of the call. */
static void place(const tdi_call *call, const tdi_value *in, int axis, int64_t at)
{
    int64_t to[TD_MAX_RANK], from[TD_MAX_RANK], size = (int64_t)td_dtype_size(call->out.dtype);
    td_shape shape = in->shape;
    row_range rows = rows_of(call);
    int64_t first = axis == 0 ? at : 0; /* the result's row for row 0 of `in` */
    int64_t begin = rows.begin > first ? rows.begin : first;
    int64_t end = rows.end < first + shape.dim[0] ? rows.end : first + shape.dim[0];
    if (begin >= end)
        return;
    tdi_strides(&call->out.shape, to);
    tdi_strides(&in->shape, from);
    shape.dim[0] = end - begin;
    int64_t skip = begin * to[0] + (axis == 0 ? 0 : at * to[axis]);
    copy_box(&shape, (size_t)size, (char *)call->out.data + skip * size, to,
             (const char *)in->data + (begin - first) * from[0] * size, from);
}

static void concat_run(const tdi_call *call)
{
    int axis = ((const tdi_concat_attrs *)call->attrs)->axis;
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        place(call, &call->in[i], axis, at);
        at += call->in[i].shape.dim[axis];
    }
}

static void pad_run(const tdi_call *call)
{
    const tdi_pad_attrs *attrs = call->attrs;
    row_range rows = rows_of(call);
    int64_t stride[TD_MAX_RANK];
    tdi_strides(&call->out.shape, stride);
    size_t row = (size_t)stride[0] * td_dtype_size(call->out.dtype);
    memset((char *)call->out.data + (size_t)rows.begin * row, 0, (size_t)(rows.end - rows.begin) * row);
    place(call, &call->in[0], attrs->axis, attrs->before);
}

#define MOVES(stem)                                                                                                    \
    const tdi_kernel tdi_cpu_##stem = {.name = "cpu " #stem,                                                           \
                                       .op = &tdi_op_##stem,                                                           \
                                       .takes = TDI_TAKES_BOTH,                                                        \
                                       .splits = TDI_CAN_ROWS,                                                         \
                                       .run = stem##_run};
MOVES(slice)
MOVES(broadcast)
MOVES(concat)
MOVES(pad)

static const char *leave_factors_declines(const tdi_call *call)
{
    return tdi_leaves_factors(call) ? NULL : "a product";
}

const tdi_kernel tdi_cpu_leave_factors = {.name = "cpu leave_gradient",
                                          .op = &tdi_op_leave_gradient,
                                          .declines = leave_factors_declines,
                                          .run = tdi_leave_factors};
