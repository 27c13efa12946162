/* ucx_struct.h - the insides of the UCX engine, for its own files.
 *
 * An engine has a context for each side: peers on this host are reached by shared memory, where nothing listens, others
 * by TCP or RDMA. A fabric has a worker for each of its engine's contexts, which lives and ends with the view: what
 * dead or frozen peers leave in a worker's queues does not harm the next one. A wire has an endpoint on one of the
 * workers.
 *
 * Two ways lead a payload to its place:
 * - DATA: pieces that UCX copies, through shared memory or a socket.
 * - SEEN, near: a payload longer than a piece lies in memory of the engine, which the peer sees in place. It copies it
 * to where it wants it, once, and says so. UCX's own way for long messages, rendezvous, is not used: with shared memory
 * its requests never end when a peer dies, and peers that were frozen write when they wake up; by TCP they can end the
 * process by an assertion (1.13) when the connection is cut in the middle.
 *
 * So that nobody has to keep what is not yet wanted, a sender has at most a window of messages that the receiver has
 * not dealt with. The receiver keeps those that have come in a ring, and deals with one after the other. Nor does
 * anybody send before the peer has greeted.
 *
 * Near, endpoints are of the kind that knows no errors of peers: UCX then has no messages of its own, and does not
 * attach to a peer's memory at any time but in `join` (why that matters, ucx_mark.c says). They cannot be closed by
 * force, and need not be: the windows of all peers together fit in the queue of shared memory, which is never full,
 * however long its owner sleeps, so that UCX never has anything pending.
 *
 * Far, endpoints are closed by force. Up to UCX 1.13 that ends the process by an assertion while UCX's own messages, by
 * which it connects, have not gone both ways. So greetings are awaited before anything else is sent; and where a fabric
 * is closed before, and its peer does not answer in time, its worker is left alone for good: nobody moves it any more.
 *
 * A process that froze and wakes up in another time could read memory which its peer has long used for something else.
 * So each fabric has a mark in shared memory, its number while it is open: who has read looks at the mark afterwards,
 * and what it has read is void when that is gone. */
#ifndef TDI_LINK_UCX_STRUCT_H
#define TDI_LINK_UCX_STRUCT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "link/ucx_load.h"
#include "link/ucx_message.h"
#include "link/wire.h"

enum {
    TDI_UCX_WINDOW = 64,  /* messages, at most */
    TDI_UCX_QUEUE = 512,  /* messages that UCX's shared memory takes for a worker */
    TDI_UCX_UNFREED = 64, /* of these it may not have freed so many yet though they have been taken */
    TDI_UCX_NEAREST = (TDI_UCX_QUEUE - TDI_UCX_UNFREED) / 4, /* peers on a host, at most */
    TDI_UCX_PIECE = 8064,    /* bytes: with both heads in one element of UCX's shared memory, which has 8256 */
    TDI_UCX_SHARE = 1 << 20, /* bytes that a pump copies for a wire */
    TDI_UCX_NAME_BYTES = 96
};

/* ---- the engine ---- */

typedef struct tdi_ucx_memory {
    void *address;
    size_t size;
    ucp_mem_h handle; /* NULL: memory that nobody else can see */
    void *key;        /* what peers need to see it */
    size_t key_size;
    uint64_t serial; /* from 1 on */
} tdi_ucx_memory;

/* A page of marks: an engine's own, or a peer's. See ucx_mark.c. */
typedef struct tdi_ucx_marks {
    void *page; /* NULL: none */
    int descriptor;
} tdi_ucx_marks;

typedef struct tdi_ucx {
    tdi_engine engine;
    const tdi_ucx_api *api;
    ucp_context_h contexts[TDI_UCX_SIDES]; /* NULL: the engine has no such side */
    pthread_mutex_t lock;                  /* for what follows, and for calls of UCX that are not of one worker */
    tdi_vec(tdi_ucx_memory) memories;
    _Atomic uint64_t serial; /* of the newest */
    tdi_ucx_marks marks;
    uint32_t mark;        /* how many fabrics have had one */
    bool has_left_worker; /* which cannot be closed, nor can its context */
} tdi_ucx;

/* ---- a wire ---- */

typedef struct tdi_ucx_fabric tdi_ucx_fabric;
typedef struct tdi_ucx_wire tdi_ucx_wire;

