/* wire.h - what moves the bulk data of a group: gradients, sums, states.
 *
 * An engine (TLS; UCX) is made once a process. It gives out the memory from which data are sent, and opens a fabric for
 * each view of the group; a fabric has a wire to each peer. When a view ends, its fabric is closed by force, and what
 * was under way on it is void: a frame of a view never reaches the next. Memory outlives views.
 *
 *     engine = tdi_tls_engine();
 *     arena = engine->memory(engine, bytes);
 *     engine->open(engine, &spec, &fabric, error);       every view: a fabric; its address goes to all peers by links
 *     wire = fabric->join(fabric, peer, &address, error); for each peer, by what that one has sent
 *     wire->send(wire, &frame, payload);                  never blocks
 *     while (!done)                                       done: set by a sink
 *         if (!fabric->pump(fabric) && (fd = fabric->sleep(fabric)) >= 0)
 *             poll(fd ...);
 *     fabric->close(fabric);
 *
 * A fabric and its wires belong to one thread at a time, which a lock of their users sees to; nothing here waits for
 * anything. Sinks (frame.h) are called from within a pump alone, with the number of the peer. */
#ifndef TDI_LINK_WIRE_H
#define TDI_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/frame.h"
#include "link/link.h"

typedef struct tdi_engine tdi_engine;
typedef struct tdi_fabric tdi_fabric;
typedef struct tdi_wire tdi_wire;

/* One view's. */
typedef struct tdi_fabric_spec {
    uint32_t generation; /* of the view */
    uint64_t token;      /* random, the same in all processes of the view, secret: an engine whose peers have not proved
                          * who they are tells strangers by it */
    int peers;           /* processes of the view, this one among them; peers are numbered 0 .. peers - 1 */
    const tdi_sinks *sinks; /* borrowed until `close` */
} tdi_fabric_spec;

/* How a peer is reached. */
typedef struct tdi_peer_address {
    const void *bytes; /* what its fabric's `address` gave, `size` bytes; borrowed for the call */
    size_t size;
    /* For an engine that `takes_links`: an open link to the peer's same fabric, kept for bulk data alone, out of any
     * loop, with both sides' first frames still to come. The fabric's from now on, also after a failure. Else NULL. */
    tdi_link *link;
    const char *name; /* of the peer in sentences, copied; NULL: a link's own, else "peer 2" */
} tdi_peer_address;

struct tdi_engine {
    const char *name; /* in sentences: "TLS" */
    bool takes_links; /* see tdi_peer_address */
    bool encrypts;    /* what leaves the host */

    /* Memory of so many bytes, zeroed, aligned to a page: of arenas that neighbours see in place where the engine can
     * show them. NULL when memory is out. Any thread; may take as long as the system takes to give memory. */
    void *(*memory)(tdi_engine *engine, size_t bytes);
    /* NULL is accepted. No fabric of the engine is open then that uses it. */
    void (*release_memory)(tdi_engine *engine, void *memory);
    /* Opens a fabric without wires. TD_NO_MEMORY, or TD_UNSUPPORTED with a sentence that says what is missing. May take
     * milliseconds, never waits for a peer. */
    td_status (*open)(tdi_engine *engine, const tdi_fabric_spec *spec, tdi_fabric **fabric, tdi_error *error);
    /* Frees the engine. All its fabrics are closed and its memory is released before. */
    void (*release)(tdi_engine *engine);
};

