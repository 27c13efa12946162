/* frame.h - the header that stands before everything that a link or a wire carries, and where frames go.
 *
 * A frame is a header of 32 bytes, little-endian, and a payload of `length` bytes:
 *
 *     0       4     6      8   12          16    20     24      32
 *     length  kind  flags  id  generation  step  shard  offset  payload ...
 *
 * Who receives one compares its header with what is expected, and says where its payload goes, before a byte of the
 * payload is stored. */
#ifndef TDI_LINK_FRAME_H
#define TDI_LINK_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { TDI_FRAME_BYTES = 32 };

typedef struct tdi_frame {
    uint32_t length;     /* bytes of the payload */
    uint16_t kind;       /* of the message; which kinds there are is the users' of a link to say */
    uint16_t flags;      /* what the kind says that they are */
    uint32_t id;         /* of the collective, or what the kind says */
    uint32_t generation; /* of the view in which it was sent */
    uint32_t step;
    uint32_t shard;
    uint64_t offset; /* bytes: where in its place the payload begins */
} tdi_frame;

void tdi_frame_encode(const tdi_frame *frame, unsigned char bytes[TDI_FRAME_BYTES]);
/* Any 32 bytes are a frame; whether it is one to take, a check says. */
tdi_frame tdi_frame_decode(const unsigned char bytes[TDI_FRAME_BYTES]);

/* What a receiver is ready for: kind, id, generation, step and shard are as in `like`, and the payload lies within a
 * place of `size` bytes. Flags are not compared. */
typedef struct tdi_frame_expected {
    tdi_frame like;
    uint64_t size;
} tdi_frame_expected;

/* TD_INVALID_ARGUMENT: another frame than expected; the sentence names the first field that differs. */
td_status tdi_frame_check(const tdi_frame *frame, const tdi_frame_expected *expected, tdi_error *error);

typedef enum tdi_sink_answer {
    TDI_TAKE,  /* *place has room for frame->length bytes */
    TDI_DROP,  /* the payload is read and thrown away; `arrived` is not called */
    TDI_HOLD,  /* there is no room yet: nothing more is read from this peer until its next pump, which asks again */
    TDI_REFUSE /* the peer errs: `error` says how, and the connection ends */
} tdi_sink_answer;

/* Who receives the frames of peers. All are called from within a pump, in its thread, and must not block; they may send
 * frames, but none may free the link or the wire, except `lost`. `peer` is the number that the link was given. */
typedef struct tdi_sinks {
    void *user;
    /* A header has arrived; where does its payload go? Called for a frame without a payload, too, whose *place is not
     * looked at. The place is the link's to write to until `arrived` or `lost`. */
    tdi_sink_answer (*place)(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error);
    /* The payload is in its place. */
    void (*arrived)(void *user, int peer, const tdi_frame *frame, void *place);
    /* The payload of a frame that was sent is no longer needed: it has been copied, or encrypted. Parts of it may still
     * have to be written, by further pumps; that it has been received, only the peer can say. NULL: nobody wants to
     * know. */
    void (*sent)(void *user, int peer, const tdi_frame *frame, const void *payload);
    /* The connection has ended, once: nothing more is received or sent, no other sink is called. `why` is a sentence
     * that names the peer. What was queued is dropped without `sent`. The last thing that a pump does. */
    void (*lost)(void *user, int peer, const tdi_error *why);
} tdi_sinks;

#endif