/* A frame, or an announcement, that has not been sent whole. */
typedef struct tdi_ucx_outgoing {
    tdi_ucx_message message; /* as it is sent next */
    const void *payload;
    void *copy;      /* the payload, when it is the queue's own */
    uint64_t handed; /* bytes of it that UCX has been given */
    bool all_handed;
    int pending;       /* messages of it that UCX still holds */
    uint64_t sequence; /* of its last message */
    struct tdi_ucx_outgoing *next;
} tdi_ucx_outgoing;

/* A message that UCX holds: its head has to stay until then. */
typedef struct tdi_ucx_parcel {
    unsigned char head[TDI_UCX_MESSAGE_BYTES];
    tdi_ucx_wire *wire;
    tdi_ucx_outgoing *outgoing; /* NULL: of no frame */
    struct tdi_ucx_parcel *next;
} tdi_ucx_parcel;

typedef struct tdi_ucx_incoming {
    tdi_ucx_message message;
    void *data;
    size_t size;
    ucp_worker_h worker; /* which keeps the data for us; NULL: they are a copy of our own */
} tdi_ucx_incoming;

/* What has come from one sender. Peers may send before they are joined: the sender is known by its fabric's number. */
typedef struct tdi_ucx_inbox {
    uint64_t sender; /* 0: nobody's yet */
    tdi_ucx_incoming ring[TDI_UCX_WINDOW];
    int first, count;
    bool greeted;
    uint64_t received, dealt_with; /* messages */
    const char *fault;             /* what it did wrong; NULL: nothing */
    bool said_bye;
    tdi_ucx_wire *wire; /* NULL: not joined yet */
} tdi_ucx_inbox;

typedef struct tdi_ucx_seen {
    ucp_rkey_h key;
    const char *at; /* in this process; NULL: it cannot be seen */
    uint64_t base;  /* in the peer's */
    uint64_t size;
} tdi_ucx_seen;

typedef enum tdi_ucx_state { TDI_UCX_UNJOINED, TDI_UCX_OPEN, TDI_UCX_ENDING, TDI_UCX_LOST } tdi_ucx_state;

struct tdi_ucx_wire {
    tdi_wire wire;
    tdi_ucx_fabric *fabric;
    int peer;
    char name[TDI_UCX_NAME_BYTES];
    tdi_ucx_side_kind side;
    tdi_ucx_state state;
    ucp_ep_h endpoint;
    void *closing;       /* UCX's request to close it, or NULL */
    ucs_status_t failed; /* what UCX has said of it */
    tdi_error why;       /* of ENDING */

    tdi_ucx_outgoing *first, *last, *unsent;
    uint64_t sequence, taken; /* messages numbered, and dealt with by the peer */
    int held_by_ucx;          /* messages */
    bool settled;             /* greetings have gone both ways */
    tdi_vec(uint64_t) told;   /* serials of the memories that the peer has been told of; the index is their number */
    uint64_t last_told;

    tdi_ucx_inbox *inbox;
    tdi_vec(tdi_ucx_seen) seen;   /* the peer's memories */
    tdi_ucx_marks marks;          /* the peer's */
    const _Atomic uint64_t *mark; /* in them; NULL: far */
    bool in_frame, dropping, held;
    tdi_frame frame; /* under way */
    void *place;
    uint64_t copied;
    uint64_t acknowledged;
    bool hurries; /* the peer waits to be told */
};

/* ---- a fabric ---- */

typedef struct tdi_ucx_side {
    tdi_ucx_fabric *fabric;
    ucp_worker_h worker; /* NULL: the fabric has no such side */
    int descriptor;
    ucp_address_t *address;
    size_t address_size;
} tdi_ucx_side;

struct tdi_ucx_fabric {
    tdi_fabric fabric;
    tdi_ucx *engine;
    const tdi_ucx_api *api;
    uint64_t token, number;
    uint32_t generation;
    tdi_sinks sinks;
    tdi_ucx_side sides[TDI_UCX_SIDES];
    int waits_for; /* the descriptor that `sleep` gives */
    bool owns_descriptor;
    _Atomic uint64_t *mark; /* NULL: none */
    uint32_t mark_number;
    int windows[TDI_UCX_SIDES];
    unsigned char *address;
    size_t address_size;
    tdi_ucx_parcel *spare;
    bool moved, closing;
    int peers;
    tdi_ucx_inbox *inboxes; /* [peers] */
    tdi_ucx_wire wires[];   /* [peers] */
};

