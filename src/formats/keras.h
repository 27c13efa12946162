/* keras.h - .keras files of Keras 3, both ways. */
#ifndef TDI_FORMATS_KERAS_H
#define TDI_FORMATS_KERAS_H

#include "model/model.h"

/* Reads a model with its weights and, where present, compile configuration and optimizer state. The sentence of a
 * failure names the file, the layer and the property. */
td_status tdi_keras_read(td_context *context, const char *path, td_model **model, tdi_error *error);

/* Writes the model beside `path`, fsyncs, renames. On failure nothing at `path` has changed and no partial file is
 * left. */
td_status tdi_keras_write(const td_model *model, const char *path, tdi_error *error);

/* The architecture as Keras's model.to_json() gives it; the caller frees it. NULL when memory is out. */
char *tdi_keras_json(const td_model *model);
/* Its compile configuration, as config.json has it, in the same way. A learning rate that is a number is left out,
 * since callbacks change it as a run goes on, and so are the steps per execution, which change nothing. */
char *tdi_keras_compile_text(const td_model *model);

#endif
