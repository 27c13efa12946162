/* hdf5_rows.c - arrays on disk through libhdf5's hyperslabs. The file is read where it lies, so that its structure is
 * libhdf5's to check, unlike that of weights (hdf5_check.c); docs/robustness.md says what that means. */
#define _GNU_SOURCE
#include "files/hdf5_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/hdf5_lock.h"

enum { CACHE = 64 << 20, CACHE_SLOTS = 12421 }; /* bytes of unpacked chunks per array; a prime, as HDF5 advises */

struct tdi_hdf5_file {
    hid_t id;
    char *path;
};

struct tdi_hdf5_rows {
    hid_t dataset, memory_type;
    const tdi_hdf5_file *file; /* borrowed */
    char *name;
    tdi_hdf5_facts facts;
};

/* ---- files ---- */

td_status tdi_hdf5_file_open(const char *path, tdi_hdf5_file **opened, tdi_error *error)
{
    if (access(path, R_OK) != 0)
        return tdi_fail(error, errno == ENOENT ? TD_NOT_FOUND : TD_IO, "%s: cannot be opened: %s", path,
                        strerror(errno));
    tdi_hdf5_file *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (!file || !copy) {
        free(file);
        free(copy);
        return tdi_no_memory(error);
    }
    *file = (tdi_hdf5_file){H5I_INVALID_HID, copy};
    tdi_hdf5_silence old = tdi_hdf5_enter();
    file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    tdi_hdf5_leave(old);
    if (file->id >= 0) {
        *opened = file;
        return TD_OK;
    }
    tdi_hdf5_file_close(file);
    return tdi_fail(error, TD_BAD_FILE, "%s: no HDF5 file, or a damaged one", path);
}

void tdi_hdf5_file_close(tdi_hdf5_file *file)
{
    if (!file)
        return;
    tdi_hdf5_silence old = tdi_hdf5_enter();
    if (file->id >= 0)
        H5Fclose(file->id);
    tdi_hdf5_leave(old);
    free(file->path);
    free(file);
}

bool tdi_hdf5_file_has(const tdi_hdf5_file *file, const char *name)
{
    tdi_hdf5_silence old = tdi_hdf5_enter();
    hid_t id = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (id >= 0)
        H5Dclose(id);
    tdi_hdf5_leave(old);
    return id >= 0;
}

/* ---- what an array is ---- */

static td_status refuse(const tdi_hdf5_rows *rows, td_status status, const char *what, tdi_error *error)
{
    return tdi_fail(error, status, "%s: \"%s\" %s", rows->file->path, rows->name, what);
}

static bool integer_dtype(size_t size, bool is_signed, td_dtype *dtype)
{
    bool byte = size == 1 && !is_signed, small = size < 4 || (size == 4 && is_signed);
    *dtype = byte ? TD_UINT8 : small ? TD_INT32 : TD_INT64;
    return size <= 8;
}

/* h5py writes booleans as an enumeration of bytes. */
static bool dtype_of(hid_t type, td_dtype *dtype)
{
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    if (class == H5T_INTEGER)
        return integer_dtype(size, H5Tget_sign(type) == H5T_SGN_2, dtype);
    *dtype = class == H5T_FLOAT ? (size <= 4 ? TD_FLOAT32 : TD_FLOAT64) : TD_UINT8;
    return (class == H5T_FLOAT && size <= 8) || (class == H5T_ENUM && size == 1);
}

static hid_t memory_type_of(td_dtype dtype, hid_t stored)
{
    if (H5Tget_class(stored) == H5T_ENUM)
        return H5Tcopy(stored);
    return H5Tcopy(dtype == TD_UINT8     ? H5T_NATIVE_UINT8
                   : dtype == TD_INT32   ? H5T_NATIVE_INT32
                   : dtype == TD_INT64   ? H5T_NATIVE_INT64
                   : dtype == TD_FLOAT32 ? H5T_NATIVE_FLOAT
                                         : H5T_NATIVE_DOUBLE);
}

static td_status look_at_type(tdi_hdf5_rows *rows, tdi_error *error)
{
    hid_t type = H5Dget_type(rows->dataset);
    bool known = type >= 0 && dtype_of(type, &rows->facts.dtype);
    rows->memory_type = known ? memory_type_of(rows->facts.dtype, type) : H5I_INVALID_HID;
    if (type >= 0)
        H5Tclose(type);
    return rows->memory_type >= 0
               ? TD_OK
               : refuse(rows, TD_UNSUPPORTED, "holds neither integers nor floats of at most 64 bits", error);
}

static td_status look_at_extents(tdi_hdf5_rows *rows, tdi_error *error)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    hid_t space = H5Dget_space(rows->dataset);
    int rank = space >= 0 && H5Sis_simple(space) > 0 ? H5Sget_simple_extent_dims(space, extent, NULL) : -1;
    if (space >= 0)
        H5Sclose(space);
    if (rank < 1 || rank > TD_MAX_RANK)
        return refuse(rows, TD_UNSUPPORTED, "is no array of 1 to 6 axes, the samples being the first", error);
    int64_t bytes = (int64_t)td_dtype_size(rows->facts.dtype);
    rows->facts.rows = (int64_t)extent[0];
    rows->facts.shape.rank = rank - 1;
    for (int i = 1; i < rank; i++) {
        rows->facts.shape.dim[i - 1] = (int64_t)extent[i];
        if (extent[i] == 0 || extent[i] > INT64_MAX || __builtin_mul_overflow(bytes, (int64_t)extent[i], &bytes))
            return refuse(rows, TD_BAD_FILE, "has samples without elements, or beyond what memory can hold", error);
    }
    return rows->facts.rows > 0 ? TD_OK : refuse(rows, TD_BAD_FILE, "holds no samples", error);
}

