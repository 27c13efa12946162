/* zip.c - reads archives by libzip, with limits, and writes them by libzip into an atomic file. */
#include "files/zip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>
#include <zlib.h>

#include "base/machine.h"
#include "files/atomic_file.h"

/* A larger entry that expands by more than BOMB_RATIO is a bomb. */
#define BOMB_FLOOR ((zip_uint64_t)256 << 20)
#define BOMB_RATIO 100

enum { PIECE = 1 << 18 };

struct tdi_zip {
    zip_t *archive;
    FILE *file;        /* read by libzip and closed with the archive */
    zip_uint64_t size; /* bytes of the archive on disk */
    char path[256];    /* for messages */
};

/* ---- reading ---- */

static td_status open_failure(const char *path, int code, tdi_error *error)
{
    zip_error_t reason;
    zip_error_init_with_code(&reason, code);
    td_status status = code == ZIP_ER_MEMORY                        ? TD_NO_MEMORY
                       : code == ZIP_ER_OPEN || code == ZIP_ER_READ ? TD_IO
                                                                    : TD_BAD_FILE;
    tdi_fail(error, status, "cannot read \"%s\" as a zip archive: %s%s", path, zip_error_strerror(&reason),
             status == TD_BAD_FILE ? "; it may be cut short, since an archive's index is at its end" : "");
    zip_error_fini(&reason);
    return status;
}

/* Refuses all but regular files; opening a pipe would block. */
static td_status check_regular(const char *path, zip_uint64_t *size, tdi_error *error)
{
    struct stat info;
    if (!path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "cannot open a file: the path is NULL");
    if (stat(path, &info) != 0)
        return tdi_fail(error, errno == ENOENT ? TD_NOT_FOUND : TD_IO, "cannot open \"%s\": %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tdi_fail(error, TD_BAD_FILE, "cannot read \"%s\": it is %s", path,
                        S_ISDIR(info.st_mode) ? "a folder" : "no regular file");
    *size = (zip_uint64_t)info.st_size;
    return TD_OK;
}

/* Hands libzip an open file, so that its position can be asked for (place_of). */
static td_status open_archive(tdi_zip *zip, const char *path, tdi_error *error)
{
    zip_error_t reason;
    zip->file = fopen(path, "rbe");
    if (!zip->file)
        return tdi_fail(error, TD_IO, "cannot open \"%s\": %s", path, strerror(errno));
    zip_error_init(&reason);
    zip_source_t *source = zip_source_filep_create(zip->file, 0, -1, &reason);
    if (!source)
        fclose(zip->file);
    zip->archive = source ? zip_open_from_source(source, ZIP_RDONLY, &reason) : NULL;
    td_status status = zip->archive ? TD_OK : open_failure(path, zip_error_code_zip(&reason), error);
    if (source && !zip->archive)
        zip_source_free(source);
    zip_error_fini(&reason);
    return status;
}

td_status tdi_zip_open(const char *path, tdi_zip **zip, tdi_error *error)
{
    zip_uint64_t size = 0;
    *zip = NULL;
    TDI_TRY(check_regular(path, &size, error));
    tdi_zip *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    strncpy(made->path, path, sizeof made->path - 1);
    made->size = size;
    td_status status = open_archive(made, path, error);
    if (status == TD_OK)
        *zip = made;
    else
        free(made);
    return status;
}

void tdi_zip_close(tdi_zip *zip)
{
    if (!zip)
        return;
    zip_discard(zip->archive);
    free(zip);
}

int64_t tdi_zip_count(const tdi_zip *zip)
{
    return zip_get_num_entries(zip->archive, 0);
}

const char *tdi_zip_name(const tdi_zip *zip, int64_t index)
{
    return index < 0 ? NULL : zip_get_name(zip->archive, (zip_uint64_t)index, 0);
}

bool tdi_zip_has(const tdi_zip *zip, const char *name)
{
    return zip_name_locate(zip->archive, name, 0) >= 0;
}

