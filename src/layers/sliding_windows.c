/* sliding_windows.c - checks and extents of windows that slide over height and width. */
#include "layers/sliding_windows.h"

#include "ops/ops.h"

td_status tdi_size_check(const char *what, td_size size, tdi_error *error)
{
    if (size.height >= 1 && size.width >= 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is %d x %d: both must be at least 1", what, size.height,
                    size.width);
}

td_status tdi_padding_check(td_padding padding, tdi_error *error)
{
    if (padding == TD_VALID || padding == TD_SAME)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no padding number %d: use TD_VALID or TD_SAME", (int)padding);
}

td_status tdi_image_check(const td_shape *in, tdi_error *error)
{
    char text[TDI_SHAPE_TEXT];
    if (in->rank == 3)
        return TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "it needs an input of [batch, height, width, channels] and got %s: td_reshape can add the missing axis",
        tdi_sample_text(in, text));
}

/* Pixels. A window that is wider than this and than its input would make kernels loop over padding for long. */
enum { FARTHEST = 4096 };

static td_status check_reach(const char *what, int size, int dilation, int64_t extent, tdi_error *error)
{
    int64_t reach = (int64_t)(size - 1) * dilation + 1;
    if (reach <= FARTHEST || reach <= extent)
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED,
                    "a %s of %d with dilation %d reaches over %lld pixels of an input of %lld; at most %d are possible",
                    what, size, dilation, (long long)reach, (long long)extent, FARTHEST);
}

td_status tdi_windows_infer(const tdi_windows *windows, const char *what, const td_shape *in, td_shape *out,
                            tdi_error *error)
{
    const td_size size = windows->size, strides = windows->strides, dilation = windows->dilation;
    tdi_window rows = tdi_window_extent(in->dim[0], size.height, strides.height, dilation.height, windows->padding);
    tdi_window columns = tdi_window_extent(in->dim[1], size.width, strides.width, dilation.width, windows->padding);
    char text[TDI_SHAPE_TEXT];
    TDI_TRY(check_reach(what, size.height, dilation.height, in->dim[0], error));
    TDI_TRY(check_reach(what, size.width, dilation.width, in->dim[1], error));
    if (rows.out < 1 || columns.out < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "a %d x %d %s (dilation %d x %d) does not fit into its input %s: use TD_SAME or a smaller %s",
                        size.height, size.width, what, dilation.height, dilation.width, tdi_sample_text(in, text),
                        what);
    *out = *in;
    out->dim[0] = rows.out;
    out->dim[1] = columns.out;
    return TD_OK;
}