/* Other filters would be loaded as plugins: code. */
static td_status look_at_filters(const tdi_hdf5_rows *rows, hid_t list, tdi_error *error)
{
    for (int i = 0; i < H5Pget_nfilters(list); i++) {
        unsigned flags, config;
        size_t values = 0;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &values, NULL, sizeof name - 1, name, &config);
        bool own = filter >= H5Z_FILTER_DEFLATE && filter <= H5Z_FILTER_SCALEOFFSET;
        if (!own || H5Zfilter_avail(filter) <= 0)
            return tdi_fail(
                error, TD_UNSUPPORTED,
                "%s: \"%s\" is compressed by filter %d (%s), which Tandem does not load; write it with gzip, as "
                "h5py's compression=\"gzip\"",
                rows->file->path, rows->name, (int)filter, name);
    }
    return TD_OK;
}

/* A link may have led into another file. */
static bool is_elsewhere(const tdi_hdf5_rows *rows)
{
    char here[1024] = "", there[1024] = "";
    return H5Fget_name(rows->file->id, here, sizeof here) < 0 || H5Fget_name(rows->dataset, there, sizeof there) < 0 ||
           strcmp(here, there) != 0;
}

static td_status look_at_layout(const tdi_hdf5_rows *rows, tdi_error *error)
{
    hid_t list = H5Dget_create_plist(rows->dataset);
    td_status status = TD_OK;
    if (list < 0)
        status = refuse(rows, TD_BAD_FILE, "is damaged", error);
    else if (H5Pget_layout(list) == H5D_VIRTUAL || H5Pget_external_count(list) != 0 || is_elsewhere(rows))
        status = refuse(rows, TD_UNSUPPORTED, "lies in other files, which Tandem does not follow", error);
    else
        status = look_at_filters(rows, list, error);
    if (list >= 0)
        H5Pclose(list);
    return status;
}

/* ---- opening ---- */

static hid_t open_dataset(const tdi_hdf5_file *file, const char *name)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    hid_t id = H5I_INVALID_HID;
    if (access < 0)
        return id;
    if (H5Pset_chunk_cache(access, CACHE_SLOTS, CACHE, 1.0) >= 0)
        id = H5Dopen2(file->id, name, access);
    H5Pclose(access);
    return id;
}

static td_status look(tdi_hdf5_rows *rows, tdi_error *error)
{
    rows->dataset = open_dataset(rows->file, rows->name);
    if (rows->dataset < 0 && H5Oexists_by_name(rows->file->id, rows->name, H5P_DEFAULT) > 0)
        return refuse(rows, TD_BAD_FILE, "cannot be opened: it is no array, damaged, or of a newer HDF5 than this one",
                      error);
    if (rows->dataset < 0)
        return tdi_fail(error, TD_NOT_FOUND, "%s: has no array \"%s\"", rows->file->path, rows->name);
    TDI_TRY(look_at_type(rows, error));
    TDI_TRY(look_at_extents(rows, error));
    return look_at_layout(rows, error);
}

td_status tdi_hdf5_rows_open(const tdi_hdf5_file *file, const char *name, tdi_hdf5_rows **opened, tdi_hdf5_facts *facts,
                             tdi_error *error)
{
    tdi_hdf5_rows *rows = calloc(1, sizeof *rows);
    char *copy = strdup(name);
    if (!rows || !copy) {
        free(rows);
        free(copy);
        return tdi_no_memory(error);
    }
    *rows = (tdi_hdf5_rows){H5I_INVALID_HID, H5I_INVALID_HID, file, copy, {0}};
    tdi_hdf5_silence old = tdi_hdf5_enter();
    td_status status = look(rows, error);
    tdi_hdf5_leave(old);
    if (status != TD_OK) {
        tdi_hdf5_rows_close(rows);
        return status;
    }
    *facts = rows->facts;
    *opened = rows;
    return TD_OK;
}

void tdi_hdf5_rows_close(tdi_hdf5_rows *rows)
{
    if (!rows)
        return;
    tdi_hdf5_silence old = tdi_hdf5_enter();
    if (rows->memory_type >= 0)
        H5Tclose(rows->memory_type);
    if (rows->dataset >= 0)
        H5Dclose(rows->dataset);
    tdi_hdf5_leave(old);
    free(rows->name);
    free(rows);
}

/* ---- reading ---- */

static bool read_slab(const tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to)
{
    const td_shape *shape = &rows->facts.shape;
    hsize_t start[TD_MAX_RANK] = {(hsize_t)first}, extent[TD_MAX_RANK] = {(hsize_t)count};
    for (int i = 0; i < shape->rank; i++)
        extent[i + 1] = (hsize_t)shape->dim[i];
    hid_t space = H5Dget_space(rows->dataset), memory = H5Screate_simple(shape->rank + 1, extent, NULL);
    bool done = space >= 0 && memory >= 0 &&
                H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
                H5Dread(rows->dataset, rows->memory_type, memory, space, H5P_DEFAULT, to) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    return done;
}

td_status tdi_hdf5_rows_read(const tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to, tdi_error *error)
{
    tdi_hdf5_silence old = tdi_hdf5_enter();
    bool done = read_slab(rows, first, count, to);
    tdi_hdf5_leave(old);
    return done ? TD_OK
                : tdi_fail(error, TD_BAD_FILE, "%s: \"%s\": rows %" PRId64 " to %" PRId64 " cannot be read: damaged",
                           rows->file->path, rows->name, first, first + count - 1);
}
