/* op_helpers.h - what the files of this folder share: checks of inputs, index arithmetic, the usual `reads` rules. */
#ifndef TDI_OPS_OP_HELPERS_H
#define TDI_OPS_OP_HELPERS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

/* A shape's text for a sentence; it lives as long as the enclosing block. */
#define TDI_TEXT(shape) tdi_shape_text((shape), (char[TDI_SHAPE_TEXT]){0})

/* ---- checks: TD_INVALID_ARGUMENT with a sentence ---- */

td_status tdi_want_dtype(const tdi_node *node, int i, td_dtype dtype, tdi_error *error);
/* Every input that is present is float32, or bfloat16 where the op allows it; an op that does not multiply wants all of
 * these to be alike. */
td_status tdi_want_floats(const tdi_node *node, tdi_error *error);
/* bfloat16 when an input that may be bfloat16 is; else float32. */
td_dtype tdi_float_dtype(const tdi_node *node);
td_status tdi_want_rank(const tdi_node *node, int i, int rank, tdi_error *error);
td_status tdi_want_shape(const tdi_node *node, int i, const td_shape *shape, tdi_error *error);
/* Input i is [n]. */
td_status tdi_want_vector(const tdi_node *node, int i, int64_t n, tdi_error *error);
/* The last axis exists and is not the batch. */
td_status tdi_want_last_axis(const tdi_node *node, int i, tdi_error *error);
/* Input i, where there is one, weighs input 0: its extents are those that input 0's begin with. */
td_status tdi_want_weights(const tdi_node *node, int i, tdi_error *error);
/* `axis` is one of input i's axes, and not the batch. */
td_status tdi_want_axis(const tdi_node *node, int i, int axis, tdi_error *error);

/* Input i + 1 is the rows, in float32, that input i, in int32, numbers in a table [n, ...] of this shape. */
td_status tdi_want_gathered(const tdi_node *node, int i, const td_shape *table, tdi_error *error);

/* ---- shapes and indices ---- */

int64_t tdi_last_extent(const td_shape *shape);  /* 1 for a scalar */
int64_t tdi_outer_extent(const td_shape *shape); /* product of all extents but the last, resolved; 1 for a scalar */
td_shape tdi_without_last(const td_shape *shape);
void tdi_strides(const td_shape *shape, int64_t stride[TD_MAX_RANK]); /* in elements, row-major */
/* Strides by which positions of `out`, to which `in` is broadcast, read `in`. */
void tdi_broadcast_strides(const td_shape *in, const td_shape *out, int64_t stride[TD_MAX_RANK]);
/* The offset, in an array of these strides, of position `flat` of a box of `shape` walked in row-major order. */
int64_t tdi_offset_of(const td_shape *shape, const int64_t stride[TD_MAX_RANK], int64_t flat);
/* The position of the largest of `count` numbers; of equals the first. */
int64_t tdi_argmax(const float *x, int64_t count);
/* How many consecutive elements of input 0 each weight of input i weighs. */
int64_t tdi_elements_per_weight(const tdi_call *call, int i);
/* Copies a box of elements between arrays of these strides. */
void tdi_copy_box(const td_shape *box, size_t size, char *to, const int64_t *to_stride, const char *from,
                  const int64_t *from_stride);

/* The elements of the output that a call computes, as runs: run r is [first + r * stride, + length). */
typedef struct tdi_runs {
    int64_t count, first, stride, length;
} tdi_runs;
tdi_runs tdi_call_runs(const tdi_call *call);

/* ---- `reads` rules ---- */

tdi_split tdi_reads_same(const tdi_node *node, int i, tdi_split split);
/* For inputs that are broadcast to the output. */
tdi_split tdi_reads_broadcast(const tdi_node *node, int i, tdi_split split);
/* For work along the last axis of input 0: rows read rows; other splits read everything. */
tdi_split tdi_reads_rows(const tdi_node *node, int i, tdi_split split);
/* Columns read columns; other splits read everything. */
tdi_split tdi_reads_columns(const tdi_node *node, int i, tdi_split split);

/* 1 - value as Keras computes it: in double precision, from the decimal number that the float stands for (0.999 for
 * 0.999f), then rounded. Computed from the float itself it would be off by 1e-5 of its size. */
float tdi_one_minus(float value);

double tdi_flops_none(const tdi_call *call);
double tdi_flops_per_input(const tdi_call *call); /* one per element of input 0 */

#endif
