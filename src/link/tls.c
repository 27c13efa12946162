/* tls.c - bulk data by TLS: a loop of links, one a peer. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "link/wire.h"

typedef struct tls_wire {
    tdi_wire wire;
    tdi_link *link; /* NULL: not joined */
} tls_wire;

typedef struct tls_fabric {
    tdi_fabric fabric;
    tdi_loop *loop;
    tdi_sinks sinks, users;
    bool moved;
    int peers;
    tls_wire wires[];
} tls_fabric;

static void *tls_memory(tdi_engine *engine, size_t bytes)
{
    enum { PAGE = 4096 };
    (void)engine;
    size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    void *memory = rounded >= bytes ? aligned_alloc(PAGE, rounded ? rounded : PAGE) : NULL;
    return memory ? memset(memory, 0, rounded) : NULL;
}

static void tls_release_memory(tdi_engine *engine, void *memory)
{
    (void)engine;
    free(memory);
}

/* ---- wires ---- */

static void tls_send(tdi_wire *wire, const tdi_frame *frame, const void *payload)
{
    tdi_link_send(((tls_wire *)wire)->link, frame, payload);
}

static void tls_resume(tdi_wire *wire)
{
    tdi_link_resume(((tls_wire *)wire)->link);
}

/* ---- sinks: the users', and whether anything has moved ---- */

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    tls_fabric *tls = user;
    tdi_sink_answer answer = tls->users.place(tls->users.user, peer, frame, place, error);
    tls->moved = tls->moved || answer != TDI_HOLD;
    return answer;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    tls_fabric *tls = user;
    tls->moved = true;
    tls->users.arrived(tls->users.user, peer, frame, place);
}

static void on_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    tls_fabric *tls = user;
    tls->moved = true;
    if (tls->users.sent)
        tls->users.sent(tls->users.user, peer, frame, payload);
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    tls_fabric *tls = user;
    tls->moved = true;
    tls->users.lost(tls->users.user, peer, why);
}

/* ---- the fabric ---- */

static const void *tls_address(tdi_fabric *fabric, size_t *size)
{
    *size = 0;
    return fabric;
}

static td_status tls_join(tdi_fabric *fabric, int peer, const tdi_peer_address *address, tdi_wire **wire,
                          tdi_error *error)
{
    tls_fabric *tls = (tls_fabric *)fabric;
    tls_wire *joined = &tls->wires[peer];
    *wire = NULL;
    if (address->size != 0 || !address->link || joined->link) {
        tdi_link_free(address->link);
        return tdi_fail(error, TD_INVALID_ARGUMENT, "peer %d: expected one link for bulk data by TLS", peer);
    }
    *joined = (tls_wire){{NULL, tls_send, tls_resume}, address->link};
    tdi_link_set_sinks(joined->link, &tls->sinks, peer, NULL);
    TDI_TRY(tdi_link_attach(joined->link, tls->loop, error));
    *wire = &joined->wire;
    return TD_OK;
}

static bool tls_pump(tdi_fabric *fabric)
{
    tls_fabric *tls = (tls_fabric *)fabric;
    tls->moved = false;
    (void)tdi_loop_run(tls->loop, 0, NULL);
    return tls->moved;
}

static int tls_sleep(tdi_fabric *fabric)
{
    return tdi_loop_descriptor(((tls_fabric *)fabric)->loop);
}

static void tls_close(tdi_fabric *fabric)
{
    tls_fabric *tls = (tls_fabric *)fabric;
    for (int i = 0; i < tls->peers; i++)
        tdi_link_free(tls->wires[i].link);
    tdi_loop_free(tls->loop);
    free(tls);
}

static td_status tls_open(tdi_engine *engine, const tdi_fabric_spec *spec, tdi_fabric **fabric, tdi_error *error)
{
    (void)engine;
    *fabric = NULL;
    tls_fabric *tls = calloc(1, sizeof *tls + (size_t)spec->peers * sizeof *tls->wires);
    if (!tls)
        return tdi_no_memory(error);
    tls->fabric = (tdi_fabric){tls_address, tls_join, tls_pump, tls_sleep, tls_close};
    tls->users = *spec->sinks;
    tls->sinks = (tdi_sinks){tls, on_place, on_arrived, on_sent, on_lost};
    tls->peers = spec->peers;
    td_status status = tdi_loop_create(&tls->loop, error);
    if (status == TD_OK)
        *fabric = &tls->fabric;
    else
        free(tls);
    return status;
}

static void tls_release(tdi_engine *engine)
{
    free(engine);
}

tdi_engine *tdi_tls_engine(void)
{
    tdi_engine *engine = malloc(sizeof *engine);
    if (engine)
        *engine = (tdi_engine){"TLS", true, true, tls_memory, tls_release_memory, tls_open, tls_release};
    return engine;
}