/* ucx_mark.c */
td_status tdi_ucx_marks_open(tdi_ucx_marks *marks, tdi_error *error);
/* A peer's, to read. False: they cannot be seen. */
bool tdi_ucx_marks_see(tdi_ucx_marks *marks, uint32_t pid, uint32_t descriptor);
void tdi_ucx_marks_close(tdi_ucx_marks *marks);
_Atomic uint64_t *tdi_ucx_mark_at(const tdi_ucx_marks *marks, uint32_t number);
/* Whether the peer's fabric is open, and so what has been read of its memory is of this view. */
bool tdi_ucx_wire_is_open(const tdi_ucx_wire *wire);

/* ucx_memory.c */
void *tdi_ucx_memory_get(tdi_engine *engine, size_t bytes);
void tdi_ucx_memory_release(tdi_engine *engine, void *memory);
/* Memory that peers on this host can see; false: there is none, `memory` has no handle. */
bool tdi_ucx_memory_share(tdi_ucx *engine, size_t bytes, tdi_ucx_memory *memory);
void tdi_ucx_memory_unshare(tdi_ucx *engine, tdi_ucx_memory *memory);
/* The serial of the shared memory in which all of the bytes lie, and where they begin in it. 0: in none. */
uint64_t tdi_ucx_memory_find(tdi_ucx *engine, const void *bytes, size_t size, uint64_t *position);
/* A copy of the first memory after that serial. Its key is the caller's to free; NULL: nobody can see it. False: there
 * is no such memory, or none for the key. */
bool tdi_ucx_memory_next(tdi_ucx *engine, uint64_t serial, tdi_ucx_memory *memory);

/* ucx_fabric.c */
td_status tdi_ucx_fabric_open(tdi_engine *engine, const tdi_fabric_spec *spec, tdi_fabric **fabric, tdi_error *error);

/* ucx_join.c */
td_status tdi_ucx_fabric_join(tdi_fabric *fabric, int peer, const tdi_peer_address *address, tdi_wire **wire,
                              tdi_error *error);

/* ucx_wire.c: a wire's queue, and the end of it */
void tdi_ucx_wire_send(tdi_wire *wire, const tdi_frame *frame, const void *payload);
/* Moves what can be moved now, and tells the sinks. */
void tdi_ucx_wire_move(tdi_ucx_wire *wire);
/* Whether there is something to move before UCX has anything new. */
bool tdi_ucx_wire_has_work(const tdi_ucx_wire *wire);
/* Tells the peer and closes the endpoint by force; its requests end in pumps to come. Does nothing until it can be. */
void tdi_ucx_wire_cut(tdi_ucx_wire *wire);
/* False: UCX still has something of it. */
bool tdi_ucx_wire_is_cut(tdi_ucx_wire *wire);
/* Gives back what it holds; its worker is still there, and not moved any more. */
void tdi_ucx_wire_release(tdi_ucx_wire *wire);
/* It ends for this reason, which names the peer. The first reason holds. */
__attribute__((format(printf, 3, 4))) void tdi_ucx_wire_fail(tdi_ucx_wire *wire, td_status status, const char *format,
                                                             ...);
/* Tells the peer that it has been joined. */
void tdi_ucx_wire_greet(tdi_ucx_wire *wire);
/* Hands a message to UCX. `outgoing` may be NULL. */
void tdi_ucx_wire_post(tdi_ucx_wire *wire, const tdi_ucx_message *message, tdi_ucx_outgoing *outgoing, const void *data,
                       size_t size);

/* ucx_inbox.c: what comes */
ucs_status_t tdi_ucx_inbox_on_message(void *side, const void *head, size_t head_size, void *data, size_t size,
                                      const ucp_am_recv_param_t *param);
/* The inbox of that sender, a new one for a new sender; NULL: there are more senders than peers. */
tdi_ucx_inbox *tdi_ucx_inbox_of(tdi_ucx_fabric *fabric, uint64_t sender);
/* Deals with what has come, as far as the sinks let it. */
void tdi_ucx_inbox_take(tdi_ucx_wire *wire);
/* Whether there is something to deal with. */
bool tdi_ucx_inbox_has_work(const tdi_ucx_wire *wire);
void tdi_ucx_inbox_clear(tdi_ucx_fabric *fabric, tdi_ucx_inbox *inbox);

#endif
