/* idx.c - one IDX file (the format of MNIST): two zero bytes, a type, a rank, then that many big-endian 32-bit extents,
 * the first of them the samples, then the values, big-endian; and nothing after them.
 *
 * zlib's gzread reads plain and gzipped files alike. The header is not believed: what it declares is held against the
 * file's size before memory is asked for. */
#include "data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DEFLATE_MAX_RATIO 1032 /* no deflate stream expands by more */

typedef struct idx_file {
    const char *path;
    gzFile gz;
    int64_t size; /* on disk */
} idx_file;

static td_status idx_open(const char *path, idx_file *file, tdi_error *error)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0 || fstat(fd, &facts) != 0) {
        td_status status = errno == ENOENT ? TD_NOT_FOUND : TD_IO;
        tdi_fail(error, status, "%s: cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (!S_ISREG(facts.st_mode)) {
        close(fd);
        return tdi_fail(error, TD_BAD_FILE, "%s: not a file", path);
    }
    *file = (idx_file){.path = path, .gz = gzdopen(fd, "rb"), .size = facts.st_size};
    if (!file->gz) {
        close(fd);
        return tdi_no_memory(error);
    }
    gzbuffer(file->gz, 1 << 17);
    return TD_OK;
}

/* The sentence of a read that gave `got` bytes of `wanted`. */
static td_status idx_short(const idx_file *file, int64_t got, int64_t wanted, tdi_error *error)
{
    int code;
    const char *reason = gzerror(file->gz, &code);
    if (code == Z_ERRNO)
        return tdi_fail(error, TD_IO, "%s: cannot be read: %s", file->path, strerror(errno));
    if (code == Z_MEM_ERROR)
        return tdi_no_memory(error);
    if (code != Z_OK)
        return tdi_fail(error, TD_BAD_FILE, "%s: the gzip data is damaged or cut short (%s): fetch the file again",
                        file->path, reason);
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: cut short: %" PRId64 " of %" PRId64 " bytes are missing: fetch the file again", file->path,
                    wanted - got, wanted);
}

static td_status idx_bytes(const idx_file *file, void *to, int64_t count, tdi_error *error)
{
    char *bytes = to;
    int64_t done = 0;
    while (done < count) {
        int64_t left = count - done, piece = left < (1 << 30) ? left : 1 << 30;
        int got = gzread(file->gz, bytes + done, (unsigned)piece);
        done += got > 0 ? got : 0;
        if (got < piece)
            return idx_short(file, done, count, error);
    }
    return TD_OK;
}

/* Nothing follows the values; for a gzipped file this is also what checks its checksum. */
static td_status idx_end(const idx_file *file, tdi_error *error)
{
    char extra;
    int code, got = gzread(file->gz, &extra, 1);
    gzerror(file->gz, &code);
    if (got > 0)
        return tdi_fail(error, TD_BAD_FILE, "%s: more bytes follow the values that the header declares", file->path);
    return got < 0 || code != Z_OK ? idx_short(file, 0, 0, error) : TD_OK;
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3];
}

static td_status idx_dtype(const idx_file *file, unsigned char type, td_dtype *dtype, tdi_error *error)
{
    switch (type) {
    case 0x08:
        *dtype = TD_UINT8;
        return TD_OK;
    case 0x0C:
        *dtype = TD_INT32;
        return TD_OK;
    case 0x0D:
        *dtype = TD_FLOAT32;
        return TD_OK;
    case 0x0E:
        *dtype = TD_FLOAT64;
        return TD_OK;
    case 0x09:
    case 0x0B:
        return tdi_fail(error, TD_UNSUPPORTED,
                        "%s: its values are %s integers: write them as unsigned bytes, 32-bit integers or floats",
                        file->path, type == 0x09 ? "signed 8-bit" : "16-bit");
    default:
        return tdi_fail(error, TD_BAD_FILE, "%s: 0x%02x is not a type of IDX values", file->path, type);
    }
}

static td_status idx_header(const idx_file *file, tdi_array *array, tdi_error *error)
{
    unsigned char magic[4], extents[4 * (TD_MAX_RANK + 1)];
    TDI_TRY(idx_bytes(file, magic, sizeof magic, error));
    if (magic[0] != 0 || magic[1] != 0)
        return tdi_fail(error, TD_BAD_FILE, "%s: not an IDX file: it begins with %02x %02x, not 00 00", file->path,
                        magic[0], magic[1]);
    TDI_TRY(idx_dtype(file, magic[2], &array->dtype, error));
    int rank = magic[3];
    if (rank < 1 || rank > TD_MAX_RANK + 1)
        return tdi_fail(error, TD_BAD_FILE, "%s: it declares %d dimensions; 1 to %d can be read", file->path, rank,
                        TD_MAX_RANK + 1);
    TDI_TRY(idx_bytes(file, extents, 4 * rank, error));
    array->samples = big_endian(extents);
    array->shape.rank = rank - 1;
    for (int i = 1; i < rank; i++)
        array->shape.dim[i - 1] = big_endian(extents + 4 * i);
    return TD_OK;
}

static td_status idx_size(const idx_file *file, const tdi_array *array, size_t *size, tdi_error *error)
{
    int64_t header = 4 + 4 * ((int64_t)array->shape.rank + 1), room = file->size - header;
    if (!gzdirect(file->gz) && __builtin_mul_overflow(file->size, DEFLATE_MAX_RATIO, &room))
        room = INT64_MAX;
    if (!tdi_array_size(array, size) || (int64_t)*size > room)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s: the header declares more values than its %" PRId64
                        " bytes can hold: it is cut short or damaged",
                        file->path, file->size);
    return TD_OK;
}

static void idx_swap(void *values, size_t size, size_t element)
{
    unsigned char *bytes = values;
    for (size_t at = 0; at < size; at += element)
        for (size_t low = 0, high = element - 1; low < high; low++, high--) {
            unsigned char other = bytes[at + low];
            bytes[at + low] = bytes[at + high];
            bytes[at + high] = other;
        }
}

static td_status idx_values(const idx_file *file, tdi_array *array, tdi_error *error)
{
    size_t size;
    TDI_TRY(idx_header(file, array, error));
    TDI_TRY(idx_size(file, array, &size, error));
    array->values = array->owned = malloc(size ? size : 1);
    if (!array->owned)
        return tdi_no_memory(error);
    TDI_TRY(idx_bytes(file, array->owned, (int64_t)size, error));
    TDI_TRY(idx_end(file, error));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    idx_swap(array->owned, size, td_dtype_size(array->dtype));
#endif
    return TD_OK;
}

td_status tdi_idx_read(const char *path, tdi_array *array, tdi_error *error)
{
    idx_file file;
    *array = (tdi_array){0};
    TDI_TRY(idx_open(path, &file, error));
    td_status status = idx_values(&file, array, error);
    gzclose(file.gz);
    if (status != TD_OK) {
        free(array->owned);
        array->values = array->owned = NULL;
    }
    return status;
}
