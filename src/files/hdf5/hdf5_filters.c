/* hdf5_filters.c - undoes the filters of a chunk: gzip (zlib), shuffle (first bytes of all elements, then second bytes,
 * ...) and fletcher32 (a checksum at the end). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "files/hdf5/hdf5_chunks.h"

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, MOST_PACKED = 1040 /* zlib's largest ratio */ };

/* ---- which there are ---- */

typedef struct entry {
    unsigned id, values;
    const unsigned char *name, *value;
    uint64_t name_length, whole; /* both in bytes */
} entry;

/* Parses [id 2, length of the name 2, flags 2, number of values 2, name, values]. Newer files omit the length for
 * HDF5's own filters; original ones pad name and values to 8 bytes. */
static bool read_entry(const unsigned char *at, uint64_t left, bool original, entry *filter)
{
    bool own = left >= 2 && !original && tdi_hdf5_number(at, 2) < 256;
    uint64_t head = own ? 6 : 8, align = original ? 8 : 1;
    if (left < head)
        return false;
    filter->id = (unsigned)tdi_hdf5_number(at, 2);
    filter->values = (unsigned)tdi_hdf5_number(at + head - 2, 2);
    filter->name_length = own ? 0 : tdi_hdf5_number(at + 2, 2);
    filter->name = at + head;
    uint64_t padded = (filter->name_length + align - 1) / align * align;
    filter->value = filter->name + padded;
    filter->whole = head + padded + (4 * (uint64_t)filter->values + align - 1) / align * align;
    return left >= filter->whole;
}

static td_status unknown(const tdi_hdf5_file *file, const char *array, const entry *filter, tdi_error *error)
{
    char name[64] = "";
    for (uint64_t i = 0; i < filter->name_length && i < sizeof name - 1; i++)
        name[i] = (char)(filter->name[i] < ' ' || filter->name[i] > '~' ? '\0' : filter->name[i]);
    if (filter->id >= 4 && filter->id <= 6)
        snprintf(name, sizeof name, "%s", filter->id == 4 ? "szip" : filter->id == 5 ? "nbit" : "scaleoffset");
    return tdi_fail(error, TD_UNSUPPORTED,
                    "%s: \"%s\" is compressed by filter %u (%s), which Tandem does not load; write it with gzip, as "
                    "h5py's compression=\"gzip\"",
                    file->name, array, filter->id, name);
}

td_status tdi_hdf5_filters_read(const tdi_hdf5_file *file, const char *name, const tdi_hdf5_message *message,
                                tdi_hdf5_filters *filters, tdi_error *error)
{
    static const char why[] = "the list of an array's filters is damaged";
    if (message->shared || message->size < 2 || message->data[0] < 1 || message->data[0] > 2 || message->data[1] > 16)
        return tdi_hdf5_damaged(file, why, error);
    bool original = message->data[0] == 1;
    uint64_t at = original ? 8 : 2;
    for (int i = 0; i < message->data[1]; i++) {
        entry filter;
        if (at > message->size || !read_entry(message->data + at, message->size - at, original, &filter))
            return tdi_hdf5_damaged(file, why, error);
        if (filter.id < DEFLATE || filter.id > FLETCHER32)
            return unknown(file, name, &filter, error);
        filters->id[i] = filter.id;
        filters->value[i] = filter.values ? (unsigned)tdi_hdf5_number(filter.value, 4) : 0;
        filters->count = i + 1;
        at += filter.whole;
    }
    return TD_OK;
}

/* ---- undoing them ---- */

typedef struct bytes {
    unsigned char *at; /* owned */
    uint64_t size;
} bytes;

/* Fletcher's checksum over big-endian words of 16 bits. */
static uint32_t fletcher32(const unsigned char *at, uint64_t size)
{
    uint64_t low = 0, high = 0;
    for (uint64_t i = 0; i < size; i += 2) {
        low = (low + ((uint64_t)at[i] << 8) + (i + 1 < size ? at[i + 1] : 0)) % 65535;
        high = (high + low) % 65535;
    }
    return (uint32_t)(high << 16 | low);
}

/* Compares modulo 65535: the filter writes 65535 where the remainder is 0. */
static bool same_sum(uint64_t stored, uint32_t sum)
{
    return (stored & 0xFFFFu) % 65535 == (sum & 0xFFFFu) && (stored >> 16) % 65535 == sum >> 16;
}

static const char *check_sum(bytes *data)
{
    if (data->size < 4)
        return "it is too short";
    data->size -= 4;
    bool same = same_sum(tdi_hdf5_number(data->at + data->size, 4), fletcher32(data->at, data->size));
    return same ? NULL : "its checksum does not match";
}

static const char *unshuffle(bytes *data, uint64_t element)
{
    uint64_t count = element ? data->size / element : 0;
    if (element <= 1 || count <= 1)
        return NULL;
    unsigned char *whole = malloc(data->size);
    if (!whole)
        return "memory is out";
    for (uint64_t byte = 0; byte < element; byte++)
        for (uint64_t i = 0; i < count; i++)
            whole[i * element + byte] = data->at[byte * count + i];
    memcpy(whole + count * element, data->at + count * element, data->size - count * element);
    free(data->at);
    data->at = whole;
    return NULL;
}

static bool inflate_to(const bytes *packed, unsigned char *to, uint64_t room, uint64_t *made)
{
    uLongf length = room;
    bool done = uncompress(to, &length, packed->at, packed->size) == Z_OK;
    *made = length;
    return done;
}

/* `room` is the chunk's size and that of a checksum that may be packed with it. */
static const char *inflate_chunk(bytes *data, uint64_t room)
{
    if (room / MOST_PACKED > data->size)
        return "it is too short";
    bytes whole = {malloc(room ? room : 1), 0};
    if (!whole.at)
        return "memory is out";
    bool done = inflate_to(data, whole.at, room, &whole.size);
    free(done ? data->at : whole.at);
    if (done)
        *data = whole;
    return done ? NULL : "it cannot be unpacked";
}

static const char *undo(const tdi_hdf5_filters *filters, int i, bytes *data, uint64_t size)
{
    switch (filters->id[i]) {
    case DEFLATE:
        return inflate_chunk(data, size + 4 * 16);
    case SHUFFLE:
        return unshuffle(data, filters->value[i]);
    default:
        return check_sum(data);
    }
}

unsigned char *tdi_hdf5_unfilter(const tdi_hdf5_filters *filters, uint32_t left_out, unsigned char *packed,
                                 uint64_t packed_size, uint64_t size, const char **reason)
{
    bytes data = {packed, packed_size};
    *reason = NULL;
    for (int i = filters->count - 1; i >= 0 && !*reason; i--)
        if (!(left_out >> i & 1u))
            *reason = undo(filters, i, &data, size);
    if (!*reason && data.size != size)
        *reason = "it does not have the size of a chunk";
    if (!*reason)
        return data.at;
    free(data.at);
    return NULL;
}
