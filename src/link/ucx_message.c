/* ucx_message.c - messages and addresses to bytes and back. */
#include "link/ucx_message.h"

#include <string.h>

#include <isa-l/crc.h>

static const unsigned char magic[8] = {'t', 'a', 'n', 'd', 'e', 'm', 1, 'u'};

static void put(unsigned char *bytes, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

void tdi_ucx_message_encode(const tdi_ucx_message *message, unsigned char bytes[TDI_UCX_MESSAGE_BYTES])
{
    put(bytes, message->token, 8);
    put(bytes + 8, message->sender, 8);
    put(bytes + 16, message->sequence, 8);
    put(bytes + 24, message->generation, 4);
    put(bytes + 28, message->what, 2);
    put(bytes + 30, message->memory, 2);
    put(bytes + 32, message->position, 8);
    put(bytes + 40, message->size, 8);
    tdi_frame_encode(&message->frame, bytes + 48);
}

tdi_ucx_message tdi_ucx_message_decode(const unsigned char bytes[TDI_UCX_MESSAGE_BYTES])
{
    return (tdi_ucx_message){.token = get(bytes, 8),
                             .sender = get(bytes + 8, 8),
                             .sequence = get(bytes + 16, 8),
                             .generation = (uint32_t)get(bytes + 24, 4),
                             .what = (uint16_t)get(bytes + 28, 2),
                             .memory = (uint16_t)get(bytes + 30, 2),
                             .position = get(bytes + 32, 8),
                             .size = get(bytes + 40, 8),
                             .frame = tdi_frame_decode(bytes + 48)};
}

/* ---- addresses: a head, a string of bytes for each side with its size, and a checksum of it all ---- */

enum {
    HEAD_BYTES = sizeof magic + 4 + 4 + 8 + 3 * 4 + TDI_UCX_HOST_BYTES,
    HOST_AT = HEAD_BYTES - TDI_UCX_HOST_BYTES,
    SUM_BYTES = 4,
    STRINGS = TDI_UCX_SIDES
};

static uint32_t checksum(const unsigned char *bytes, size_t size)
{
    return crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)size, ~0u);
}

static size_t put_bytes(unsigned char *bytes, size_t at, tdi_ucx_bytes string)
{
    if (bytes) {
        put(bytes + at, string.size, 4);
        if (string.size)
            memcpy(bytes + at + 4, string.at, string.size);
    }
    return at + 4 + string.size;
}

static void put_head(unsigned char *bytes, const tdi_ucx_address *address)
{
    memcpy(bytes, magic, sizeof magic);
    put(bytes + 8, address->major, 4);
    put(bytes + 12, address->minor, 4);
    put(bytes + 16, address->fabric, 8);
    put(bytes + 24, address->pid, 4);
    put(bytes + 28, address->descriptor, 4);
    put(bytes + 32, address->mark, 4);
    memcpy(bytes + HOST_AT, address->host, TDI_UCX_HOST_BYTES);
}

size_t tdi_ucx_address_encode(const tdi_ucx_address *address, unsigned char *bytes)
{
    size_t size = HEAD_BYTES;
    for (int side = 0; side < TDI_UCX_SIDES; side++)
        size = put_bytes(bytes, size, address->workers[side]);
    if (bytes) {
        put_head(bytes, address);
        put(bytes + size, checksum(bytes, size), SUM_BYTES);
    }
    return size + SUM_BYTES;
}

/* False: the string ends behind the bytes. */
static bool get_bytes(const unsigned char *bytes, size_t size, size_t *at, tdi_ucx_bytes *string)
{
    if (size - *at < 4)
        return false;
    uint32_t length = (uint32_t)get(bytes + *at, 4);
    *at += 4;
    if (size - *at < length)
        return false;
    *string = (tdi_ucx_bytes){length ? bytes + *at : NULL, length};
    *at += length;
    return true;
}

bool tdi_ucx_address_decode(const void *from, size_t size, tdi_ucx_address *address)
{
    const unsigned char *bytes = from;
    if (size < HEAD_BYTES + 4 * STRINGS + SUM_BYTES || size > INT32_MAX || memcmp(bytes, magic, sizeof magic) != 0 ||
        checksum(bytes, size - SUM_BYTES) != get(bytes + size - SUM_BYTES, SUM_BYTES))
        return false;
    *address = (tdi_ucx_address){.major = (uint32_t)get(bytes + 8, 4),
                                 .minor = (uint32_t)get(bytes + 12, 4),
                                 .fabric = get(bytes + 16, 8),
                                 .pid = (uint32_t)get(bytes + 24, 4),
                                 .descriptor = (uint32_t)get(bytes + 28, 4),
                                 .mark = (uint32_t)get(bytes + 32, 4)};
    memcpy(address->host, bytes + HOST_AT, TDI_UCX_HOST_BYTES);
    size_t at = HEAD_BYTES;
    bool whole = true;
    for (int side = 0; side < TDI_UCX_SIDES; side++)
        whole = whole && get_bytes(bytes, size - SUM_BYTES, &at, &address->workers[side]);
    return whole && at == size - SUM_BYTES && address->host[TDI_UCX_HOST_BYTES - 1] == '\0';
}
