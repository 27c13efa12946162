/* link.h - the connection of two processes: TLS 1.3 by the run's key, which carries frames both ways.
 *
 * A link is non-blocking and belongs to one thread at a time. `tdi_link_pump` does all there is to do: the handshake,
 * frames in, frames out. In a loop it is called when there is something to do; without one, whoever owns the link calls
 * it when its descriptor is ready for tdi_link_events. What happens is told to the link's sinks (frame.h), from within
 * a pump alone.
 *
 * A payload that is sent is not copied, and one that is received goes from TLS's record to the place that the sink
 * names. A peer that goes is reported however it goes: in order, by a cut, or by silence within the handshake; silence
 * afterwards is for its users to notice. Writing to one that has gone raises no signal. */
#ifndef TDI_LINK_LINK_H
#define TDI_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "link/frame.h"
#include "link/loop.h"
#include "link/security.h"

#define TDI_HANDSHAKE_SECONDS 5.0

typedef struct tdi_link tdi_link;

typedef enum tdi_link_state {
    TDI_LINK_SHAKING, /* until both sides have proved that they know the key */
    TDI_LINK_OPEN,
    TDI_LINK_LOST /* `lost` has been, or is being, called */
} tdi_link_state;

typedef enum tdi_link_role { TDI_LINK_CLIENT, TDI_LINK_SERVER } tdi_link_role;

/* Makes a link of a stream socket, non-blocking, which may still be connecting: a TCP connection, or one of a socket
 * pair. `name` is the peer in sentences: "10.0.0.3:2222". The descriptor is the link's from now on; when this fails, it
 * has been closed. The handshake has TDI_HANDSHAKE_SECONDS. */
td_status tdi_link_create(tdi_security *security, int fd, tdi_link_role role, const char *name, tdi_link **link,
                          tdi_error *error);
/* Cuts the connection and drops what was to be sent; calls no sink. From within a sink too. NULL is accepted. */
void tdi_link_free(tdi_link *link);

/* Who is told, and as which peer: before the first pump, and again whenever the link changes hands. The sinks are
 * borrowed. `opened`, which may be NULL, is called when the handshake is done. */
void tdi_link_set_sinks(tdi_link *link, const tdi_sinks *sinks, int peer, void (*opened)(void *user, int peer));
/* Another time for the handshake, from now on. */
void tdi_link_limit_handshake(tdi_link *link, double seconds);

/* Has the loop pump the link. A link can leave its loop for another thread, but not from within one of its sinks. */
td_status tdi_link_attach(tdi_link *link, tdi_loop *loop, tdi_error *error);
void tdi_link_detach(tdi_link *link);

/* Queues a frame and its payload of frame->length bytes, which is borrowed until `sent`, or until the link is lost or
 * freed. Never blocks, never fails: what goes wrong is told by `lost`. Frames arrive whole, in this order; those for a
 * link that is lost are dropped. */
void tdi_link_send(tdi_link *link, const tdi_frame *frame, const void *payload);
/* The same with a copy of the payload; `sent` is not called for it. */
void tdi_link_send_copy(tdi_link *link, const tdi_frame *frame, const void *payload);
/* Closes in order: what is queued is sent, then the peer is told, and both sides' `lost` has TD_STOPPED. What the peer
 * sends meanwhile arrives. */
void tdi_link_end(tdi_link *link);

/* Moves what can be moved. True: there is more to do at once; false: nothing until the descriptor is ready for
 * tdi_link_events, or, during the handshake, until its time is over. */
bool tdi_link_pump(tdi_link *link);
/* Asks the sink again that answered TDI_HOLD, at the next pump, which a loop makes at once. */
void tdi_link_resume(tdi_link *link);

int tdi_link_descriptor(const tdi_link *link);
uint32_t tdi_link_events(const tdi_link *link); /* EPOLLIN, EPOLLOUT */
tdi_link_state tdi_link_get_state(const tdi_link *link);
const char *tdi_link_name(const tdi_link *link); /* borrowed */
/* The peer's name from now on, when it has said who it is. */
void tdi_link_set_name(tdi_link *link, const char *name);
/* What `lost` was told, for those who know the peer as `name`: "worker 1 has left", "worker 1 is lost: the connection
 * was cut". TD_IO. */
void tdi_link_tell_loss(const char *name, const tdi_error *why, tdi_error *lost);
/* For tests: new keys after so many bytes, instead of 2^35. */
void tdi_link_renew_keys_after(tdi_link *link, uint64_t bytes);

#endif
