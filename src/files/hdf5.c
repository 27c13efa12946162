/* hdf5.c - libhdf5 behind a lock, on files in memory (its "core" driver, without a file behind it). */
#define _GNU_SOURCE
#include "files/hdf5.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/hdf5_check.h"

#define MAX_PATH_LENGTH 512
#define GROWTH          ((size_t)1 << 20) /* of an image that is written */

struct tdi_hdf5 {
    hid_t id;
    char what[256]; /* for messages */
};

static td_status damaged(const tdi_hdf5 *file, const char *path, const char *reason, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" %s", file->what, path, reason);
}

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

static td_status make(const char *what, tdi_hdf5 **file, tdi_error *error)
{
    *file = calloc(1, sizeof **file);
    if (!*file)
        return tdi_no_memory(error);
    (*file)->id = H5I_INVALID_HID;
    strncpy((*file)->what, what, sizeof(*file)->what - 1);
    return TD_OK;
}

static td_status opened(tdi_hdf5 **file, const char *reason, tdi_error *error)
{
    if ((*file)->id >= 0)
        return TD_OK;
    tdi_fail(error, TD_BAD_FILE, "%s %s", (*file)->what, reason);
    free(*file);
    *file = NULL;
    return TD_BAD_FILE;
}

static hid_t memory_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_core(access, GROWTH, 0) < 0) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

static hid_t open_image(const void *bytes, size_t size)
{
    hid_t access = memory_access(), id = H5I_INVALID_HID;
    if (access < 0)
        return id;
    /* The property list only reads the bytes; its interface lacks the const. */
    if (size > 0 && H5Pset_file_image(access, (void *)(uintptr_t)bytes, size) >= 0)
        id = H5Fopen("image", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return id;
}

td_status tdi_hdf5_open(const void *bytes, size_t size, const char *what, tdi_hdf5 **file, tdi_error *error)
{
    *file = NULL;
    TDI_TRY(tdi_hdf5_check(bytes, size, what, error));
    TDI_TRY(make(what, file, error));
    silence old = enter();
    (*file)->id = open_image(bytes, size);
    leave(old);
    return opened(file, "is no HDF5 file, or a damaged one", error);
}

td_status tdi_hdf5_create(const char *what, tdi_hdf5 **file, tdi_error *error)
{
    TDI_TRY(make(what, file, error));
    silence old = enter();
    hid_t access = memory_access();
    if (access >= 0) {
        (*file)->id = H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
        H5Pclose(access);
    }
    leave(old);
    return opened(file, "cannot be begun in memory", error);
}

void tdi_hdf5_close(tdi_hdf5 *file)
{
    if (!file)
        return;
    silence old = enter();
    H5Fclose(file->id);
    leave(old);
    free(file);
}

/* ---- reading ---- */

/* Goes down the path link by link: libhdf5 wants each to be there. */
static bool find(const tdi_hdf5 *file, const char *path)
{
    char part[MAX_PATH_LENGTH];
    if (strlen(path) >= sizeof part)
        return false;
    for (const char *at = path; *at;) {
        size_t length = (size_t)(strchrnul(at, '/') - path);
        memcpy(part, path, length);
        part[length] = '\0';
        if (H5Lexists(file->id, part, H5P_DEFAULT) <= 0)
            return false;
        at = path + length + (path[length] == '/');
    }
    return true;
}

bool tdi_hdf5_has(tdi_hdf5 *file, const char *path)
{
    silence old = enter();
    bool there = find(file, path);
    leave(old);
    return there;
}

static int64_t count_members(const tdi_hdf5 *file, const char *path)
{
    H5G_info_t info;
    if (!find(file, path))
        return -1;
    hid_t group = H5Gopen2(file->id, path, H5P_DEFAULT);
    if (group < 0)
        return -1;
    bool known = H5Gget_info(group, &info) >= 0 && info.nlinks <= INT32_MAX;
    H5Gclose(group);
    return known ? (int64_t)info.nlinks : -1;
}

int64_t tdi_hdf5_count(tdi_hdf5 *file, const char *path)
{
    silence old = enter();
    int64_t count = count_members(file, path);
    leave(old);
    return count;
}

static td_status get_shape(const tdi_hdf5 *file, const char *path, hid_t dataset, td_shape *shape, tdi_error *error)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    if (space < 0)
        return damaged(file, path, "is damaged", error);
    int rank = H5Sget_simple_extent_type(space) == H5S_NULL ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    if (rank < 0 || rank > TD_MAX_RANK)
        return damaged(file, path, "has no shape, or too many axes", error);
    *shape = (td_shape){.rank = rank};
    for (int i = 0; i < rank; i++) {
        if (dims[i] > (hsize_t)1 << 40)
            return damaged(file, path, "has an impossible shape", error);
        shape->dim[i] = (int64_t)dims[i];
    }
    return TD_OK;
}

