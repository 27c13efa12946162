/* hdf5_file.c - opening an HDF5 file, its checksums, and the headers of its objects.
 *
 *   superblock   at 0, or behind a user's block of 512, 1024, ... bytes; has the address of the root group's header
 *   header       version 1: messages [type 2, size 2, flags 1, reserved 3, data]
 *                version 2: "OHDR", messages [type 1, size 2, flags 1, perhaps order 2, data], checksum
 *                a message gives the place of a continuation, which begins with "OCHK" in version 2 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/hdf5/hdf5_trees.h"
#include "files/open_regular.h"

td_status tdi_hdf5_damaged(const tdi_hdf5_file *file, const char *reason, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "%s: %s", file->name, reason);
}

/* ---- bytes ---- */

static td_status read_from_disk(const tdi_hdf5_file *file, uint64_t address, uint64_t length, void *to,
                                tdi_error *error)
{
    for (uint64_t done = 0; done < length;) {
        ssize_t count = pread(file->fd, (char *)to + done, length - done, (off_t)(file->base + address + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return tdi_fail(error, TD_IO, "%s: cannot be read: %s", file->name,
                            count < 0 ? strerror(errno) : "it has become shorter");
        done += (uint64_t)count;
    }
    return TD_OK;
}

static td_status check_inside(const tdi_hdf5_file *file, uint64_t address, uint64_t length, tdi_error *error)
{
    if (address <= file->size && length <= file->size - address)
        return TD_OK;
    return tdi_hdf5_damaged(file, "an address leads outside of the file: it is truncated or damaged", error);
}

td_status tdi_hdf5_bytes(const tdi_hdf5_file *file, uint64_t address, uint64_t length, void *to, tdi_error *error)
{
    TDI_TRY(check_inside(file, address, length, error));
    if (file->fd >= 0)
        return read_from_disk(file, address, length, to, error);
    return tdi_store_read(file->store, (int64_t)(file->base + address), to, (int64_t)length, error);
}

void tdi_hdf5_begin(tdi_hdf5_file *file)
{
    file->budget = 65536 + 2 * file->size;
}

td_status tdi_hdf5_block(tdi_hdf5_file *file, uint64_t address, uint64_t length, unsigned char **block,
                         tdi_error *error)
{
    *block = NULL;
    TDI_TRY(check_inside(file, address, length, error)); /* before memory is allocated */
    if (length + 64 > file->budget)
        return tdi_hdf5_damaged(file, "its structures lead in circles: it is damaged", error);
    file->budget -= length + 64;
    *block = malloc(length ? length : 1);
    return *block ? tdi_hdf5_bytes(file, address, length, *block, error) : tdi_no_memory(error);
}

static uint32_t turned(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* Bob Jenkins's lookup3. */
uint32_t tdi_hdf5_checksum(const unsigned char *at, size_t length)
{
    static const unsigned char mixing[6] = {4, 6, 8, 16, 19, 4}, ending[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t s[3] = {0xdeadbeef + (uint32_t)length, 0xdeadbeef + (uint32_t)length, 0xdeadbeef + (uint32_t)length};
    unsigned char tail[12] = {0};
    for (; length > 12; at += 12, length -= 12) {
        for (int i = 0; i < 3; i++)
            s[i] += (uint32_t)tdi_hdf5_number(at + 4 * i, 4);
        for (int i = 0; i < 6; i++) {
            s[i % 3] = (s[i % 3] - s[(i + 2) % 3]) ^ turned(s[(i + 2) % 3], mixing[i]);
            s[(i + 2) % 3] += s[(i + 1) % 3];
        }
    }
    memcpy(tail, at, length);
    for (int i = 0; i < 3; i++)
        s[i] += (uint32_t)tdi_hdf5_number(tail + 4 * i, 4);
    for (int i = 0; i < 7; i++)
        s[(i + 2) % 3] = (s[(i + 2) % 3] ^ s[(i + 1) % 3]) - turned(s[(i + 1) % 3], ending[i]);
    return s[2];
}

td_status tdi_hdf5_checked(tdi_hdf5_file *file, uint64_t address, uint64_t length, const char *signature,
                           unsigned char **block, tdi_error *error)
{
    *block = NULL;
    if (length < 8)
        return tdi_hdf5_damaged(file, "a structure is damaged", error);
    TDI_TRY(tdi_hdf5_block(file, address, length, block, error));
    if (signature && memcmp(*block, signature, 4) != 0)
        return tdi_hdf5_damaged(file, "a structure is not what another one says it is: it is damaged", error);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* fuzzing must get past the checksums */
    if (tdi_hdf5_checksum(*block, length - 4) != tdi_hdf5_number(*block + length - 4, 4))
        return tdi_hdf5_damaged(file, "a checksum does not match: it is damaged", error);
#endif
    return TD_OK;
}

/* ---- headers ---- */

typedef struct range {
    uint64_t address, length;
} range;

typedef tdi_vec(range) range_list;

static td_status add_range(const tdi_hdf5_file *file, const tdi_hdf5_message *message, range_list *ranges,
                           tdi_error *error)
{
    if (message->size < 16)
        return tdi_hdf5_damaged(file, "an object's header is damaged", error);
    range next = {tdi_hdf5_number(message->data, 8), tdi_hdf5_number(message->data + 8, 8)};
    return tdi_push(ranges, next) ? TD_OK : tdi_no_memory(error);
}

/* Each message's data has `head` bytes before it. Version 2 may end in a gap that is too small for a message. */
static td_status read_messages(const tdi_hdf5_file *file, const unsigned char *at, uint64_t length, unsigned head,
                               tdi_hdf5_header *header, range_list *ranges, tdi_error *error)
{
    bool original = head == 8;
    while (length >= head) {
        unsigned wide = original ? 2 : 1;
        tdi_hdf5_message message = {.type = (unsigned)tdi_hdf5_number(at, wide),
                                    .size = tdi_hdf5_number(at + wide, 2),
                                    .shared = (at[wide + 2] & 2u) != 0,
                                    .data = at + head};
        if (message.size > length - head)
            return tdi_hdf5_damaged(file, "an object's header is damaged", error);
        if (!tdi_push(&header->messages, message))
            return tdi_no_memory(error);
        if (message.type == TDI_HDF5_CONTINUED)
            TDI_TRY(add_range(file, &message, ranges, error));
        at += head + message.size;
        length -= head + message.size;
    }
    return TD_OK;
}

static td_status keep_block(tdi_hdf5_header *header, unsigned char *block, tdi_error *error)
{
    if (tdi_push(&header->blocks, block))
        return TD_OK;
    free(block);
    return tdi_no_memory(error);
}

static td_status read_original(tdi_hdf5_file *file, range first, tdi_hdf5_header *header, range_list *ranges,
                               tdi_error *error)
{
    if (!tdi_push(ranges, first))
        return tdi_no_memory(error);
    for (int i = 0; i < ranges->count; i++) {
        unsigned char *block;
        uint64_t length = ranges->at[i].length;
        td_status status = tdi_hdf5_block(file, ranges->at[i].address, length, &block, error);
        TDI_TRY(keep_block(header, block, error));
        TDI_TRY(status);
        TDI_TRY(read_messages(file, block, length, 8, header, ranges, error));
    }
    return TD_OK;
}

/* The number of bytes before the messages, which depends on the flags. */
static unsigned prefix_size(unsigned flags)
{
    return 6 + (flags & 0x20u ? 16u : 0u) + (flags & 0x10u ? 4u : 0u) + (1u << (flags & 3u));
}

static td_status read_newer(tdi_hdf5_file *file, uint64_t address, const unsigned char *start, tdi_hdf5_header *header,
                            range_list *ranges, tdi_error *error)
{
    unsigned flags = start[5], prefix = prefix_size(flags), head = flags & 4u ? 6 : 4, wide = 1u << (flags & 3u);
    unsigned char before_messages[34];
    TDI_TRY(tdi_hdf5_bytes(file, address, prefix, before_messages, error));
    uint64_t length = tdi_hdf5_number(before_messages + prefix - wide, wide);
    if (start[4] != 2 || length > file->size)
        return tdi_hdf5_damaged(file, "an object's header is damaged", error);
    if (!tdi_push(ranges, (range){address, prefix + length + 4}))
        return tdi_no_memory(error);
    for (int i = 0; i < ranges->count; i++) {
        unsigned char *block;
        range at = ranges->at[i];
        unsigned before = i ? 4 : prefix;
        td_status status = tdi_hdf5_checked(file, at.address, at.length, i ? "OCHK" : "OHDR", &block, error);
        TDI_TRY(keep_block(header, block, error));
        TDI_TRY(status);
        TDI_TRY(read_messages(file, block + before, at.length - before - 4, head, header, ranges, error));
    }
    return TD_OK;
}

td_status tdi_hdf5_header_read(tdi_hdf5_file *file, uint64_t address, tdi_hdf5_header *header, tdi_error *error)
{
    unsigned char start[16];
    range_list ranges = {0};
    td_status status;
    *header = (tdi_hdf5_header){0};
    TDI_TRY(tdi_hdf5_bytes(file, address, sizeof start, start, error));
    if (memcmp(start, "OHDR", 4) == 0)
        status = read_newer(file, address, start, header, &ranges, error);
    else if (start[0] == 1)
        status = read_original(file, (range){address + 16, tdi_hdf5_number(start + 8, 4)}, header, &ranges, error);
    else
        status = tdi_hdf5_damaged(file, "an object's header is damaged, or newer than HDF5 2.0", error);
    tdi_vec_free(&ranges);
    return status;
}

void tdi_hdf5_header_release(tdi_hdf5_header *header)
{
    for (int i = 0; i < header->blocks.count; i++)
        free(header->blocks.at[i]);
    tdi_vec_free(&header->blocks);
    tdi_vec_free(&header->messages);
}

const tdi_hdf5_message *tdi_hdf5_header_find(const tdi_hdf5_header *header, unsigned type)
{
    for (int i = 0; i < header->messages.count; i++)
        if (header->messages.at[i].type == type)
            return &header->messages.at[i];
    return NULL;
}

bool tdi_hdf5_is_group(const tdi_hdf5_header *header)
{
    return tdi_hdf5_header_find(header, TDI_HDF5_SYMBOLS) || tdi_hdf5_header_find(header, TDI_HDF5_LINKS) ||
           tdi_hdf5_header_find(header, TDI_HDF5_LINK);
}

/* ---- the file ---- */

static td_status find_superblock(tdi_hdf5_file *file, unsigned char start[96], tdi_error *error)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    uint64_t whole = file->size;
    for (uint64_t base = 0; base <= whole; base = base ? 2 * base : 512) {
        uint64_t size = whole - base < 96 ? whole - base : 96;
        memset(start, 0, 96);
        file->base = base;
        file->size = whole - base;
        TDI_TRY(tdi_hdf5_bytes(file, 0, size, start, error));
        if (memcmp(start, signature, sizeof signature) == 0)
            return TD_OK;
    }
    return tdi_fail(error, TD_BAD_FILE, "%s: no HDF5 file, or a damaged one", file->name);
}

/* Checks the file's size against the end that its superblock gives, which is relative to the base address. */
static td_status check_end(const tdi_hdf5_file *file, uint64_t base, uint64_t end, tdi_error *error)
{
    if (end >= base && end - base <= file->size)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "%s: it is truncated: it holds %llu bytes of the %llu that its writer noted",
                    file->name, (unsigned long long)file->size, (unsigned long long)(end - base));
}

static td_status read_original_superblock(tdi_hdf5_file *file, const unsigned char *at, tdi_error *error)
{
    const unsigned char *addresses = at + (at[8] == 1 ? 28 : 24);
    if (at[13] != 8 || at[14] != 8)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: its addresses have %d bits, not 64", file->name, 8 * at[13]);
    file->root = tdi_hdf5_number(addresses + 40, 8);
    return check_end(file, tdi_hdf5_number(addresses, 8), tdi_hdf5_number(addresses + 16, 8), error);
}

static td_status read_newer_superblock(tdi_hdf5_file *file, const unsigned char *at, tdi_error *error)
{
    if (at[9] != 8 || at[10] != 8)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: its addresses have %d bits, not 64", file->name, 8 * at[9]);
    if (tdi_hdf5_checksum(at, 44) != tdi_hdf5_number(at + 44, 4))
        return tdi_hdf5_damaged(file, "its first block is damaged", error);
    if (at[11] & 1u)
        return tdi_hdf5_damaged(
            file,
            "it is being written, or its writer died before it closed it: write it again, or trust it by h5clear -s",
            error);
    file->root = tdi_hdf5_number(at + 36, 8);
    return check_end(file, tdi_hdf5_number(at + 12, 8), tdi_hdf5_number(at + 28, 8), error);
}

static td_status read_superblock(tdi_hdf5_file *file, tdi_error *error)
{
    unsigned char start[96];
    TDI_TRY(find_superblock(file, start, error));
    tdi_hdf5_begin(file);
    if (start[8] <= 1)
        return read_original_superblock(file, start, error);
    if (start[8] <= 3)
        return read_newer_superblock(file, start, error);
    return tdi_fail(error, TD_UNSUPPORTED, "%s: it has a superblock of version %d, and 3 is the newest that is read",
                    file->name, start[8]);
}

static td_status open_on_disk(tdi_hdf5_file *file, tdi_error *error)
{
    int64_t size;
    TDI_TRY(tdi_regular_open(file->name, &file->fd, &size, error));
    file->size = (uint64_t)size;
    return TD_OK;
}

static tdi_hdf5_file *make_file(const char *name)
{
    tdi_hdf5_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->fd = -1;
    file->name = strdup(name);
    if (file->name)
        return file;
    free(file);
    return NULL;
}

/* Completes the opening, or undoes it when `status` is a failure. */
static td_status begin_file(tdi_hdf5_file *file, td_status status, tdi_hdf5_file **opened, tdi_error *error)
{
    if (status == TD_OK)
        status = read_superblock(file, error);
    if (status == TD_OK)
        *opened = file;
    else
        tdi_hdf5_file_close(file);
    return status;
}

td_status tdi_hdf5_file_open(const char *path, tdi_hdf5_file **opened, tdi_error *error)
{
    tdi_hdf5_file *file = make_file(path);
    return file ? begin_file(file, open_on_disk(file, error), opened, error) : tdi_no_memory(error);
}

td_status tdi_hdf5_file_in_store(const tdi_store *store, const char *name, tdi_hdf5_file **opened, tdi_error *error)
{
    tdi_hdf5_file *file = make_file(name);
    if (!file)
        return tdi_no_memory(error);
    file->store = store;
    file->size = (uint64_t)tdi_store_size(store);
    return begin_file(file, TD_OK, opened, error);
}

void tdi_hdf5_file_close(tdi_hdf5_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->name);
    free(file);
}
