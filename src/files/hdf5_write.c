/* hdf5_write.c - libhdf5 behind a lock, on files in memory (its "core" driver, without a file behind it). */
#define _GNU_SOURCE
#include "files/hdf5_write.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH ((size_t)1 << 20) /* of the file in memory */

struct tdi_hdf5_writer {
    hid_t id;
    char what[256]; /* for messages */
};

/* ---- the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The host program's way of printing HDF5's errors, kept while ours are silenced. */
typedef struct silence {
    H5E_auto2_t print;
    void *data;
} silence;

static silence enter(void)
{
    silence old = {0};
    pthread_mutex_lock(&lock);
    H5Eget_auto2(H5E_DEFAULT, &old.print, &old.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return old;
}

static void leave(silence old)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, old.print, old.data);
    pthread_mutex_unlock(&lock);
}

/* ---- opening and closing ---- */

static hid_t create_in_memory(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;
    if (access < 0)
        return id;
    if (H5Pset_fapl_core(access, GROWTH, 0) >= 0)
        id = H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    return id;
}

td_status tdi_hdf5_create(const char *what, tdi_hdf5_writer **file, tdi_error *error)
{
    tdi_hdf5_writer *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    strncpy(made->what, what, sizeof made->what - 1);
    silence old = enter();
    made->id = create_in_memory();
    leave(old);
    if (made->id < 0) {
        free(made);
        return tdi_fail(error, TD_NO_MEMORY, "%s: cannot be begun; memory may be out", what);
    }
    *file = made;
    return TD_OK;
}

void tdi_hdf5_close(tdi_hdf5_writer *file)
{
    if (!file)
        return;
    silence old = enter();
    H5Fclose(file->id);
    leave(old);
    free(file);
}

/* ---- writing ---- */

static td_status written(const tdi_hdf5_writer *file, const char *path, bool good, tdi_error *error)
{
    return good ? TD_OK : tdi_fail(error, TD_NO_MEMORY, "%s: cannot add \"%s\"; memory may be out", file->what, path);
}

static hid_t groups_on_the_way(void)
{
    hid_t creation = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(creation, 1);
    return creation;
}

td_status tdi_hdf5_write_group(tdi_hdf5_writer *file, const char *path, tdi_error *error)
{
    silence old = enter();
    hid_t on_the_way = groups_on_the_way();
    hid_t group = H5Gcreate2(file->id, path, on_the_way, H5P_DEFAULT, H5P_DEFAULT);
    if (group >= 0)
        H5Gclose(group);
    H5Pclose(on_the_way);
    leave(old);
    return written(file, path, group >= 0, error);
}

/* A text of variable length in UTF-8, as h5py writes a Python string. */
static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

td_status tdi_hdf5_write_attribute(tdi_hdf5_writer *file, const char *path, const char *name, const char *text,
                                   tdi_error *error)
{
    silence old = enter();
    hid_t type = text_type(), space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate_by_name(file->id, path, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, &text) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    leave(old);
    return written(file, path, good, error);
}

static bool write_array(const tdi_hdf5_writer *file, const char *path, const td_shape *shape, hid_t type,
                        const void *values)
{
    hsize_t dims[TD_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        dims[i] = (hsize_t)shape->dim[i];
    hid_t space = shape->rank ? H5Screate_simple(shape->rank, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t on_the_way = groups_on_the_way();
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(creation, 0); /* the same content gives the same bytes */
    hid_t dataset = H5Dcreate2(file->id, path, type, space, on_the_way, creation, H5P_DEFAULT);
    bool good = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Pclose(creation);
    H5Pclose(on_the_way);
    H5Sclose(space);
    return good;
}

td_status tdi_hdf5_write(tdi_hdf5_writer *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error)
{
    silence old = enter();
    bool good = write_array(file, path, shape, H5T_NATIVE_FLOAT, values);
    leave(old);
    return written(file, path, good, error);
}

td_status tdi_hdf5_write_int(tdi_hdf5_writer *file, const char *path, int64_t number, tdi_error *error)
{
    int32_t small = (int32_t)number;
    silence old = enter();
    bool good = small == number ? write_array(file, path, &(td_shape){0}, H5T_NATIVE_INT32, &small)
                                : write_array(file, path, &(td_shape){0}, H5T_NATIVE_INT64, &number);
    leave(old);
    return written(file, path, good, error);
}

static td_status copy_image(const tdi_hdf5_writer *file, void **bytes, size_t *size, tdi_error *error)
{
    ssize_t needed = H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(file->id, NULL, 0);
    *bytes = needed > 0 ? malloc((size_t)needed) : NULL;
    if (!*bytes)
        return tdi_no_memory(error);
    *size = (size_t)needed;
    if (H5Fget_file_image(file->id, *bytes, *size) == needed)
        return TD_OK;
    free(*bytes);
    *bytes = NULL;
    return tdi_fail(error, TD_INTERNAL, "%s: HDF5 cannot give the file's bytes", file->what);
}

td_status tdi_hdf5_image(tdi_hdf5_writer *file, void **bytes, size_t *size, tdi_error *error)
{
    silence old = enter();
    td_status status = copy_image(file, bytes, size, error);
    leave(old);
    return status;
}