static td_status check_entry(const tdi_zip *zip, const zip_stat_t *entry, const char *name, size_t limit,
                             tdi_error *error)
{
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC;
    if ((entry->valid & needed) != needed)
        return tdi_fail(error, TD_BAD_FILE, "\"%s\": the archive does not say how large entry \"%s\" is", zip->path,
                        name);
    if ((entry->valid & ZIP_STAT_ENCRYPTION_METHOD) && entry->encryption_method != ZIP_EM_NONE)
        return tdi_fail(error, TD_UNSUPPORTED, "\"%s\": entry \"%s\" is encrypted", zip->path, name);
    if (entry->size > limit)
        return tdi_fail(error, TD_BAD_FILE, "\"%s\": entry \"%s\" is %llu bytes large; at most %zu are accepted",
                        zip->path, name, (unsigned long long)entry->size, limit);
    if (entry->comp_size > zip->size)
        return tdi_fail(error, TD_BAD_FILE, "\"%s\": entry \"%s\" claims %llu bytes, more than the whole file has",
                        zip->path, name, (unsigned long long)entry->comp_size);
    if (entry->size > BOMB_FLOOR && entry->size / BOMB_RATIO > entry->comp_size)
        return tdi_fail(
            error, TD_BAD_FILE,
            "\"%s\": entry \"%s\" would expand from %llu to %llu bytes, as a decompression bomb does; if you "
            "trust it, write the archive anew without compression",
            zip->path, name, (unsigned long long)entry->comp_size, (unsigned long long)entry->size);
    return TD_OK;
}

static td_status entry_failure(const tdi_zip *zip, const char *name, const char *reason, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "\"%s\": entry \"%s\" is damaged: %s", zip->path, name, reason);
}

/* Reads to the entry's end, because libzip compares size and checksum there. */
static td_status read_whole(const tdi_zip *zip, zip_file_t *entry, const char *name, char *bytes, size_t size,
                            tdi_error *error)
{
    size_t done = 0;
    for (;;) {
        char beyond;
        bool at_end = done == size;
        zip_int64_t got = zip_fread(entry, at_end ? &beyond : bytes + done, at_end ? 1 : size - done);
        if (got < 0)
            return entry_failure(zip, name, zip_error_strerror(zip_file_get_error(entry)), error);
        if (got == 0)
            return at_end ? TD_OK : entry_failure(zip, name, "it is truncated", error);
        if (at_end)
            return entry_failure(zip, name, "it is longer than the archive says", error);
        done += (size_t)got;
    }
}

static td_status read_entry(tdi_zip *zip, zip_uint64_t index, const char *name, char *bytes, size_t size,
                            tdi_error *error)
{
    zip_file_t *entry = zip_fopen_index(zip->archive, index, 0);
    if (!entry)
        return entry_failure(zip, name, zip_strerror(zip->archive), error);
    td_status status = read_whole(zip, entry, name, bytes, size, error);
    if (zip_fclose(entry) != 0 && status == TD_OK)
        status = entry_failure(zip, name, "its checksum is wrong", error);
    return status;
}

static td_status find_entry(tdi_zip *zip, const char *name, size_t limit, zip_stat_t *entry, tdi_error *error)
{
    zip_int64_t index = zip_name_locate(zip->archive, name, 0);
    if (index < 0)
        return tdi_fail(error, TD_NOT_FOUND, "\"%s\" has no entry \"%s\"", zip->path, name);
    if (zip_stat_index(zip->archive, (zip_uint64_t)index, 0, entry) != 0)
        return entry_failure(zip, name, zip_strerror(zip->archive), error);
    return check_entry(zip, entry, name, limit, error);
}

td_status tdi_zip_read(tdi_zip *zip, const char *name, size_t limit, void **bytes, size_t *size, tdi_error *error)
{
    zip_stat_t entry;
    *bytes = NULL;
    *size = 0;
    TDI_TRY(find_entry(zip, name, limit, &entry, error));
    char *buffer = malloc(entry.size ? (size_t)entry.size : 1);
    if (!buffer)
        return tdi_no_memory(error);
    td_status status = read_entry(zip, entry.index, name, buffer, (size_t)entry.size, error);
    if (status != TD_OK) {
        free(buffer);
        return status;
    }
    *bytes = buffer;
    *size = (size_t)entry.size;
    return TD_OK;
}

/* ---- entries as stores ---- */

/* The offset of an uncompressed entry's bytes in the archive, which libzip does not tell: one less than the file's
 * position after the first of them has been read. */
static int64_t place_of(const tdi_zip *zip, zip_uint64_t index)
{
    char first;
    zip_file_t *entry = zip_fopen_index(zip->archive, index, 0);
    int64_t at = entry && zip_fread(entry, &first, 1) == 1 ? ftello(zip->file) - 1 : -1;
    if (entry)
        zip_fclose(entry);
    return at;
}

/* Sets *crc to the CRC-32 of a whole store. False when it cannot be read. */
static bool checksum_of(const tdi_store *store, uint32_t *crc)
{
    unsigned char *piece = malloc(PIECE);
    uLong sum = crc32(0, NULL, 0);
    int64_t at = 0, size = tdi_store_size(store);
    for (int64_t count; piece && at < size; at += count) {
        count = size - at < PIECE ? size - at : PIECE;
        if (tdi_store_read(store, at, piece, count, NULL) != TD_OK)
            break;
        sum = crc32(sum, piece, (uInt)count);
    }
    free(piece);
    *crc = (uint32_t)sum;
    return at == size;
}

