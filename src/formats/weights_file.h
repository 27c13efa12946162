/* weights_file.h - Keras's save_weights and load_weights: a model's weights in a file of their own. */
#ifndef TDI_FORMATS_WEIGHTS_FILE_H
#define TDI_FORMATS_WEIGHTS_FILE_H

#include "model/model.h"

#define TDI_WEIGHTS_END ".weights.h5"

/* Writes the weights, and of a compiled model the optimizer's state, atomically. TD_INVALID_ARGUMENT unless the name
 * ends in .weights.h5. */
td_status tdi_weights_write(const td_model *model, const char *path, tdi_error *error);
/* Reads them back, or those in a .keras file, into a model of the same layers. On failure the model is as it was. */
td_status tdi_weights_read(td_model *model, const char *path, tdi_error *error);

#endif
