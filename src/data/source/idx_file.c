/* idx_file.c - one IDX file (the format of MNIST): two zero bytes, a type, a rank, then that many big-endian 32-bit
 * extents, the first of which is the number of samples, then the values, big-endian, and nothing after them.
 *
 * zlib's gzread reads plain and gzipped files alike. The header is not believed: the sizes it declares are compared
 * with the file's before memory is allocated. */
#include "data/source/idx_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data/stored_array.h"
#include "files/open_regular.h"

#define DEFLATE_MAX_RATIO 1032 /* no deflate stream expands by a larger factor */

typedef struct idx_file {
    const char *path;
    gzFile gz;
    int fd;       /* underlies the gzFile */
    int64_t size; /* bytes on disk */
} idx_file;

static td_status idx_open(const char *path, idx_file *file, tdi_error *error)
{
    *file = (idx_file){.path = path};
    TDI_TRY(tdi_regular_open(path, &file->fd, &file->size, error));
    file->gz = gzdopen(file->fd, "rb");
    if (!file->gz) {
        close(file->fd);
        return tdi_no_memory(error);
    }
    gzbuffer(file->gz, 1 << 17);
    return TD_OK;
}

/* Fails with the sentence for a read that gave `got` of `wanted` bytes. */
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

static td_status idx_longer(const idx_file *file, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "%s: more bytes follow the values that the header declares", file->path);
}

/* Checks that nothing follows the values. Reading to the end makes zlib verify a gzipped file's checksum. */
static td_status idx_end(const idx_file *file, tdi_error *error)
{
    char extra;
    int code, got = gzread(file->gz, &extra, 1);
    gzerror(file->gz, &code);
    if (got > 0)
        return idx_longer(file, error);
    return got < 0 || code != Z_OK ? idx_short(file, 0, 0, error) : TD_OK;
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3];
}

static td_status idx_numbers(const idx_file *file, unsigned char type, tdi_numbers *numbers, tdi_error *error)
{
    static const struct {
        unsigned char type;
        tdi_number_kind kind;
        unsigned size;
    } types[] = {{0x08, TDI_NUMBERS_UNSIGNED, 1}, {0x09, TDI_NUMBERS_SIGNED, 1}, {0x0B, TDI_NUMBERS_SIGNED, 2},
                 {0x0C, TDI_NUMBERS_SIGNED, 4},   {0x0D, TDI_NUMBERS_FLOAT, 4},  {0x0E, TDI_NUMBERS_FLOAT, 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type && tdi_numbers_of(types[i].kind, types[i].size, true, numbers))
            return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "%s: 0x%02x is not a type of IDX values", file->path, type);
}

static td_status idx_header(const idx_file *file, tdi_numbers *numbers, tdi_array *array, tdi_error *error)
{
    unsigned char magic[4], extents[4 * (TD_MAX_RANK + 1)];
    TDI_TRY(idx_bytes(file, magic, sizeof magic, error));
    if (magic[0] != 0 || magic[1] != 0)
        return tdi_fail(error, TD_BAD_FILE, "%s: not an IDX file: it begins with %02x %02x, not 00 00", file->path,
                        magic[0], magic[1]);
    TDI_TRY(idx_numbers(file, magic[2], numbers, error));
    array->dtype = numbers->dtype;
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

/* Sets the sizes in bytes of the header and of the values, and checks them. */
static td_status idx_sizes(const idx_file *file, const tdi_numbers *numbers, const tdi_array *array, int64_t *header,
                           int64_t *values, tdi_error *error)
{
    size_t size;
    bool possible = tdi_array_size(array, &size);
    int64_t room;
    *header = 4 + 4 * ((int64_t)array->shape.rank + 1);
    *values = (int64_t)(size / td_dtype_size(numbers->dtype) * numbers->size);
    room = file->size - *header;
    if (!gzdirect(file->gz) && __builtin_mul_overflow(file->size, DEFLATE_MAX_RATIO, &room))
        room = INT64_MAX;
    if (!possible || *values > room)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s: the header declares more values than its %" PRId64
                        " bytes can hold: it is cut short or damaged",
                        file->path, file->size);
    if (gzdirect(file->gz) && *values < room)
        return idx_longer(file, error);
    return TD_OK;
}

static td_status unpack_pieces(const idx_file *file, int64_t size, tdi_store *store, tdi_error *error)
{
    enum { PIECE = 1 << 18 };
    char *piece = malloc(PIECE);
    td_status status = piece ? TD_OK : tdi_no_memory(error);
    for (int64_t done = 0, count; done < size && status == TD_OK; done += count) {
        count = size - done < PIECE ? size - done : PIECE;
        status = idx_bytes(file, piece, count, error);
        if (status == TD_OK)
            status = tdi_store_put(store, piece, (size_t)count, error);
    }
    free(piece);
    if (status == TD_OK)
        status = idx_end(file, error);
    return status == TD_OK ? tdi_store_end(store, error) : status;
}

static td_status idx_unpack(const idx_file *file, int64_t size, tdi_store **store, tdi_error *error)
{
    TDI_TRY(tdi_store_create(file->path, size, store, error));
    td_status status = unpack_pieces(file, size, *store, error);
    if (status != TD_OK)
        tdi_store_free(*store);
    return status;
}

static td_status idx_values(const idx_file *file, tdi_array *array, tdi_error *error)
{
    tdi_stored stored = {0};
    int64_t header, size;
    TDI_TRY(idx_header(file, &stored.numbers, array, error));
    TDI_TRY(idx_sizes(file, &stored.numbers, array, &header, &size, error));
    TDI_TRY(gzdirect(file->gz) ? tdi_store_part(file->fd, header, size, file->path, &stored.store, error)
                               : idx_unpack(file, size, &stored.store, error));
    return tdi_array_from_store(&stored, array, error);
}

td_status tdi_idx_read(const char *path, tdi_array *array, tdi_error *error)
{
    idx_file file;
    *array = (tdi_array){0};
    TDI_TRY(idx_open(path, &file, error));
    td_status status = idx_values(&file, array, error);
    gzclose(file.gz);
    return status;
}
