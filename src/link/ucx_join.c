/* ucx_join.c - makes the wire to a peer from its address: by shared memory where both are on one host, else by the
 * network. */
#include <stdio.h>
#include <string.h>

#include "link/ucx.h"
#include "link/ucx_struct.h"

static void on_error(void *user, ucp_ep_h endpoint, ucs_status_t status)
{
    tdi_ucx_wire *w = user;
    (void)endpoint;
    if (w->failed == UCS_OK)
        w->failed = status;
}

static ucs_status_t connect_side(tdi_ucx_wire *w, tdi_ucx_side_kind kind, const tdi_ucx_address *address)
{
    tdi_ucx_fabric *f = w->fabric;
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                    .address = address->workers[kind].at,
                                    .err_mode =
                                        kind == TDI_UCX_NEAR ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
                                    .err_handler = {on_error, w}};
    if (!f->sides[kind].worker || !address->workers[kind].at)
        return UCS_ERR_UNREACHABLE;
    pthread_mutex_lock(&f->engine->lock);
    ucs_status_t status = f->api->ucp_ep_create(f->sides[kind].worker, &params, &w->endpoint);
    pthread_mutex_unlock(&f->engine->lock);
    w->side = kind;
    if (status != UCS_OK)
        w->endpoint = NULL;
    return status;
}

static bool is_on_this_host(const tdi_ucx_address *address)
{
    char host[TDI_UCX_HOST_BYTES];
    tdi_ucx_host(host);
    return strcmp(host, address->host) == 0;
}

/* Joins it only while it is open: see ucx_mark.c. UNREACHABLE: it cannot be seen; CONNECTION_RESET: it has closed. */
static ucs_status_t reach_near(tdi_ucx_wire *w, const tdi_ucx_address *address)
{
    if (!is_on_this_host(address) || !tdi_ucx_marks_see(&w->marks, address->pid, address->descriptor))
        return UCS_ERR_UNREACHABLE;
    w->mark = tdi_ucx_mark_at(&w->marks, address->mark);
    if (!tdi_ucx_wire_is_open(w))
        return UCS_ERR_CONNECTION_RESET;
    ucs_status_t status = connect_side(w, TDI_UCX_NEAR, address);
    if (status != UCS_OK)
        return status;
    tdi_ucx_wire_greet(w);
    return tdi_ucx_wire_is_open(w) ? w->failed : UCS_ERR_CONNECTION_RESET;
}

static ucs_status_t reach(tdi_ucx_wire *w, const tdi_ucx_address *address)
{
    ucs_status_t status = reach_near(w, address);
    if (status != UCS_ERR_UNREACHABLE)
        return status;
    status = connect_side(w, TDI_UCX_FAR, address);
    if (status == UCS_OK)
        tdi_ucx_wire_greet(w);
    return status == UCS_OK ? w->failed : status;
}

static const void *wire_see(tdi_wire *wire, int number)
{
    const tdi_ucx_wire *w = (const tdi_ucx_wire *)wire;
    bool there = w->state == TDI_UCX_OPEN && number >= 0 && number < w->seen.count;
    return there && tdi_ucx_wire_is_open(w) ? w->seen.at[number].at : NULL;
}

static void wire_resume(tdi_wire *wire)
{
    ((tdi_ucx_wire *)wire)->held = false;
}

static void name_wire(tdi_ucx_wire *w, const char *name)
{
    if (name)
        snprintf(w->name, sizeof w->name, "%s", name);
    else
        snprintf(w->name, sizeof w->name, "peer %d", w->peer);
}

static td_status check(const tdi_ucx_fabric *f, int peer, const tdi_peer_address *from, tdi_ucx_address *address,
                       tdi_error *error)
{
    if (peer < 0 || peer >= f->peers || f->wires[peer].state != TDI_UCX_UNJOINED)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "peer %d cannot be joined: there are %d, each is joined once", peer,
                        f->peers);
    if (!from->bytes || !tdi_ucx_address_decode(from->bytes, from->size, address) || !address->fabric ||
        address->fabric == f->number)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "peer %d: expected the address of its fabric of UCX, got %zu other bytes", peer, from->size);
    if (address->major != f->api->major || address->minor != f->api->minor)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "peer %d has UCX %u.%u, this process %u.%u: TLS suits both", peer,
                        address->major, address->minor, f->api->major, f->api->minor);
    return TD_OK;
}

static td_status give_up(tdi_ucx_wire *w, ucs_status_t status, tdi_error *error)
{
    w->failed = status;
    tdi_ucx_wire_cut(w);
    w->state = TDI_UCX_LOST;
    if (status == UCS_ERR_CONNECTION_RESET)
        return tdi_fail(error, TD_IO, "%s has closed the connection", w->name);
    return tdi_fail(error, TD_IO, "%s cannot be reached by UCX: %s", w->name,
                    w->fabric->api->ucs_status_string(status));
}

td_status tdi_ucx_fabric_join(tdi_fabric *fabric, int peer, const tdi_peer_address *from, tdi_wire **wire,
                              tdi_error *error)
{
    tdi_ucx_fabric *f = (tdi_ucx_fabric *)fabric;
    tdi_ucx_address address;
    *wire = NULL;
    tdi_link_free(from->link);
    TDI_TRY(check(f, peer, from, &address, error));
    tdi_ucx_wire *w = &f->wires[peer];
    w->wire = (tdi_wire){NULL, tdi_ucx_wire_send, wire_resume};
    name_wire(w, from->name);
    tdi_ucx_inbox *inbox = tdi_ucx_inbox_of(f, address.fabric);
    if (!inbox || inbox->wire)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: there are more senders than the view has peers", w->name);
    w->inbox = inbox;
    ucs_status_t status = reach(w, &address);
    if (status != UCS_OK)
        return give_up(w, status, error);
    w->wire.see = w->side == TDI_UCX_NEAR ? wire_see : NULL;
    w->state = TDI_UCX_OPEN;
    inbox->wire = w;
    *wire = &w->wire;
    return TD_OK;
}
