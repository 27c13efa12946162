/* carrier.c - which engine carries what.
 *
 * Within a host UCX's shared memory, where both processes have the same UCX; between hosts TLS, or UCX where the
 * network is said to be one's own. What each process has, and how its fabric is reached, goes by the meeting's links,
 * with a token by which fabrics of UCX know each other. */
#include "cluster/carrier.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* What a process says of its fabric; the fabric's address follows. */
typedef struct offer {
    char reach[16 + TDI_UCX_HOST_BYTES +
               32]; /* two fabrics of UCX with the same text reach each other; "": there is none */
} offer;

/* ---- the engine ---- */

static td_status try_ucx(const tdi_carrier_spec *spec, tdi_carrier *carrier, const tdi_fabric_spec *fabric,
                         tdi_error *error)
{
    const tdi_ucx_spec ucx = {.reach = spec->open_network ? TDI_UCX_NETWORK : TDI_UCX_HOST};
    TDI_TRY(tdi_mixed_engine(&ucx, &carrier->engine, error));
    td_status status = carrier->engine->open(carrier->engine, fabric, &carrier->fabric, error);
    if (status != TD_OK) {
        carrier->engine->release(carrier->engine);
        carrier->engine = NULL;
    }
    return status;
}

static void describe_ucx(const tdi_carrier_spec *spec, offer *own)
{
    char host[TDI_UCX_HOST_BYTES] = "";
    const char *version = tdi_ucx_version(NULL);
    if (!spec->open_network)
        tdi_ucx_host(host);
    snprintf(own->reach, sizeof own->reach, "%s %.31s %s", spec->open_network ? "network" : "host",
             version ? version : "", host);
}

static td_status open_engine(const tdi_carrier_spec *spec, tdi_carrier *carrier, const tdi_fabric_spec *fabric,
                             offer *own, tdi_error *error)
{
    tdi_error why = {0};
    if (spec->transport != TDI_TRANSPORT_TLS && try_ucx(spec, carrier, fabric, &why) == TD_OK) {
        describe_ucx(spec, own);
        return TD_OK;
    }
    if (spec->transport == TDI_TRANSPORT_UCX)
        return tdi_fail(error, why.status, "%s", why.message);
    if (spec->open_network)
        tdi_log(spec->context, TD_LOG_WARNING, "gradients go by TLS, encrypted: %s", why.message);
    carrier->engine = tdi_tls_engine();
    return carrier->engine ? carrier->engine->open(carrier->engine, fabric, &carrier->fabric, error)
                           : tdi_no_memory(error);
}

/* ---- the wires ---- */

static td_status join(const tdi_carrier_spec *spec, tdi_carrier *carrier, int peer, const tdi_shared *theirs,
                      const offer *own, int *near, tdi_error *error)
{
    offer other;
    tdi_link *link = tdi_meeting_take_bulk(spec->meeting, peer);
    if (theirs->size < sizeof other) {
        tdi_link_free(link);
        return tdi_fail(error, TD_IO, "%s made no offer", tdi_meeting_name(spec->meeting, peer));
    }
    memcpy(&other, theirs->bytes, sizeof other);
    other.reach[sizeof other.reach - 1] = '\0';
    tdi_peer_address address = {.link = link, .name = tdi_meeting_name(spec->meeting, peer)};
    if (*own->reach && strcmp(own->reach, other.reach) == 0) {
        tdi_link_free(link);
        address = (tdi_peer_address){.bytes = theirs->bytes + sizeof other,
                                     .size = theirs->size - sizeof other,
                                     .name = tdi_meeting_name(spec->meeting, peer)};
        *near += 1;
    }
    return carrier->fabric->join(carrier->fabric, peer, &address, &carrier->wires[peer], error);
}

static void name_carrier(const tdi_carrier_spec *spec, tdi_carrier *carrier, int near)
{
    const char *ucx = spec->open_network ? "UCX, unencrypted" : "shared memory";
    int far = spec->members - 1 - near;
    snprintf(carrier->name, sizeof carrier->name, "%s%s%s", near ? ucx : "", near && far ? ", and " : "",
             far ? "TLS" : "");
}

static td_status share_offers(const tdi_carrier_spec *spec, tdi_carrier *carrier, const offer *own, tdi_shared *all,
                              tdi_error *error)
{
    size_t size;
    const void *address = carrier->fabric->address(carrier->fabric, &size);
    char *bytes = malloc(sizeof *own + size);
    if (!bytes)
        return tdi_no_memory(error);
    memcpy(bytes, own, sizeof *own);
    if (size)
        memcpy(bytes + sizeof *own, address, size);
    td_status status = tdi_meeting_share(spec->meeting, bytes, sizeof *own + size, all, error);
    free(bytes);
    return status;
}

/* By UCX a peer that has joined is not asked for; by TLS it need not be. So all go on when all have joined. */
static td_status join_all(const tdi_carrier_spec *spec, tdi_carrier *carrier, const offer *own, tdi_shared *all,
                          tdi_error *error)
{
    int near = 0;
    TDI_TRY(share_offers(spec, carrier, own, all, error));
    td_status status = TD_OK;
    for (int i = 0; i < spec->members && status == TD_OK; i++)
        if (i != spec->self)
            status = join(spec, carrier, i, &all[i], own, &near, error);
    tdi_shared_free(all, spec->members);
    name_carrier(spec, carrier, near);
    return status;
}

/* The chief's is everybody's. */
static td_status agree_on_token(const tdi_carrier_spec *spec, uint64_t *token, tdi_shared *all, tdi_error *error)
{
    if (getrandom(token, sizeof *token, 0) != sizeof *token)
        return tdi_fail(error, TD_IO, "no random numbers are to be had: %s", strerror(errno));
    TDI_TRY(tdi_meeting_share(spec->meeting, token, sizeof *token, all, error));
    td_status status = TD_OK;
    if (spec->self && all[0].size == sizeof *token)
        memcpy(token, all[0].bytes, sizeof *token);
    else if (spec->self)
        status = tdi_fail(error, TD_IO, "%s gave no token", tdi_meeting_name(spec->meeting, 0));
    tdi_shared_free(all, spec->members);
    return status;
}

static td_status open_with(const tdi_carrier_spec *spec, tdi_carrier *carrier, tdi_shared *all, tdi_error *error)
{
    offer own = {0};
    tdi_fabric_spec fabric = {.generation = 1, .peers = spec->members, .sinks = spec->sinks};
    TDI_TRY(agree_on_token(spec, &fabric.token, all, error));
    TDI_TRY(open_engine(spec, carrier, &fabric, &own, error));
    return join_all(spec, carrier, &own, all, error);
}

td_status tdi_carrier_open(const tdi_carrier_spec *spec, tdi_carrier *carrier, tdi_error *error)
{
    *carrier = (tdi_carrier){.wires = calloc((size_t)spec->members, sizeof *carrier->wires)};
    tdi_shared *all = calloc((size_t)spec->members, sizeof *all);
    td_status status = carrier->wires && all ? open_with(spec, carrier, all, error) : tdi_no_memory(error);
    free(all);
    if (status == TD_OK)
        return TD_OK;
    if (carrier->fabric)
        carrier->fabric->close(carrier->fabric);
    tdi_carrier_release(carrier);
    return status;
}

void tdi_carrier_release(tdi_carrier *carrier)
{
    if (carrier->engine)
        carrier->engine->release(carrier->engine);
    free(carrier->wires);
    *carrier = (tdi_carrier){0};
}