struct tdi_fabric {
    /* What peers need in order to join this process: bytes for their `join`, which live as long as the fabric; *size
     * may be 0. */
    const void *(*address)(tdi_fabric *fabric, size_t *size);
    /* Makes the wire to a peer, once for each peer. The wire lives as long as the fabric. Does not wait for the peer,
     * which may not have joined yet: what is sent before is sent when it has. TD_INVALID_ARGUMENT: bytes that are no
     * address; TD_NO_MEMORY; TD_IO. */
    td_status (*join)(tdi_fabric *fabric, int peer, const tdi_peer_address *address, tdi_wire **wire, tdi_error *error);
    /* Moves what can be moved now: sends, receives, calls sinks. True: a sink was called, so that there may be
     * something new to do. Never blocks, and ends after a share of bytes of each wire. */
    bool (*pump)(tdi_fabric *fabric);
    /* Makes ready to wait: a descriptor that polls as readable (POLLIN) as soon as there is something to move, or -1:
     * there is something already, so do not wait. Asked anew before each wait; a `send` by another thread in between
     * has to wake the waiting one by other means, as the descriptor need not show it. */
    int (*sleep)(tdi_fabric *fabric);
    /* Ends it and all its wires by force, without an answer from anybody, and frees them. When it returns, nobody
     * writes into this process's memory any more, no payload is still borrowed, and no sink is called again. Not from
     * within a sink. */
    void (*close)(tdi_fabric *fabric);
};

struct tdi_wire {
    /* Where the peer's memory `number` lies in this process: the how manyeth, from 0 on, of those that it had asked its
     * engine for and not released when it first sent a frame, then of later ones; so the same everywhere where all ask
     * alike. Read only, as the peer writes it: whoever reads must have been told by a frame that it is ready, tells the
     * peer by one when it has been read, and asks `see` again after reading, which answers NULL when the peer has
     * closed its fabric and may have written something else meanwhile. Lives as long as the fabric. NULL: it cannot be
     * seen, send frames. The function itself is NULL where the wire can show none. */
    const void *(*see)(tdi_wire *wire, int number);
    /* Queues a frame with its payload of frame->length bytes, borrowed until `sent`. Never blocks, never fails: of a
     * peer that is lost the sinks are told, and what is sent to it then is dropped. Frames of one wire arrive in order,
     * each whole. */
    void (*send)(tdi_wire *wire, const tdi_frame *frame, const void *payload);
    /* The sink that answered TDI_HOLD may be asked again, by the next pump. */
    void (*resume)(tdi_wire *wire);
};

/* The engine of links: everything by TLS. NULL when memory is out. */
tdi_engine *tdi_tls_engine(void);

/* ---- the engine of UCX ----
 *
 * Peers on this host are reached by shared memory, where nothing listens; others, where `reach` is TDI_UCX_NETWORK, by
 * RDMA or TCP, neither encrypted nor safe from strangers: whoever reaches its ports can write into the process. A
 * payload that lies in the engine's memory is copied once, by the peer that receives it, and is `sent` when that has
 * it; elsewhere it is copied twice.
 *
 * Of a peer by shared memory that is killed or stopped, a wire notices nothing: what is under way just does not move.
 * Whoever has links to the peers closes the fabric then. One that closes its fabric is reported at once. Who has been
 * stopped itself for longer than the others bear closes its fabric without another pump. */
typedef enum tdi_ucx_reach { TDI_UCX_HOST, TDI_UCX_NETWORK } tdi_ucx_reach;

typedef struct tdi_ucx_spec {
    tdi_ucx_reach reach;
    const char *devices; /* of a network: as UCX_NET_DEVICES, "eth0,mlx5_0:1"; NULL: all */
    const char *ports;   /* of a network: "2300-2400"; NULL: any */
} tdi_ucx_spec;

/* Loads UCX, of which nothing is loaded before, and leaves the process's environment and signal handlers as they are.
 * TD_UNSUPPORTED: it is not there, is too old, or finds no shared memory or network, with what to do about it;
 * TD_NO_MEMORY. */
td_status tdi_ucx_engine(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error);
/* "1.13.1"; peers have to be of the same 1.13. NULL: there is no UCX here, `error` says why. Loads UCX. */
const char *tdi_ucx_version(tdi_error *error);

/* UCX for peers whose addresses have bytes and no link, and TLS for all others, by their links. Fails as tdi_ucx_engine
 * does. */
td_status tdi_mixed_engine(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error);

enum { TDI_UCX_HOST_BYTES = 128 };
/* A text that is the same in processes which can share memory by UCX: of one host, its namespaces, /dev/shm and user.
 */
void tdi_ucx_host(char host[TDI_UCX_HOST_BYTES]);

#endif