/* A store of the entry's place in the archive; NULL unless it is there uncompressed, whole and undamaged. */
static tdi_store *store_in_place(const tdi_zip *zip, const zip_stat_t *entry, const char *what)
{
    uint32_t crc;
    tdi_store *store = NULL;
    int64_t size = (int64_t)entry->size, at = -1;
    if ((entry->valid & ZIP_STAT_COMP_METHOD) && entry->comp_method == ZIP_CM_STORE)
        at = place_of(zip, entry->index);
    if (at < 0 || at > (int64_t)zip->size - size ||
        tdi_store_part(fileno(zip->file), at, size, what, &store, NULL) != TD_OK)
        return NULL;
    if (checksum_of(store, &crc) && crc == entry->crc)
        return store;
    tdi_store_free(store);
    return NULL;
}

/* Unpacks to the entry's end, as read_whole does. */
static td_status unpack_pieces(const tdi_zip *zip, zip_file_t *entry, const char *name, tdi_store *store,
                               int64_t expected, tdi_error *error)
{
    char *piece = malloc(PIECE);
    td_status status = piece ? TD_OK : tdi_no_memory(error);
    zip_int64_t got = 1;
    while (status == TD_OK && (got = zip_fread(entry, piece, PIECE)) > 0)
        status = tdi_store_size(store) + got > expected
                     ? entry_failure(zip, name, "it is longer than the archive says", error)
                     : tdi_store_put(store, piece, (size_t)got, error);
    free(piece);
    if (status == TD_OK && got < 0)
        return entry_failure(zip, name, zip_error_strerror(zip_file_get_error(entry)), error);
    if (status == TD_OK && tdi_store_size(store) < expected)
        return entry_failure(zip, name, "it is truncated", error);
    return status;
}

static td_status unpack(const tdi_zip *zip, const zip_stat_t *facts, const char *name, tdi_store *store,
                        tdi_error *error)
{
    zip_file_t *entry = zip_fopen_index(zip->archive, facts->index, 0);
    if (!entry)
        return entry_failure(zip, name, zip_strerror(zip->archive), error);
    td_status status = unpack_pieces(zip, entry, name, store, (int64_t)facts->size, error);
    if (zip_fclose(entry) != 0 && status == TD_OK)
        status = entry_failure(zip, name, "its checksum is wrong", error);
    return status == TD_OK ? tdi_store_end(store, error) : status;
}

static td_status make_store(tdi_zip *zip, const char *name, bool once, tdi_store **store, tdi_error *error)
{
    zip_stat_t entry;
    char what[sizeof zip->path + 160];
    TDI_TRY(find_entry(zip, name, INT64_MAX, &entry, error));
    snprintf(what, sizeof what, "%s: %.128s", zip->path, name);
    *store = once || !tdi_memory_holds((int64_t)entry.size) ? store_in_place(zip, &entry, what) : NULL;
    if (*store)
        return TD_OK;
    TDI_TRY(tdi_store_create(what, (int64_t)entry.size, store, error));
    td_status status = unpack(zip, &entry, name, *store, error);
    if (status == TD_OK)
        return TD_OK;
    tdi_store_free(*store);
    *store = NULL;
    return status;
}

td_status tdi_zip_store(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error)
{
    return make_store(zip, name, false, store, error);
}

td_status tdi_zip_store_in_place(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error)
{
    return make_store(zip, name, true, store, error);
}

/* ---- writing ---- */

/* libzip's view of the atomic file, which it can only write. libzip's own temporary files would neither be fsynced nor
 * have unpredictable names. */
typedef struct sink {
    tdi_atomic *file;
    int64_t end;
    zip_error_t reason; /* libzip asks for it */
    tdi_error *error;   /* the user's sentence */
} sink;

static zip_int64_t sink_result(sink *to, td_status status)
{
    if (status == TD_OK)
        return 0;
    zip_error_set(&to->reason, ZIP_ER_WRITE, 0);
    return -1;
}

static zip_int64_t sink_write(sink *to, const void *data, zip_uint64_t length)
{
    if (sink_result(to, tdi_atomic_write(to->file, data, (size_t)length, to->error)) < 0)
        return -1;
    if (to->end < tdi_atomic_position(to->file))
        to->end = tdi_atomic_position(to->file);
    return (zip_int64_t)length;
}

/* libzip seeks back to fill in an entry's size and checksum. */
static zip_int64_t sink_seek(sink *to, void *data, zip_uint64_t length)
{
    zip_int64_t target = zip_source_seek_compute_offset((zip_uint64_t)tdi_atomic_position(to->file),
                                                        (zip_uint64_t)to->end, data, length, &to->reason);
    return target < 0 ? -1 : sink_result(to, tdi_atomic_seek(to->file, target, to->error));
}

