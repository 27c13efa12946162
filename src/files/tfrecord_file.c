/* tfrecord_file.c - TFRecord files. A record: [length 8] [masked CRC-32C of the length 4] [data] [masked CRC-32C of the
 * data 4], little-endian; the format is described in TensorFlow's core/lib/io/record_writer.h.
 *
 * Opening reads only the lengths and the checksums. Checksums are compared with the data when a record is read. */
#define _GNU_SOURCE
#include "files/tfrecord_file.h"

#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/vec.h"
#include "files/open_regular.h"
#include "files/temporary_file.h"

#define HEAD     12 /* bytes before the data */
#define FOOT     4  /* and behind */
#define MAX_DATA INT32_MAX

typedef struct record {
    int64_t offset, size; /* of the record; bytes of its data */
} record;

struct tdi_records {
    char *path;
    int fd;
    int64_t bytes;
    tdi_vec(record) found;
    char unpacking[128]; /* why a gzipped file could not be unpacked to its end; "": it was */
    uint32_t checksum;   /* over the checksums of the records' data */
    char *broken;        /* the sentence of the break; NULL: there is none */
};

uint32_t tdi_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    crc = ~crc;
    for (const unsigned char *at = bytes; size;) {
        int piece = size < MAX_DATA ? (int)size : MAX_DATA;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)at, piece, crc);
        at += piece;
        size -= (size_t)piece;
    }
    return ~crc;
}

