/* windows.h - what convolution and pooling share: windows that slide over height and width. */
#ifndef TDI_LAYERS_WINDOWS_H
#define TDI_LAYERS_WINDOWS_H

#include "base/error.h"
#include "layers/layer.h"

typedef struct tdi_windows {
    td_size size, strides, dilation;
    td_padding padding;
} tdi_windows;

/* Both numbers are at least 1. */
td_status tdi_size_check(const char *what, td_size size, tdi_error *error);
td_status tdi_padding_check(td_padding padding, tdi_error *error);
/* The sample is [height, width, channels]. */
td_status tdi_image_check(const td_shape *in, tdi_error *error);
/* The output's extents, channels as they are; fails where a window ("kernel", "pool") does not fit. */
td_status tdi_windows_infer(const tdi_windows *windows, const char *what, const td_shape *in, td_shape *out,
                            tdi_error *error);

#endif
