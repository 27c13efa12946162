/* keras_json.h - a .keras file's members, and Keras's JSON: from and to it, shared by the files of this folder.
 *
 * A .keras file is a zip archive of config.json (the architecture and how it was compiled),
 * model.weights.h5 (weights and the optimizer's state) and metadata.json. Keras describes each object as
 * {"module", "class_name", "config", "registered_name"}. */
#ifndef TDI_FORMATS_KERAS_JSON_H
#define TDI_FORMATS_KERAS_JSON_H

#include <jansson.h>

#include "files/hdf5/hdf5_read.h"
#include "files/hdf5/hdf5_write.h"
#include "model/model.h"

#define TDI_KERAS_CONFIG   "config.json"
#define TDI_KERAS_METADATA "metadata.json"
#define TDI_KERAS_RECIPE   "tandem.json" /* how the data was read; Keras leaves it alone */
#define TDI_KERAS_WEIGHTS  "model.weights.h5"

/* ---- keras_config.c: field tables and JSON ---- */

/* Reads the fields from a layer's or an optimizer's "config". Every other key must be in `others` (NULL-terminated), or
 * hold nothing (null, false). TD_UNSUPPORTED names the property; TD_BAD_FILE when a value is not what Keras writes. */
td_status tdi_keras_read_fields(const tdi_field *fields, const json_t *config, const char *const *others, void *args,
                                tdi_error *error);
void tdi_keras_write_fields(const tdi_field *fields, const void *args, json_t **config);

/* Add a value, which they own from then on, to an object or an array. When memory is out the object or array is freed
 * and becomes NULL, and NULL stays NULL, so that a sequence of calls needs one check at its end. */
void tdi_keras_put(json_t **object, const char *key, json_t *value);
void tdi_keras_append(json_t **array, json_t *value);

/* {"module", "class_name", "config", "registered_name": null}; takes over `config`. NULL when memory is out. */
json_t *tdi_keras_object(const char *module, const char *class_name, json_t *config);
/* The name of a function or a class, and the latter's config, else NULL: Keras writes "relu", {"class_name":
 * "function", "config": "relu"}, or {"class_name": "L2", "config": {...}}. */
const char *tdi_keras_name_of(const json_t *value, const json_t **config);
/* A DTypePolicy or its name: TD_UNSUPPORTED unless it is float32. NULL stands for float32. */
td_status tdi_keras_check_dtype(const json_t *dtype, tdi_error *error);
/* An input's: float32, or int32 or int64. */
td_status tdi_keras_read_dtype(const json_t *json, td_dtype *dtype, tdi_error *error);
/* The same for a layer, which may compute in bfloat16: mixed_bfloat16. */
td_status tdi_keras_read_policy(const json_t *dtype, bool *bfloat16, tdi_error *error);
json_t *tdi_keras_policy(bool bfloat16);
/* The shortest decimal number that is this float. */
json_t *tdi_keras_float(float value);
/* [null, 28, 28] -> [28, 28]; every extent but the batch, 0 for null, must be known. */
td_status tdi_keras_read_batch_shape(const json_t *json, td_shape *shape, int64_t *batch, tdi_error *error);
json_t *tdi_keras_batch_shape(const td_shape *sample, int64_t batch);

/* A string member, or NULL. */
const char *tdi_keras_text(const json_t *object, const char *key);
/* `value` as JSON, cut short, for messages. */
#define TDI_KERAS_TEXT 80
const char *tdi_keras_show(const json_t *value, char text[TDI_KERAS_TEXT]);

/* ---- keras_model.c: the architecture ---- */

/* TD_UNSUPPORTED where a layer has another meaning in the Keras that wrote the file, "2.15.0", than in Keras 3. */
td_status tdi_keras_check_version(const json_t *root, const char *version, tdi_error *error);
/* `room` is the size of the weights' file: a model with more weights than can be in it is refused before memory is
 * allocated. */
td_status tdi_keras_read_model(td_context *context, const json_t *root, size_t room, td_model **model,
                               tdi_error *error);
/* NULL when memory is out. */
json_t *tdi_keras_write_model(const td_model *model);

/* ---- keras_compile.c: optimizer, losses, metrics ---- */

/* Compiles the model as the "compile_config" of the file at `path` says. What is not known is named in a warning and
 * left out; TD_NO_MEMORY is the only failure. */
td_status tdi_keras_read_compile(td_model *model, const json_t *config, const char *path, tdi_error *error);
/* Is there an optimizer, a loss or a metric to write? */
bool tdi_keras_is_compiled(const td_model *model);
/* NULL when memory is out. */
json_t *tdi_keras_write_compile(const td_model *model);

/* ---- keras_metric.c: one metric ---- */

/* Not resolved (layers/metrics.h); its name and list are in `arena`. */
td_status tdi_keras_read_metric(tdi_arena *arena, const json_t *value, td_metric *metric, tdi_error *error);
/* NULL when memory is out. */
json_t *tdi_keras_write_metric(const td_metric *metric);

/* ---- keras_schedule.c: a learning rate that is no number ---- */

/* A resolved schedule, its lists in `arena`. */
td_status tdi_keras_read_schedule(tdi_arena *arena, const json_t *value, td_schedule *schedule, tdi_error *error);
/* NULL when memory is out. */
json_t *tdi_keras_write_schedule(const td_schedule *schedule);

/* ---- keras_weights.c: model.weights.h5 ---- */

/* `store`: what the file is in; NULL: a file of its own. Where the slots are many they are left in the file until they
 * are needed (tdi_stored_slots): it keeps *file and *store then, and makes them NULL. */
td_status tdi_keras_read_weights(td_model *model, tdi_hdf5_file **file, tdi_store **store, tdi_error *error);
/* The file, ended, of *size bytes; the caller closes it, before a weight changes. */
td_status tdi_keras_make_weights(const td_model *model, tdi_hdf5_writer **made, uint64_t *size, tdi_error *error);
/* Does the file hold weights of a layer that the model lacks? `layer` is its folder then. */
bool tdi_keras_find_unused(const td_model *model, tdi_hdf5_file *file, char *layer, size_t size);

#endif
