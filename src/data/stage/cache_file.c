/* cache_file.c - the file of td_cache.
 *
 * A page of facts that identify the data, [masked CRC-32C of the rest 4] [text, padded with zeros]; every column's
 * samples, packed as they are stored; a masked CRC-32C of 4 bytes for each sample, column by column; a masked CRC-32C
 * of all these. The file is written beside its name and renamed once it has every sample. */
#define _GNU_SOURCE
#include "data/stage/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size_limit.h"
#include "base/text.h"
#include "files/atomic_file.h"
#include "files/tfrecord_file.h"

enum { PAGE = 4096, PROBES = 16 };

struct tdi_cache_file {
    char *path;
    int fd;
    tdi_atomic *writing; /* NULL: the file is complete */
    int columns;
    int64_t samples, row_bytes[TDI_MAX_COLUMNS], begin[TDI_MAX_COLUMNS], sums_begin, bytes;
    uint32_t *sums; /* [columns][samples], then the checksum of all of them */
    char page[PAGE];
};

static uint32_t *sum_of(const tdi_cache_file *file, int column, int64_t row)
{
    return &file->sums[column * file->samples + row];
}

static size_t sums_size(const tdi_cache_file *file)
{
    return (size_t)(file->columns * file->samples) * sizeof *file->sums;
}

/* ---- facts ---- */

/* Adds checksums of a few samples to the facts, in which differences show that the other facts do not have (features,
 * image sizes). */
static td_status probe(tdi_source *of, tdi_text *facts, tdi_error *error)
{
    for (int column = 0; column < tdi_source_columns(of); column++) {
        const tdi_column *c = &of->columns[column];
        size_t size = tdi_column_bytes(c);
        void *sample = malloc(size + 1);
        td_status status = sample ? TD_OK : tdi_no_memory(error);
        for (int i = 0; i < PROBES && status == TD_OK; i++) {
            int64_t row = (of->samples - 1) * i / (PROBES - 1);
            status = of->gather(of, column, &row, 1, sample, c->dtype, error);
            if (status == TD_OK)
                tdi_text_format(facts, " %08" PRIx32, tdi_masked_crc(sample, size));
        }
        free(sample);
        TDI_TRY(status);
    }
    return TD_OK;
}

static td_status write_facts(tdi_cache_file *file, tdi_source *of, tdi_error *error)
{
    tdi_text facts = {0};
    const uint16_t one = 1;
    tdi_text_format(&facts, "tandem cache 1, %s first\n%" PRId64 " samples, stamp %016" PRIx64 "\n",
                    *(const char *)&one ? "low byte" : "high byte", of->samples, of->stamp);
    for (int i = 0; i < file->columns; i++) {
        const tdi_column *column = &of->columns[i];
        tdi_text_format(&facts, "%s %s", column->name, td_dtype_name(column->dtype));
        for (int d = 0; d < column->shape.rank; d++)
            tdi_text_format(&facts, " %" PRId64, column->shape.dim[d]);
        tdi_text_add(&facts, "\n");
    }
    td_status status = probe(of, &facts, error);
    if (status == TD_OK && facts.failed)
        status = tdi_no_memory(error);
    if (status == TD_OK)
        snprintf(file->page + 4, PAGE - 4, "%s", facts.chars);
    uint32_t sum = tdi_masked_crc(file->page + 4, PAGE - 4);
    memcpy(file->page, &sum, sizeof sum);
    tdi_text_free(&facts);
    return status;
}

static td_status lay_out(tdi_cache_file *file, const tdi_source *of, tdi_error *error)
{
    file->columns = tdi_source_columns(of);
    file->samples = of->samples;
    file->bytes = PAGE;
    bool overflow = false;
    for (int i = 0; i < file->columns; i++) {
        int64_t all;
        file->row_bytes[i] = (int64_t)tdi_column_bytes(&of->columns[i]);
        file->begin[i] = file->bytes;
        overflow |= __builtin_mul_overflow(file->row_bytes[i], of->samples, &all) ||
                    __builtin_add_overflow(file->bytes, all, &file->bytes);
    }
    file->sums_begin = file->bytes;
    overflow |= __builtin_add_overflow(file->bytes, (int64_t)sums_size(file) + 4, &file->bytes);
    if (overflow)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: its samples are more than a file can hold", of->name);
    file->sums = calloc(1, sums_size(file) + 4);
    return file->sums ? TD_OK : tdi_no_memory(error);
}

/* ---- bytes ---- */

static td_status read_at(const tdi_cache_file *file, int64_t at, void *to, int64_t size, tdi_error *error)
{
    for (int64_t done = 0; done < size;) {
        ssize_t got = pread(file->fd, (char *)to + done, (size_t)(size - done), at + done);
        if (got == 0)
            return tdi_fail(error, TD_BAD_FILE, "%s: the cache became shorter while it was read; remove it",
                            file->path);
        if (got < 0 && errno != EINTR)
            return tdi_fail(error, TD_IO, "%s: cannot be read: %s", file->path, strerror(errno));
        done += got > 0 ? got : 0;
    }
    return TD_OK;
}

