/* legacy_hdf5.h - what Keras wrote before the .keras archive, and still writes as .h5: a model, or its weights, in one
 * HDF5 file. */
#ifndef TDI_FORMATS_LEGACY_HDF5_H
#define TDI_FORMATS_LEGACY_HDF5_H

#include <jansson.h>

#include "files/hdf5/hdf5_file.h"
#include "model/model.h"

/* True when the file holds weights in the legacy layout, a group for each layer: in the root, or in "model_weights". */
bool tdi_legacy_is_weights(tdi_hdf5_file *file);
/* True when it holds a whole model. */
bool tdi_legacy_is_model(tdi_hdf5_file *file);
/* Reads weights into a model of the same layers, in their order and whatever they are called, as Keras does. */
td_status tdi_legacy_read_weights(td_model *model, tdi_hdf5_file *file, tdi_error *error);
/* Reads the architecture, the weights and how the model was compiled; the optimizer's state is left out, with a
 * warning. */
td_status tdi_legacy_read_model(td_context *context, const char *path, tdi_hdf5_file *file, td_model **model,
                                tdi_error *error);

#endif