uint32_t tdi_masked_crc(const void *bytes, size_t size)
{
    uint32_t crc = tdi_crc32c(0, bytes, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint64_t little_endian(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* ---- bytes of the file ---- */

/* Reads bytes [at, at + size), which the file is known to have. */
static td_status read_at(const tdi_records *records, int64_t at, void *to, int64_t size, tdi_error *error)
{
    for (int64_t done = 0; done < size;) {
        ssize_t got = pread(records->fd, (char *)to + done, (size_t)(size - done), at + done);
        if (got == 0)
            return tdi_fail(error, TD_BAD_FILE, "%s: it became shorter while it was read", records->path);
        if (got < 0 && errno != EINTR)
            return tdi_fail(error, TD_IO, "%s: cannot be read: %s", records->path, strerror(errno));
        done += got > 0 ? got : 0;
    }
    return TD_OK;
}

/* Unpacks as much as a damaged or truncated gzipped file has; the chain of records then shows where it ends. */
static td_status unpack(tdi_records *records, gzFile gz, int to, tdi_error *error)
{
    enum { PIECE = 1 << 17 };
    char *piece = malloc(PIECE);
    if (!piece)
        return tdi_no_memory(error);
    td_status status = TD_OK;
    int got, code = Z_OK;
    while (status == TD_OK && (got = gzread(gz, piece, PIECE)) > 0)
        status = tdi_temporary_write(to, piece, (size_t)got, records->path, error);
    const char *reason = gzerror(gz, &code), *words = strstr(reason, ">: "); /* skips "<fd:3>" */
    if (status == TD_OK && code == Z_ERRNO)
        status = tdi_fail(error, TD_IO, "%s: cannot be read: %s", records->path, strerror(errno));
    else if (code != Z_OK && code != Z_STREAM_END)
        snprintf(records->unpacking, sizeof records->unpacking, "%s", words ? words + 3 : reason);
    free(piece);
    return status;
}

static bool is_gzip(int fd)
{
    unsigned char magic[2];
    return pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

/* Replaces the descriptor of a gzipped file by one of its content. */
static td_status unpack_when_gzipped(tdi_records *records, tdi_error *error)
{
    if (!is_gzip(records->fd))
        return TD_OK;
    int plain;
    TDI_TRY(tdi_temporary_open(records->path, &plain, error));
    gzFile gz = gzdopen(records->fd, "rb");
    if (!gz) {
        close(plain);
        return tdi_no_memory(error);
    }
    td_status status = unpack(records, gz, plain, error);
    gzclose(gz);
    records->fd = plain;
    return status;
}

/* ---- the chain of records ---- */

static td_status broken(const tdi_records *records, int64_t offset, const char *reason, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "%s: record %d at offset %" PRId64 ": %s", records->path, records->found.count,
                    offset, reason);
}

/* Fails because the bytes end within a record, or because a gzipped file goes on behind them. */
static td_status ended(const tdi_records *records, int64_t offset, tdi_error *error)
{
    char reason[192];
    if (!records->unpacking[0])
        return broken(records, offset, "the file is cut short within it", error);
    snprintf(reason, sizeof reason, "the gzipped file cannot be unpacked from here on: %s", records->unpacking);
    return broken(records, offset, reason, error);
}

/* Reads a record's foot, which is added to the checksum, and the bytes behind it. */
static td_status read_behind(tdi_records *records, int64_t offset, unsigned char *to, int64_t size, tdi_error *error)
{
    unsigned char bytes[FOOT + HEAD];
    int64_t foot = records->found.count ? FOOT : 0;
    TDI_TRY(read_at(records, offset - foot, bytes, foot + size, error));
    records->checksum = tdi_crc32c(records->checksum, bytes, (size_t)foot);
    if (size) /* nothing follows the last record */
        memcpy(to, bytes + foot, (size_t)size);
    return TD_OK;
}

static td_status next_record(tdi_records *records, int64_t offset, tdi_error *error)
{
    unsigned char head[HEAD];
    if (records->bytes - offset < HEAD)
        return ended(records, offset, error);
    TDI_TRY(read_behind(records, offset, head, HEAD, error));
    if (little_endian(head + 8, 4) != tdi_masked_crc(head, 8))
        return broken(records, offset,
                      "the checksum of its length does not match: the file is damaged, or no TFRecord file", error);
    uint64_t size = little_endian(head, 8);
    if (size > MAX_DATA || (int64_t)size > records->bytes - offset - HEAD - FOOT)
        return ended(records, offset, error);
    return tdi_push(&records->found, (record){offset, (int64_t)size}) ? TD_OK : tdi_no_memory(error);
}

static td_status find_records(tdi_records *records, tdi_error *error)
{
    struct stat facts;
    if (fstat(records->fd, &facts) != 0)
        return tdi_fail(error, TD_IO, "%s: cannot be read: %s", records->path, strerror(errno));
    records->bytes = facts.st_size;
    for (int64_t offset = 0; offset < records->bytes;) {
        TDI_TRY(next_record(records, offset, error));
        offset += HEAD + records->found.at[records->found.count - 1].size + FOOT;
    }
    TDI_TRY(read_behind(records, records->bytes, NULL, 0, error));
    return records->unpacking[0] ? ended(records, records->bytes, error) : TD_OK;
}

bool tdi_records_begin(const char *path)
{
    int fd;
    unsigned char head[HEAD];
    if (tdi_regular_open(path, &fd, NULL, NULL) != TD_OK)
        return false;
    bool begins = pread(fd, head, HEAD, 0) == HEAD && little_endian(head + 8, 4) == tdi_masked_crc(head, 8);
    close(fd);
    return begins;
}

static td_status open_file(tdi_records *records, tdi_error *error)
{
    TDI_TRY(tdi_regular_open(records->path, &records->fd, NULL, error));
    return unpack_when_gzipped(records, error);
}

td_status tdi_records_open(const char *path, bool skip, tdi_records **records, tdi_error *error)
{
    tdi_error breaks = {0};
    tdi_records *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->fd = -1;
    made->path = strdup(path);
    td_status status = made->path ? open_file(made, error) : tdi_no_memory(error);
    if (status == TD_OK && find_records(made, &breaks) != TD_OK) {
        made->broken = strdup(breaks.message);
        if (!skip || breaks.status != TD_BAD_FILE || !made->broken)
            status = tdi_fail(error, breaks.status, "%s", breaks.message);
    }
    if (status != TD_OK)
        tdi_records_close(made);
    else
        *records = made;
    return status;
}

void tdi_records_close(tdi_records *records)
{
    if (!records)
        return;
    if (records->fd >= 0)
        close(records->fd);
    tdi_vec_free(&records->found);
    free(records->path);
    free(records->broken);
    free(records);
}

int64_t tdi_records_count(const tdi_records *records)
{
    return records->found.count;
}

int64_t tdi_records_size(const tdi_records *records, int64_t index)
{
    return records->found.at[index].size;
}

int64_t tdi_records_offset(const tdi_records *records, int64_t index)
{
    return records->found.at[index].offset;
}

const char *tdi_records_break(const tdi_records *records)
{
    return records->broken;
}

uint32_t tdi_records_checksum(const tdi_records *records)
{
    return records->checksum;
}

td_status tdi_records_read(const tdi_records *records, int64_t index, void *to, tdi_error *error)
{
    const record *wanted = &records->found.at[index];
    unsigned char foot[FOOT];
    TDI_TRY(read_at(records, wanted->offset + HEAD, to, wanted->size, error));
    TDI_TRY(read_at(records, wanted->offset + HEAD + wanted->size, foot, FOOT, error));
    if (little_endian(foot, 4) == tdi_masked_crc(to, (size_t)wanted->size))
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: record %" PRId64 " at offset %" PRId64 ": its checksum does not match: the file is damaged",
                    records->path, index, wanted->offset);
}
