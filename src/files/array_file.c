/* array_file.c - .npy files that are filled in any order, and .npz files made of them. When an array's first extent is
 * not known yet, its header has room for any number and is written again at the end. */
#include "files/array_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/atomic_file.h"
#include "files/npy_file.h"

struct tdi_array_file {
    char *path;
    bool npz;
    int count;
    struct {
        char name[72];
        tdi_atomic *file;
        td_shape shape;
        size_t header;
    } arrays[TDI_ARRAY_FILE_MOST];
};

static td_status check_size(const char *path, const td_shape *shape, tdi_error *error)
{
    int64_t bytes = sizeof(float) + TDI_NPY_HEADER;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(bytes, shape->dim[i], &bytes))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the array would be larger than any file can be", path);
    return TD_OK;
}

static td_status begin_array(tdi_array_file *file, const tdi_array_plan *plan, tdi_error *error)
{
    char header[TDI_NPY_HEADER];
    int at = file->count;
    snprintf(file->arrays[at].name, sizeof file->arrays[at].name, "%s.npy", plan->name);
    TDI_TRY(tdi_atomic_create(file->path, &file->arrays[at].file, error));
    file->count++;
    td_shape shape = plan->shape;
    if (shape.dim[0] < 0)
        shape.dim[0] = INT64_MAX;
    else
        TDI_TRY(check_size(file->path, &shape, error));
    file->arrays[at].shape = plan->shape;
    file->arrays[at].header = tdi_npy_header(TD_FLOAT32, &shape, 0, header);
    return tdi_atomic_write(file->arrays[at].file, header, file->arrays[at].header, error);
}

static td_status begin(tdi_array_file *file, int count, const tdi_array_plan *arrays, tdi_error *error)
{
    if (!file->npz && count != 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: a .npy file holds one array, not %d; name an .npz file",
                        file->path, count);
    for (int i = 0; i < count; i++)
        TDI_TRY(begin_array(file, &arrays[i], error));
    return TD_OK;
}

td_status tdi_array_file_create(const char *path, int count, const tdi_array_plan *arrays, tdi_array_file **file,
                                tdi_error *error)
{
    *file = NULL;
    tdi_array_file *made = calloc(1, sizeof *made);
    if (!made || !(made->path = strdup(path))) {
        free(made);
        return tdi_no_memory(error);
    }
    made->npz = tdi_ends_in(path, ".npz");
    td_status status = begin(made, count, arrays, error);
    if (status == TD_OK)
        *file = made;
    else
        tdi_array_file_abort(made);
    return status;
}

td_status tdi_array_file_put(tdi_array_file *file, int array, int64_t first, const float *values, int64_t count,
                             tdi_error *error)
{
    int64_t at = (int64_t)file->arrays[array].header + first * (int64_t)sizeof *values;
    return tdi_atomic_write_at(file->arrays[array].file, at, values, (size_t)count * sizeof *values, error);
}

static td_status put_together(const tdi_array_file *file, tdi_error *error)
{
    tdi_zip_file files[TDI_ARRAY_FILE_MOST];
    for (int i = 0; i < file->count; i++)
        files[i] = (tdi_zip_file){file->arrays[i].name, tdi_atomic_temporary(file->arrays[i].file)};
    return tdi_zip_write_files(file->path, file->count, files, error);
}

static td_status write_extent(tdi_array_file *file, int array, int64_t rows, tdi_error *error)
{
    char header[TDI_NPY_HEADER];
    td_shape shape = file->arrays[array].shape;
    if (shape.dim[0] >= 0)
        return TD_OK;
    shape.dim[0] = rows;
    size_t bytes = tdi_npy_header(TD_FLOAT32, &shape, file->arrays[array].header, header);
    return tdi_atomic_write_at(file->arrays[array].file, 0, header, bytes, error);
}

td_status tdi_array_file_commit(tdi_array_file *file, int64_t rows, tdi_error *error)
{
    td_status status = TD_OK;
    for (int i = 0; i < file->count && status == TD_OK; i++)
        status = write_extent(file, i, rows, error);
    if (status != TD_OK) {
        tdi_array_file_abort(file);
        return status;
    }
    if (file->npz) {
        status = put_together(file, error);
    } else {
        status = tdi_atomic_commit(file->arrays[0].file, error);
        file->arrays[0].file = NULL;
    }
    tdi_array_file_abort(file);
    return status;
}

void tdi_array_file_abort(tdi_array_file *file)
{
    if (!file)
        return;
    for (int i = 0; i < file->count; i++)
        tdi_atomic_abort(file->arrays[i].file);
    free(file->path);
    free(file);
}
