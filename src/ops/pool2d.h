/* pool2d.h - what maximum and average pooling share. */
#ifndef TDI_OPS_POOL2D_H
#define TDI_OPS_POOL2D_H

#include "ops/op_helpers.h"

/* The pooled shape of x [batch, h, w, c]; TD_INVALID_ARGUMENT with a sentence when there is none. */
td_status tdi_pool2d_shape(const tdi_pool2d_attrs *attrs, const td_shape *x, td_shape *y, tdi_error *error);

/* The cells of x under the window of y at (oy, ox), without padding: rows [top, bottom), columns [left, right). */
typedef struct tdi_pool2d_cells {
    int64_t top, bottom, left, right;
} tdi_pool2d_cells;
tdi_pool2d_cells tdi_pool2d_cells_under(const tdi_pool2d_attrs *attrs, const td_shape *x, int64_t oy, int64_t ox);

/* Calls visit for each element of y; shapes are resolved. */
typedef void tdi_pool2d_visit(const tdi_call *call, const tdi_pool2d_cells *cells, int64_t n, int64_t c,
                              int64_t y_index);
void tdi_pool2d_each(const tdi_call *call, const td_shape *x, const td_shape *y, tdi_pool2d_visit *visit);

static inline int64_t tdi_pool2d_at(const td_shape *shape, int64_t n, int64_t i, int64_t j, int64_t c)
{
    return ((n * shape->dim[1] + i) * shape->dim[2] + j) * shape->dim[3] + c;
}

tdi_split tdi_pool2d_reads(const tdi_node *node, int i, tdi_split split); /* of the forward op and of the gradients */
void tdi_pool2d_describe(const tdi_node *node, char *text, size_t size);
double tdi_pool2d_flops(const tdi_call *call);      /* of the forward op */
double tdi_pool2d_grad_flops(const tdi_call *call); /* its last input is dy */

#endif
