/* outbox.c - frames queued, as bytes. */
#include "link/outbox.h"

#include <string.h>

static void *copy_of(const void *payload, size_t size)
{
    void *copy = malloc(size ? size : 1);
    if (copy && size)
        memcpy(copy, payload, size);
    return copy;
}

/* Room at the front is used again when it is most of the queue. */
static void close_gap(tdi_outbox *outbox)
{
    int left = outbox->queue.count - outbox->first;
    if (outbox->first < 16 || left > outbox->first)
        return;
    memmove(outbox->queue.at, outbox->queue.at + outbox->first, (size_t)left * sizeof *outbox->queue.at);
    outbox->queue.count = left;
    outbox->first = 0;
}

bool tdi_outbox_add(tdi_outbox *outbox, const tdi_frame *frame, const void *payload, bool copied)
{
    tdi_outgoing added = {*frame, payload, NULL};
    if (copied)
        added.payload = added.copy = copy_of(payload, frame->length);
    close_gap(outbox);
    if ((!copied || added.copy) && tdi_push(&outbox->queue, added))
        return true;
    free(added.copy);
    return false;
}

static tdi_outgoing *first(tdi_outbox *outbox)
{
    return outbox->first < outbox->queue.count ? &outbox->queue.at[outbox->first] : NULL;
}

/* Counts bytes of the first frame; a frame that has been taken whole is reported, after which the queue may have
 * changed. */
static void take(tdi_outbox *outbox, const tdi_sinks *sinks, int peer, size_t count)
{
    tdi_outgoing frame = *first(outbox);
    outbox->done += count;
    if (outbox->done < TDI_FRAME_BYTES + (uint64_t)frame.frame.length)
        return;
    outbox->done = 0;
    outbox->first++;
    free(frame.copy);
    if (!frame.copy && sinks && sinks->sent)
        sinks->sent(sinks->user, peer, &frame.frame, frame.payload);
}

/* What of the first frame comes next: of its header, which is put into `header`, or of its payload. */
static size_t rest_of_first(tdi_outbox *outbox, unsigned char header[TDI_FRAME_BYTES], const unsigned char **bytes)
{
    const tdi_outgoing *frame = first(outbox);
    if (outbox->done < TDI_FRAME_BYTES) {
        tdi_frame_encode(&frame->frame, header);
        *bytes = header + outbox->done;
        return TDI_FRAME_BYTES - (size_t)outbox->done;
    }
    *bytes = (const unsigned char *)frame->payload + (outbox->done - TDI_FRAME_BYTES);
    return (size_t)(TDI_FRAME_BYTES + (uint64_t)frame->frame.length - outbox->done);
}

static void fill_stage(tdi_outbox *outbox, const tdi_sinks *sinks, int peer)
{
    unsigned char header[TDI_FRAME_BYTES];
    const unsigned char *bytes;
    outbox->staged = outbox->written = 0;
    while (first(outbox) && outbox->staged < sizeof outbox->stage) {
        size_t count = rest_of_first(outbox, header, &bytes), room = sizeof outbox->stage - outbox->staged;
        count = count < room ? count : room;
        memcpy(outbox->stage + outbox->staged, bytes, count);
        outbox->staged += count;
        take(outbox, sinks, peer, count);
    }
}

/* Are the next bytes handed on where they lie? */
static size_t rest_in_place(tdi_outbox *outbox, const void **bytes)
{
    if (outbox->written < outbox->staged || !first(outbox) || outbox->done < TDI_FRAME_BYTES)
        return 0;
    const unsigned char *payload;
    size_t count = rest_of_first(outbox, NULL, &payload);
    *bytes = payload;
    return count >= sizeof outbox->stage ? count : 0;
}

size_t tdi_outbox_next(tdi_outbox *outbox, const tdi_sinks *sinks, int peer, const void **bytes)
{
    size_t count = rest_in_place(outbox, bytes);
    if (count > 0)
        return count;
    if (outbox->written == outbox->staged)
        fill_stage(outbox, sinks, peer);
    *bytes = outbox->stage + outbox->written;
    return outbox->staged - outbox->written;
}

void tdi_outbox_wrote(tdi_outbox *outbox, const tdi_sinks *sinks, int peer, size_t count)
{
    if (outbox->written < outbox->staged)
        outbox->written += count;
    else
        take(outbox, sinks, peer, count);
}

bool tdi_outbox_is_empty(const tdi_outbox *outbox)
{
    return outbox->first == outbox->queue.count && outbox->written == outbox->staged;
}

void tdi_outbox_clear(tdi_outbox *outbox)
{
    for (int i = outbox->first; i < outbox->queue.count; i++)
        free(outbox->queue.at[i].copy);
    tdi_vec_free(&outbox->queue);
    outbox->first = 0;
    outbox->done = 0;
    outbox->staged = outbox->written = 0;
}
