/* outbox.h - the queue of frames that a link has still to send, as a stream of bytes.
 *
 * Small frames are put together in one buffer of a TLS record's size, so that several cost one record; of large ones
 * the payload is handed on where it lies. */
#ifndef TDI_LINK_OUTBOX_H
#define TDI_LINK_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "link/frame.h"

enum { TDI_RECORD_BYTES = 16384 };

typedef struct tdi_outgoing {
    tdi_frame frame;
    const void *payload;
    void *copy; /* the payload, when it is the queue's own */
} tdi_outgoing;

/* Zero-initialise. */
typedef struct tdi_outbox {
    tdi_vec(tdi_outgoing) queue;
    int first;     /* of the queue that has not been taken whole */
    uint64_t done; /* bytes of it that have been taken, header included */
    size_t staged, written;
    unsigned char stage[TDI_RECORD_BYTES];
} tdi_outbox;

/* Appends; false when memory is out. The payload is borrowed until `sent`, or is copied. */
bool tdi_outbox_add(tdi_outbox *outbox, const tdi_frame *frame, const void *payload, bool copied);
/* The next bytes to write, and how many; 0: none. The same again until tdi_outbox_wrote. Calls sinks->sent. */
size_t tdi_outbox_next(tdi_outbox *outbox, const tdi_sinks *sinks, int peer, const void **bytes);
/* So many of them have been written. Calls sinks->sent. */
void tdi_outbox_wrote(tdi_outbox *outbox, const tdi_sinks *sinks, int peer, size_t count);
bool tdi_outbox_is_empty(const tdi_outbox *outbox);
/* Drops what is queued. */
void tdi_outbox_clear(tdi_outbox *outbox);

#endif
