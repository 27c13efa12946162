/* window_extent.c - extents of windows that slide along an axis, as Keras pads them. */
#include "ops/ops.h"

tdi_window tdi_window_extent(int64_t in, int64_t size, int64_t stride, int64_t dilation, td_padding padding)
{
    int64_t span = (size - 1) * dilation + 1;
    if (padding == TD_VALID)
        return (tdi_window){in < span ? 0 : (in - span) / stride + 1, 0};
    int64_t out = (in + stride - 1) / stride;
    int64_t total = (out - 1) * stride + span - in;
    return (tdi_window){out, total > 0 ? total / 2 : 0};
}

tdi_window tdi_window_around(int64_t in, int64_t size, int64_t stride, int64_t dilation, td_padding padding, int before,
                             int after)
{
    tdi_window window = tdi_window_extent(in + before + after, size, stride, dilation, padding);
    window.before += before;
    return window;
}