td_status tdi_cache_file_read(const tdi_cache_file *file, int column, int64_t row, void *to, tdi_error *error)
{
    int64_t bytes = file->row_bytes[column];
    TDI_TRY(read_at(file, file->begin[column] + row * bytes, to, bytes, error));
    if (tdi_masked_crc(to, (size_t)bytes) == *sum_of(file, column, row))
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: sample %" PRId64
                    " is damaged in the cache (its checksum does not match); remove the file, and "
                    "it is made anew",
                    file->path, row);
}

td_status tdi_cache_file_write(tdi_cache_file *file, int column, int64_t row, const void *from, tdi_error *error)
{
    int64_t bytes = file->row_bytes[column];
    *sum_of(file, column, row) = tdi_masked_crc(from, (size_t)bytes);
    return tdi_atomic_write_at(file->writing, file->begin[column] + row * bytes, from, (size_t)bytes, error);
}

td_status tdi_cache_file_complete(tdi_cache_file *file, tdi_error *error)
{
    tdi_atomic *writing = file->writing;
    file->sums[file->columns * file->samples] = tdi_masked_crc(file->sums, sums_size(file));
    td_status status = tdi_atomic_write_at(writing, file->sums_begin, file->sums, sums_size(file) + 4, error);
    if (status == TD_OK)
        status = tdi_atomic_write_at(writing, 0, file->page, PAGE, error);
    file->writing = NULL;
    return tdi_atomic_end(writing, status, error);
}

/* ---- opening ---- */

/* Allocates the whole file at once, so that a full disk is found now and not after hours. */
static td_status begin_file(tdi_cache_file *file, tdi_error *error)
{
    TDI_TRY(tdi_atomic_create(file->path, &file->writing, error));
    file->fd = open(tdi_atomic_temporary(file->writing), O_RDWR | O_CLOEXEC);
    if (file->fd < 0)
        return tdi_fail(error, TD_IO, "%s: cannot be opened: %s", file->path, strerror(errno));
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    int failed = posix_fallocate(file->fd, 0, file->bytes);
    tdi_size_limit_end(&limit);
    if (!failed)
        return TD_OK;
    return tdi_fail(error, TD_IO, "%s: there is no room for the cache's %" PRId64 " bytes: %s; name another folder",
                    file->path, file->bytes, strerror(failed));
}

static td_status not_a_cache(const tdi_cache_file *file, const char *what, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "%s: %s; remove it, or name another file for the cache", file->path, what);
}

static td_status check_file(tdi_cache_file *file, tdi_error *error)
{
    char page[PAGE];
    uint32_t sum;
    struct stat facts;
    if (fstat(file->fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size < PAGE)
        return not_a_cache(file, "it is no cache of Tandem's", error);
    TDI_TRY(read_at(file, 0, page, PAGE, error));
    memcpy(&sum, page, sizeof sum);
    if (sum != tdi_masked_crc(page + 4, PAGE - 4))
        return not_a_cache(file, "it is no cache of Tandem's, or damaged", error);
    if (memcmp(page, file->page, PAGE) != 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: the cache was made of other data, or of this before it changed, or read otherwise; remove "
                        "it, or name another file",
                        file->path);
    if (facts.st_size != file->bytes)
        return not_a_cache(file, "the cache is cut short", error);
    TDI_TRY(read_at(file, file->sums_begin, file->sums, (int64_t)sums_size(file) + 4, error));
    if (file->sums[file->columns * file->samples] == tdi_masked_crc(file->sums, sums_size(file)))
        return TD_OK;
    return not_a_cache(file, "the cache is damaged", error);
}

static td_status open_file(tdi_cache_file *file, tdi_source *of, bool *complete, tdi_error *error)
{
    TDI_TRY(lay_out(file, of, error));
    TDI_TRY(write_facts(file, of, error));
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a pipe must not block */
    *complete = file->fd >= 0;
    if (*complete)
        return check_file(file, error);
    if (errno != ENOENT)
        return tdi_fail(error, TD_IO, "%s: cannot be opened: %s", file->path, strerror(errno));
    return begin_file(file, error);
}

td_status tdi_cache_file_open(const char *path, tdi_source *of, tdi_cache_file **file, bool *complete, tdi_error *error)
{
    tdi_cache_file *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->fd = -1;
    made->path = strdup(path);
    td_status status = made->path ? open_file(made, of, complete, error) : tdi_no_memory(error);
    if (status == TD_OK)
        *file = made;
    else
        tdi_cache_file_close(made);
    return status;
}

void tdi_cache_file_close(tdi_cache_file *file)
{
    if (!file)
        return;
    tdi_atomic_abort(file->writing);
    if (file->fd >= 0)
        close(file->fd);
    free(file->sums);
    free(file->path);
    free(file);
}
