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
    /* Where the peer's memory `number` (the how manyeth it asked its engine for in this view, the same everywhere) lies
     * in this process: read only, as the peer writes it; whoever reads must have been told by a frame that it is ready,
     * and tells the peer by one when it has been read. Lives as long as the fabric. NULL: it cannot be seen, send
     * frames. The function itself is NULL where the engine can show none. */
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

#endif
