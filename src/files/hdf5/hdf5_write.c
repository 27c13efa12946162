/* hdf5_write.c - libhdf5, behind a lock. It lays out the file and writes its structures into pages (hdf5_driver.h). For
 * an array it only reserves space and says where, so that the array's bytes are taken from the caller's memory. */
#define _GNU_SOURCE
#include "files/hdf5/hdf5_write.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "files/hdf5/hdf5_driver.h"

/* An array's place in the file and in memory. */
typedef struct lent {
    uint64_t begin, end;
    const char *values;
} lent;

struct tdi_hdf5_writer {
    hid_t id;
    tdi_hdf5_pages *pages; /* live while the file is open */
    tdi_vec(lent) arrays;
    char what[256]; /* for messages */
};

/* ---- the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The host program's printing of HDF5 errors, restored after a call. */
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

td_status tdi_hdf5_create(const char *what, tdi_hdf5_writer **file, tdi_error *error)
{
    tdi_hdf5_writer *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    strncpy(made->what, what, sizeof made->what - 1);
    silence old = enter();
    made->id = tdi_hdf5_create_in_pages(&made->pages);
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
    tdi_hdf5_close_in_pages(file->id, file->pages);
    leave(old);
    tdi_vec_free(&file->arrays);
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

/* The type of a UTF-8 text of variable length, as h5py writes a Python string. */
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

/* Adds an array; `creation` says when it gets its space. A negative id on failure. */
static hid_t add_array(const tdi_hdf5_writer *file, const char *path, const td_shape *shape, hid_t type, hid_t creation)
{
    hsize_t dims[TD_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        dims[i] = (hsize_t)shape->dim[i];
    hid_t space = shape->rank ? H5Screate_simple(shape->rank, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t on_the_way = groups_on_the_way();
    H5Pset_obj_track_times(creation, 0); /* without times equal content gives equal bytes */
    hid_t dataset = H5Dcreate2(file->id, path, type, space, on_the_way, creation, H5P_DEFAULT);
    H5Pclose(on_the_way);
    H5Sclose(space);
    return dataset;
}

/* Records the array's place; one without elements has none. */
static bool lend(tdi_hdf5_writer *file, hid_t dataset, const float *values)
{
    haddr_t begin = H5Dget_offset(dataset);
    hsize_t size = H5Dget_storage_size(dataset);
    if (size == 0)
        return true;
    return begin != HADDR_UNDEF &&
           tdi_push(&file->arrays, (lent){.begin = begin, .end = begin + size, .values = (const char *)values});
}

td_status tdi_hdf5_write(tdi_hdf5_writer *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error)
{
    silence old = enter();
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    hid_t dataset = add_array(file, path, shape, H5T_NATIVE_FLOAT, creation);
    bool good = dataset >= 0 && (!values || lend(file, dataset, values));
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Pclose(creation);
    leave(old);
    return written(file, path, good, error);
}

static bool write_number(const tdi_hdf5_writer *file, const char *path, hid_t type, const void *number)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = add_array(file, path, &(td_shape){0}, type, creation);
    bool good = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, number) >= 0;
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Pclose(creation);
    return good;
}

td_status tdi_hdf5_write_int(tdi_hdf5_writer *file, const char *path, int64_t number, tdi_error *error)
{
    int32_t small = (int32_t)number;
    silence old = enter();
    bool good = small == number ? write_number(file, path, H5T_NATIVE_INT32, &small)
                                : write_number(file, path, H5T_NATIVE_INT64, &number);
    leave(old);
    return written(file, path, good, error);
}

/* ---- the whole file ---- */

static int by_place(const void *a, const void *b)
{
    const lent *first = a, *second = b;
    return (first->begin > second->begin) - (first->begin < second->begin);
}

td_status tdi_hdf5_end(tdi_hdf5_writer *file, uint64_t *size, tdi_error *error)
{
    hsize_t bytes = 0;
    silence old = enter();
    bool good = H5Fflush(file->id, H5F_SCOPE_GLOBAL) >= 0 && H5Fget_filesize(file->id, &bytes) >= 0;
    leave(old);
    if (file->arrays.count)
        qsort(file->arrays.at, (size_t)file->arrays.count, sizeof *file->arrays.at, by_place);
    *size = bytes;
    return good ? TD_OK : tdi_fail(error, TD_NO_MEMORY, "%s: cannot be ended; memory may be out", file->what);
}

/* The first array that ends behind byte `at`; NULL: there is none. */
static const lent *array_from(const tdi_hdf5_writer *file, uint64_t at)
{
    int low = 0, high = file->arrays.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (file->arrays.at[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < file->arrays.count ? &file->arrays.at[low] : NULL;
}

void tdi_hdf5_piece(const tdi_hdf5_writer *file, uint64_t at, void *to, size_t size)
{
    char *next = to;
    for (size_t piece; size > 0; at += piece, next += piece, size -= piece) {
        const lent *array = array_from(file, at);
        bool inside = array && array->begin <= at;
        uint64_t left = array ? (inside ? array->end : array->begin) - at : UINT64_MAX;
        piece = size < left ? size : (size_t)left;
        if (inside)
            memcpy(next, array->values + (at - array->begin), piece);
        else
            tdi_hdf5_pages_read(file->pages, at, next, piece);
    }
}
