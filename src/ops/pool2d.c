/* pool2d.c - what maximum and average pooling share: windows over height and width. */
#include "ops/pool2d.h"

static tdi_window window_h(const tdi_pool2d_attrs *attrs, const td_shape *x)
{
    return tdi_window_around(x->dim[1], attrs->pool_h, attrs->stride_h, 1, attrs->padding, attrs->sides.top,
                             attrs->sides.bottom);
}

static tdi_window window_w(const tdi_pool2d_attrs *attrs, const td_shape *x)
{
    return tdi_window_around(x->dim[2], attrs->pool_w, attrs->stride_w, 1, attrs->padding, attrs->sides.left,
                             attrs->sides.right);
}

td_status tdi_pool2d_shape(const tdi_pool2d_attrs *attrs, const td_shape *x, td_shape *y, tdi_error *error)
{
    if (attrs->pool_h < 1 || attrs->pool_w < 1 || attrs->stride_h < 1 || attrs->stride_w < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "pool %dx%d, strides %dx%d: all must be at least 1", attrs->pool_h,
                        attrs->pool_w, attrs->stride_h, attrs->stride_w);
    if (x->rank != 4)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "x is %s, which has %d axes; 4 are needed", TDI_TEXT(x), x->rank);
    int64_t out_h = window_h(attrs, x).out, out_w = window_w(attrs, x).out;
    if (out_h < 1 || out_w < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the pool %dx%d is larger than %s; use \"same\" padding or a smaller pool", attrs->pool_h,
                        attrs->pool_w, TDI_TEXT(x));
    *y = (td_shape){.rank = 4, .dim = {x->dim[0], out_h, out_w, x->dim[3]}};
    return TD_OK;
}

static int64_t lower(int64_t a)
{
    return a > 0 ? a : 0;
}

static int64_t upper(int64_t a, int64_t bound)
{
    return a < bound ? a : bound;
}

tdi_pool2d_cells tdi_pool2d_cells_under(const tdi_pool2d_attrs *attrs, const td_shape *x, int64_t oy, int64_t ox)
{
    int64_t top = oy * attrs->stride_h - window_h(attrs, x).before;
    int64_t left = ox * attrs->stride_w - window_w(attrs, x).before;
    return (tdi_pool2d_cells){lower(top), upper(top + attrs->pool_h, x->dim[1]), lower(left),
                              upper(left + attrs->pool_w, x->dim[2])};
}

void tdi_pool2d_each(const tdi_call *call, const td_shape *x, const td_shape *y, tdi_pool2d_visit *visit)
{
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t oy = 0; oy < y->dim[1]; oy++)
            for (int64_t ox = 0; ox < y->dim[2]; ox++) {
                tdi_pool2d_cells cells = tdi_pool2d_cells_under(call->attrs, x, oy, ox);
                for (int64_t c = 0; c < y->dim[3]; c++)
                    visit(call, &cells, n, c, tdi_pool2d_at(y, n, oy, ox, c));
            }
}

tdi_split tdi_pool2d_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    return split == TDI_FLAT ? TDI_WHOLE : split;
}

void tdi_pool2d_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_pool2d_attrs *attrs = node->attrs;
    snprintf(text, size, "%dx%d %s, stride %dx%d%s%s", attrs->pool_h, attrs->pool_w,
             attrs->padding == TD_SAME ? "same" : "valid", attrs->stride_h, attrs->stride_w,
             attrs->activation ? ", slope of " : "", attrs->activation ? tdi_unary_name(attrs->activation) : "");
}

static double cells_visited(const tdi_call *call, const td_shape *y)
{
    const tdi_pool2d_attrs *attrs = call->attrs;
    return (double)tdi_shape_elements(y) * attrs->pool_h * attrs->pool_w;
}

double tdi_pool2d_flops(const tdi_call *call)
{
    return cells_visited(call, &call->out.shape);
}

double tdi_pool2d_grad_flops(const tdi_call *call)
{
    return cells_visited(call, &call->in[call->n_in - 1].shape);
}