static zip_int64_t tell_size(zip_uint64_t size, void *data)
{
    zip_stat_t *info = data;
    zip_stat_init(info);
    info->size = size;
    info->valid = ZIP_STAT_SIZE;
    return sizeof *info;
}

static zip_int64_t sink_call(void *user, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    sink *to = user;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
            ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE,
            ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&to->reason, data, length);
    case ZIP_SOURCE_STAT:
        return tell_size(0, data);
    case ZIP_SOURCE_WRITE:
        return sink_write(to, data, length);
    case ZIP_SOURCE_SEEK_WRITE:
        return sink_seek(to, data, length);
    case ZIP_SOURCE_TELL_WRITE:
        return tdi_atomic_position(to->file);
    default: /* opening, reading, committing and freeing need nothing */
        return 0;
    }
}

/* libzip's view of an entry whose content is made piece by piece. */
typedef struct pieces {
    const tdi_zip_entry *entry; /* borrowed */
    size_t at;
} pieces;

static zip_int64_t pieces_read(pieces *from, void *to, zip_uint64_t length)
{
    size_t left = from->entry->size - from->at, size = length < left ? (size_t)length : left;
    from->entry->piece(from->entry->bytes, from->at, to, size);
    from->at += size;
    return (zip_int64_t)size;
}

static zip_int64_t pieces_call(void *user, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    pieces *from = user;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    case ZIP_SOURCE_OPEN:
        from->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return pieces_read(from, data, length);
    case ZIP_SOURCE_STAT:
        return tell_size(from->entry->size, data);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&(zip_error_t){0}, data, length);
    case ZIP_SOURCE_FREE:
        free(from);
        return 0;
    default:
        return 0;
    }
}

static zip_source_t *pieces_source(zip_t *archive, const tdi_zip_entry *entry)
{
    pieces *from = calloc(1, sizeof *from);
    if (!from)
        return NULL;
    from->entry = entry;
    zip_source_t *source = zip_source_function(archive, pieces_call, from);
    if (!source)
        free(from);
    return source;
}

static bool add_entry(zip_t *archive, const char *name, zip_source_t *content)
{
    if (!content)
        return false;
    zip_int64_t index = zip_file_add(archive, name, content, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(content);
        return false;
    }
    /* The date is always 1 January 1980, so that equal content gives equal bytes. */
    return zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(archive, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

/* The content of an archive: entries in memory, or in files. */
typedef struct contents {
    int count;
    const tdi_zip_entry *entries; /* NULL: the content is in files */
    const tdi_zip_file *files;
} contents;

static bool add_content(zip_t *archive, const contents *all, int i)
{
    const tdi_zip_entry *entry = all->entries ? &all->entries[i] : NULL;
    if (entry && entry->piece)
        return add_entry(archive, entry->name, pieces_source(archive, entry));
    if (entry)
        return add_entry(archive, entry->name, zip_source_buffer(archive, entry->bytes, entry->size, 0));
    return add_entry(archive, all->files[i].name, zip_source_file(archive, all->files[i].path, 0, -1));
}

static td_status fill_archive(sink *to, const char *path, const contents *all, tdi_error *error)
{
    zip_source_t *source = zip_source_function_create(sink_call, to, &to->reason);
    zip_t *archive = source ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &to->reason) : NULL;
    if (!archive) {
        zip_source_free(source);
        return tdi_fail(error, TD_INTERNAL, "cannot begin the archive \"%s\": %s", path,
                        zip_error_strerror(&to->reason));
    }
    bool good = true;
    for (int i = 0; i < all->count && good; i++)
        good = add_content(archive, all, i);
    if (good && zip_close(archive) == 0)
        return TD_OK;
    tdi_fail(error, TD_IO, "cannot write the archive \"%s\": %s", path, zip_strerror(archive));
    zip_discard(archive);
    return TD_IO;
}

static td_status write_archive(const char *path, const contents *all, tdi_error *error)
{
    sink to = {.error = error};
    TDI_TRY(tdi_atomic_create(path, &to.file, error));
    zip_error_init(&to.reason);
    td_status status = fill_archive(&to, path, all, error);
    zip_error_fini(&to.reason);
    return tdi_atomic_end(to.file, status, error);
}

td_status tdi_zip_write(const char *path, int count, const tdi_zip_entry *entries, tdi_error *error)
{
    return write_archive(path, &(contents){.count = count, .entries = entries}, error);
}

td_status tdi_zip_write_files(const char *path, int count, const tdi_zip_file *files, tdi_error *error)
{
    return write_archive(path, &(contents){.count = count, .files = files}, error);
}
