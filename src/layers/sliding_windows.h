/* sliding_windows.h - windows that slide over height and width, for convolution and pooling; checks of image layers. */
#ifndef TDI_LAYERS_SLIDING_WINDOWS_H
#define TDI_LAYERS_SLIDING_WINDOWS_H

#include "base/error.h"
#include "layers/layer.h"

typedef struct tdi_windows {
    td_size size, strides, dilation; /* pixels */
    td_padding padding;
} tdi_windows;

/* Each check fails with TD_INVALID_ARGUMENT and a sentence. `what` names the size in it ("strides"). */
td_status tdi_size_check(const char *what, td_size size, tdi_error *error); /* both numbers are at least 1 */
td_status tdi_padding_check(td_padding padding, tdi_error *error);          /* it is one of the enumeration */
td_status tdi_image_check(const td_shape *in, tdi_error *error);            /* it is [height, width, channels] */
/* Sets *out to the output's sample shape, with the input's channels. Fails when a window does not fit into the input;
 * `what` names the window in the sentence ("kernel", "pool"). */
td_status tdi_windows_infer(const tdi_windows *windows, const char *what, const td_shape *in, td_shape *out,
                            tdi_error *error);

#endif
