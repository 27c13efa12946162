/* weights_file.c - .weights.h5 files, which hold what model.weights.h5 in a .keras file does
 * (keras_weights.c). */
#include "formats/weights_file.h"

#include <stdlib.h>

#include "base/context.h"
#include "base/text.h"
#include "files/atomic_file.h"
#include "files/zip.h"
#include "formats/foreign_file.h"
#include "formats/keras_json.h"
#include "formats/legacy_hdf5.h"

enum { PIECE = 1 << 18 };

/* ---- writing ---- */

static td_status write_pieces(tdi_atomic *to, const tdi_hdf5_writer *file, uint64_t size, tdi_error *error)
{
    char *piece = malloc(PIECE);
    td_status status = piece ? TD_OK : tdi_no_memory(error);
    for (uint64_t at = 0, part; status == TD_OK && at < size; at += part) {
        part = size - at < PIECE ? size - at : PIECE;
        tdi_hdf5_piece(file, at, piece, (size_t)part);
        status = tdi_atomic_write(to, piece, (size_t)part, error);
    }
    free(piece);
    return status;
}

static td_status write_file(const char *path, const tdi_hdf5_writer *file, uint64_t size, tdi_error *error)
{
    tdi_atomic *to;
    TDI_TRY(tdi_atomic_create(path, &to, error));
    td_status status = write_pieces(to, file, size, error);
    return tdi_atomic_end(to, status, error);
}

td_status tdi_weights_write(const td_model *model, const char *path, tdi_error *error)
{
    tdi_hdf5_writer *file;
    uint64_t size;
    if (!tdi_ends_in(path, TDI_WEIGHTS_END))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "cannot save weights as \"%s\": expected a name that ends in " TDI_WEIGHTS_END,
                        path ? path : "NULL");
    TDI_TRY(tdi_keras_make_weights(model, &file, &size, error));
    td_status status = write_file(path, file, size, error);
    tdi_hdf5_close(file);
    if (status != TD_OK)
        tdi_error_prefix(error, "cannot save the weights of the model \"%.64s\"", model->architecture->name);
    return status;
}

/* ---- reading ---- */

/* Keras ignores what it does not need. */
static void tell_unused(const td_model *model, tdi_hdf5_file *file)
{
    char layer[64];
    if (tdi_keras_find_unused(model, file, layer, sizeof layer))
        tdi_log(model->context, TD_LOG_WARNING,
                "%s holds weights for a layer \"%s\", which the model \"%s\" lacks: they are left out", file->name,
                layer, model->architecture->name);
}

static td_status read_hdf5(td_model *model, tdi_hdf5_file *file, tdi_store **store, tdi_error *error)
{
    tdi_hdf5_file *left = file;
    bool legacy = tdi_legacy_is_weights(file);
    td_status status =
        legacy ? tdi_legacy_read_weights(model, file, error) : tdi_keras_read_weights(model, &left, store, error);
    if (status == TD_OK && !legacy)
        tell_unused(model, file);
    tdi_hdf5_file_close(left);
    return status;
}

static td_status read_archive(td_model *model, const char *path, tdi_error *error)
{
    tdi_zip *zip;
    tdi_hdf5_file *file;
    tdi_store *weights = NULL;
    TDI_TRY(tdi_zip_open(path, &zip, error));
    td_status status = tdi_zip_has(zip, TDI_KERAS_WEIGHTS)
                           ? tdi_zip_store_in_place(zip, TDI_KERAS_WEIGHTS, &weights, error)
                           : tdi_foreign_archive(zip, path, error);
    if (status == TD_OK)
        status = tdi_hdf5_file_in_store(weights, path, &file, error);
    if (status == TD_OK)
        status = read_hdf5(model, file, &weights, error);
    tdi_store_free(weights);
    tdi_zip_close(zip);
    return status;
}

static td_status check_name(const char *path, tdi_error *error)
{
    if (tdi_ends_in(path, ".h5") || tdi_ends_in(path, ".keras") || tdi_ends_in(path, ".hdf5"))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "expected a name that ends in " TDI_WEIGHTS_END ", or a .keras or .h5 file of the same layers");
}

static td_status read_any(td_model *model, const char *path, tdi_error *error)
{
    tdi_hdf5_file *file;
    TDI_TRY(check_name(path, error));
    TDI_TRY(tdi_foreign_check(path, error));
    if (!tdi_is_hdf5(path))
        return read_archive(model, path, error);
    TDI_TRY(tdi_hdf5_file_open(path, &file, error));
    return read_hdf5(model, file, NULL, error);
}

td_status tdi_weights_read(td_model *model, const char *path, tdi_error *error)
{
    td_model clone;
    TDI_TRY(tdi_model_clone(model, false, &clone, error));
    td_status status = read_any(&clone, path, error);
    if (status == TD_OK && tdi_model_slots(model, 0) && clone.stored_slots)
        status = tdi_model_need_slots(&clone, error);
    if (status == TD_OK)
        tdi_model_take_clone(model, &clone);
    else if (status != TD_NO_MEMORY)
        tdi_error_prefix(error, "cannot load the weights in \"%s\" into the model \"%.64s\"", path ? path : "NULL",
                         model->architecture->name);
    tdi_model_release_clone(&clone);
    return status;
}