/* Opens a dataset: tdi_hdf5_check has seen that it is one we read. */
static td_status open_array(const tdi_hdf5 *file, const char *path, hid_t *dataset, td_shape *shape, tdi_error *error)
{
    if (!find(file, path))
        return tdi_fail(error, TD_NOT_FOUND, "%s: there is no \"%s\"", file->what, path);
    *dataset = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (*dataset < 0)
        return damaged(file, path, "is no array, or a damaged one", error);
    td_status status = get_shape(file, path, *dataset, shape, error);
    if (status != TD_OK)
        H5Dclose(*dataset);
    return status;
}

td_status tdi_hdf5_shape(tdi_hdf5 *file, const char *path, td_shape *shape, tdi_error *error)
{
    hid_t dataset;
    silence old = enter();
    td_status status = open_array(file, path, &dataset, shape, error);
    if (status == TD_OK)
        H5Dclose(dataset);
    leave(old);
    return status;
}

static bool same_shape(const td_shape *a, const td_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static const char *shape_text(const td_shape *shape, char text[128])
{
    int used = snprintf(text, 128, "[");
    for (int i = 0; i < shape->rank; i++)
        used += snprintf(text + used, 128 - (size_t)used, "%s%lld", i ? ", " : "", (long long)shape->dim[i]);
    snprintf(text + used, 128 - (size_t)used, "]");
    return text;
}

static td_status read_as(const tdi_hdf5 *file, const char *path, const td_shape *shape, hid_t type, void *values,
                         tdi_error *error)
{
    hid_t dataset;
    td_shape seen;
    char seen_text[128], wanted_text[128];
    TDI_TRY(open_array(file, path, &dataset, &seen, error));
    td_status status = TD_OK;
    if (!same_shape(&seen, shape))
        status = tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" has the shape %s where %s is needed", file->what, path,
                          shape_text(&seen, seen_text), shape_text(shape, wanted_text));
    else if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = damaged(file, path, "cannot be read: it is damaged or truncated", error);
    H5Dclose(dataset);
    return status;
}

td_status tdi_hdf5_read(tdi_hdf5 *file, const char *path, const td_shape *shape, float *values, tdi_error *error)
{
    silence old = enter();
    td_status status = read_as(file, path, shape, H5T_NATIVE_FLOAT, values, error);
    leave(old);
    return status;
}

td_status tdi_hdf5_read_number(tdi_hdf5 *file, const char *path, double *number, tdi_error *error)
{
    silence old = enter();
    td_status status = read_as(file, path, &(td_shape){0}, H5T_NATIVE_DOUBLE, number, error);
    leave(old);
    return status;
}

/* ---- writing ---- */

static td_status written(const tdi_hdf5 *file, const char *path, bool good, tdi_error *error)
{
    return good ? TD_OK : tdi_fail(error, TD_NO_MEMORY, "%s: cannot add \"%s\"; memory may be out", file->what, path);
}

static hid_t groups_on_the_way(void)
{
    hid_t creation = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(creation, 1);
    return creation;
}

td_status tdi_hdf5_write_group(tdi_hdf5 *file, const char *path, tdi_error *error)
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

td_status tdi_hdf5_write_attribute(tdi_hdf5 *file, const char *path, const char *name, const char *text,
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

static bool write_array(const tdi_hdf5 *file, const char *path, const td_shape *shape, hid_t type, const void *values)
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

td_status tdi_hdf5_write(tdi_hdf5 *file, const char *path, const td_shape *shape, const float *values, tdi_error *error)
{
    silence old = enter();
    bool good = write_array(file, path, shape, H5T_NATIVE_FLOAT, values);
    leave(old);
    return written(file, path, good, error);
}

td_status tdi_hdf5_write_int(tdi_hdf5 *file, const char *path, int64_t number, tdi_error *error)
{
    int32_t small = (int32_t)number;
    silence old = enter();
    bool good = small == number ? write_array(file, path, &(td_shape){0}, H5T_NATIVE_INT32, &small)
                                : write_array(file, path, &(td_shape){0}, H5T_NATIVE_INT64, &number);
    leave(old);
    return written(file, path, good, error);
}

static td_status copy_image(const tdi_hdf5 *file, void **bytes, size_t *size, tdi_error *error)
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

td_status tdi_hdf5_image(tdi_hdf5 *file, void **bytes, size_t *size, tdi_error *error)
{
    silence old = enter();
    td_status status = copy_image(file, bytes, size, error);
    leave(old);
    return status;
}
