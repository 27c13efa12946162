/* frame.c - headers to bytes and back, and the check of what arrives. */
#include "link/frame.h"

#include <stddef.h>

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

void tdi_frame_encode(const tdi_frame *frame, unsigned char bytes[TDI_FRAME_BYTES])
{
    put(bytes, frame->length, 4);
    put(bytes + 4, frame->kind, 2);
    put(bytes + 6, frame->flags, 2);
    put(bytes + 8, frame->id, 4);
    put(bytes + 12, frame->generation, 4);
    put(bytes + 16, frame->step, 4);
    put(bytes + 20, frame->shard, 4);
    put(bytes + 24, frame->offset, 8);
}

tdi_frame tdi_frame_decode(const unsigned char bytes[TDI_FRAME_BYTES])
{
    return (tdi_frame){.length = (uint32_t)get(bytes, 4),
                       .kind = (uint16_t)get(bytes + 4, 2),
                       .flags = (uint16_t)get(bytes + 6, 2),
                       .id = (uint32_t)get(bytes + 8, 4),
                       .generation = (uint32_t)get(bytes + 12, 4),
                       .step = (uint32_t)get(bytes + 16, 4),
                       .shard = (uint32_t)get(bytes + 20, 4),
                       .offset = get(bytes + 24, 8)};
}

static td_status compare(const char *field, uint32_t seen, uint32_t wanted, tdi_error *error)
{
    if (seen == wanted)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "frame: expected %s %u, got %u", field, wanted, seen);
}

td_status tdi_frame_check(const tdi_frame *frame, const tdi_frame_expected *expected, tdi_error *error)
{
    const tdi_frame *like = &expected->like;
    TDI_TRY(compare("generation", frame->generation, like->generation, error));
    TDI_TRY(compare("kind", frame->kind, like->kind, error));
    TDI_TRY(compare("step", frame->step, like->step, error));
    TDI_TRY(compare("id", frame->id, like->id, error));
    TDI_TRY(compare("shard", frame->shard, like->shard, error));
    if (frame->offset <= expected->size && frame->length <= expected->size - frame->offset)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "frame: expected at most %llu bytes in all, got %u from byte %llu on",
                    (unsigned long long)expected->size, frame->length, (unsigned long long)frame->offset);
}
