/* ucx_fabric.c - a fabric of UCX: a view's workers, its address, its pump and its end. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/text.h"
#include "link/ucx.h"
#include "link/ucx_struct.h"

/* Seconds. UCX takes some milliseconds to close, and as many to have connected where the peer answers. */
static const double longest_close = 1.0, longest_greeting = 0.25;

/* ---- workers ---- */

static ucs_status_t open_side(tdi_ucx_fabric *f, tdi_ucx_side_kind kind)
{
    const tdi_ucx_api *api = f->api;
    tdi_ucx_side *side = &f->sides[kind];
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    const ucp_am_handler_param_t handler = {.field_mask =
                                                UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                                UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                            .flags = UCP_AM_FLAG_WHOLE_MSG,
                                            .cb = tdi_ucx_inbox_on_message,
                                            .arg = side};
    side->fabric = f;
    ucs_status_t status = api->ucp_worker_create(f->engine->contexts[kind], &params, &side->worker);
    if (status != UCS_OK) {
        side->worker = NULL;
        return status;
    }
    status = api->ucp_worker_set_am_recv_handler(side->worker, &handler);
    if (status == UCS_OK)
        status = api->ucp_worker_get_efd(side->worker, &side->descriptor);
    if (status == UCS_OK)
        status = api->ucp_worker_get_address(side->worker, &side->address, &side->address_size);
    return status;
}

static void close_side(tdi_ucx_fabric *f, tdi_ucx_side *side)
{
    if (side->address)
        f->api->ucp_worker_release_address(side->worker, side->address);
    if (side->worker)
        f->api->ucp_worker_destroy(side->worker);
    *side = (tdi_ucx_side){0};
}

static td_status open_sides(tdi_ucx_fabric *f, tdi_error *error)
{
    for (int kind = 0; kind < TDI_UCX_SIDES; kind++) {
        if (!f->engine->contexts[kind])
            continue;
        pthread_mutex_lock(&f->engine->lock);
        ucs_status_t status = open_side(f, (tdi_ucx_side_kind)kind);
        if (status != UCS_OK)
            close_side(f, &f->sides[kind]);
        pthread_mutex_unlock(&f->engine->lock);
        if (status == UCS_OK || (kind == TDI_UCX_NEAR && f->engine->contexts[TDI_UCX_FAR]))
            continue;
        return tdi_fail(error, TD_UNSUPPORTED, "UCX %s opens no %s: %s; %s", f->api->version,
                        kind == TDI_UCX_NEAR ? "shared memory" : "network", f->api->ucs_status_string(status),
                        kind == TDI_UCX_NEAR ? "is there room in /dev/shm (df /dev/shm)?"
                                             : "is there an interface that is up (ip link)?");
    }
    return TD_OK;
}

/* One descriptor for all sides. */
static td_status open_descriptor(tdi_ucx_fabric *f, tdi_error *error)
{
    int count = 0;
    for (int i = 0; i < TDI_UCX_SIDES; i++)
        if (f->sides[i].worker) {
            f->waits_for = f->sides[i].descriptor;
            count++;
        }
    if (count < 2)
        return TD_OK;
    f->waits_for = epoll_create1(EPOLL_CLOEXEC);
    f->owns_descriptor = f->waits_for >= 0;
    bool added = f->owns_descriptor;
    for (int i = 0; i < TDI_UCX_SIDES && added; i++)
        added = epoll_ctl(f->waits_for, EPOLL_CTL_ADD, f->sides[i].descriptor,
                          &(struct epoll_event){.events = EPOLLIN}) == 0;
    return added ? TD_OK : tdi_fail(error, TD_IO, "a descriptor to wait for UCX could not be opened");
}

/* ---- the address ---- */

static void open_mark(tdi_ucx_fabric *f)
{
    tdi_ucx *engine = f->engine;
    if (!f->sides[TDI_UCX_NEAR].worker)
        return;
    pthread_mutex_lock(&engine->lock);
    f->mark_number = engine->mark++;
    pthread_mutex_unlock(&engine->lock);
    f->mark = tdi_ucx_mark_at(&engine->marks, f->mark_number);
    atomic_store(f->mark, f->number);
}

/* How many messages a sender may have under way. Those of all peers fit in the queue, with an answer to each, a
 * greeting and a farewell. */
static td_status set_windows(tdi_ucx_fabric *f, tdi_error *error)
{
    int others = f->peers > 1 ? f->peers - 1 : 1;
    int near = ((TDI_UCX_QUEUE - TDI_UCX_UNFREED) / others - 2) / 2;
    f->windows[TDI_UCX_NEAR] = near < TDI_UCX_WINDOW ? near : TDI_UCX_WINDOW;
    f->windows[TDI_UCX_FAR] = TDI_UCX_WINDOW;
    if (!f->sides[TDI_UCX_NEAR].worker || near > 0)
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "UCX: expected at most %d processes, got %d; TLS takes more",
                    TDI_UCX_NEAREST + 1, f->peers);
}

static td_status make_address(tdi_ucx_fabric *f, tdi_error *error)
{
    tdi_ucx_address address = {.major = f->api->major, .minor = f->api->minor, .fabric = f->number};
    tdi_ucx_host(address.host);
    if (f->mark) {
        address.pid = (uint32_t)getpid();
        address.descriptor = (uint32_t)f->engine->marks.descriptor;
        address.mark = f->mark_number;
    }
    for (int i = 0; i < TDI_UCX_SIDES; i++)
        address.workers[i] = (tdi_ucx_bytes){f->sides[i].address, (uint32_t)f->sides[i].address_size};
    f->address_size = tdi_ucx_address_encode(&address, NULL);
    f->address = malloc(f->address_size);
    if (!f->address)
        return tdi_no_memory(error);
    tdi_ucx_address_encode(&address, f->address);
    return TD_OK;
}

static const void *fabric_address(tdi_fabric *fabric, size_t *size)
{
    *size = ((tdi_ucx_fabric *)fabric)->address_size;
    return ((tdi_ucx_fabric *)fabric)->address;
}

/* ---- moving ---- */

static void progress(tdi_ucx_fabric *f)
{
    enum { ROUNDS = 64 };
    for (int i = 0; i < TDI_UCX_SIDES; i++)
        for (int round = 0; f->sides[i].worker && round < ROUNDS; round++)
            if (!f->api->ucp_worker_progress(f->sides[i].worker))
                break;
}

static bool fabric_pump(tdi_fabric *fabric)
{
    tdi_ucx_fabric *f = (tdi_ucx_fabric *)fabric;
    f->moved = false;
    progress(f);
    for (int i = 0; i < f->peers; i++)
        if (f->wires[i].inbox)
            tdi_ucx_wire_move(&f->wires[i]);
    return f->moved;
}

static int fabric_sleep(tdi_fabric *fabric)
{
    tdi_ucx_fabric *f = (tdi_ucx_fabric *)fabric;
    for (int i = 0; i < f->peers; i++)
        if (f->wires[i].inbox && tdi_ucx_wire_has_work(&f->wires[i]))
            return -1;
    for (int i = 0; i < TDI_UCX_SIDES; i++)
        if (f->sides[i].worker && f->api->ucp_worker_arm(f->sides[i].worker) != UCS_OK)
            return -1;
    return f->waits_for;
}

/* ---- the end ---- */

/* Nobody may read what lies in our memory as this view's from now on. */
static void close_mark(tdi_ucx_fabric *f)
{
    if (!f->mark)
        return;
    atomic_store(f->mark, 0);
    atomic_thread_fence(memory_order_seq_cst);
}

static bool are_cut(tdi_ucx_fabric *f)
{
    bool all = true;
    for (int i = 0; i < f->peers; i++) {
        tdi_ucx_wire_cut(&f->wires[i]);
        all = tdi_ucx_wire_is_cut(&f->wires[i]) && all;
    }
    return all;
}

static bool is_any_unsettled(const tdi_ucx_fabric *f)
{
    bool any = false;
    for (int i = 0; i < f->peers; i++)
        any = any || f->wires[i].endpoint; /* it has not been cut */
    return any;
}

/* False: UCX has not connected, and cannot be closed. */
static bool cut_all(tdi_ucx_fabric *f)
{
    double start = tdi_seconds(), limit = longest_close;
    while (!are_cut(f) && tdi_seconds() - start < limit) {
        limit = is_any_unsettled(f) ? longest_greeting : longest_close;
        progress(f);
    }
    return !is_any_unsettled(f);
}

static void free_spare(tdi_ucx_fabric *f)
{
    for (tdi_ucx_parcel *parcel; (parcel = f->spare);) {
        f->spare = parcel->next;
        free(parcel);
    }
}

static void close_sides(tdi_ucx_fabric *f)
{
    pthread_mutex_lock(&f->engine->lock);
    for (int i = 0; i < TDI_UCX_SIDES; i++)
        close_side(f, &f->sides[i]);
    pthread_mutex_unlock(&f->engine->lock);
}

/* The far worker, and all that it may still have pointers to, are left. */
static void leave(tdi_ucx_fabric *f)
{
    pthread_mutex_lock(&f->engine->lock);
    close_side(f, &f->sides[TDI_UCX_NEAR]);
    f->engine->has_left_worker = true;
    pthread_mutex_unlock(&f->engine->lock);
    for (int i = 0; i < f->peers; i++)
        tdi_ucx_marks_close(&f->wires[i].marks);
}

static void release(tdi_ucx_fabric *f)
{
    for (int i = 0; i < f->peers; i++)
        tdi_ucx_inbox_clear(f, &f->inboxes[i]);
    for (int i = 0; i < f->peers; i++)
        tdi_ucx_wire_release(&f->wires[i]);
    close_sides(f);
    if (f->owns_descriptor)
        close(f->waits_for);
    free_spare(f);
    free(f->address);
    free(f->inboxes);
    free(f);
}

static void fabric_close(tdi_fabric *fabric)
{
    tdi_ucx_fabric *f = (tdi_ucx_fabric *)fabric;
    f->closing = true;
    close_mark(f);
    if (cut_all(f))
        release(f);
    else
        leave(f);
}

/* ---- the beginning ---- */

static td_status draw_number(tdi_ucx_fabric *f, tdi_error *error)
{
    if (RAND_bytes((unsigned char *)&f->number, sizeof f->number) != 1)
        return tdi_fail(error, TD_IO, "no random number for a fabric: OpenSSL gave none");
    f->number |= 1; /* 0 is nobody */
    return TD_OK;
}

static td_status prepare(tdi_ucx_fabric *f, tdi_error *error)
{
    TDI_TRY(draw_number(f, error));
    TDI_TRY(open_sides(f, error));
    TDI_TRY(open_descriptor(f, error));
    open_mark(f);
    TDI_TRY(set_windows(f, error));
    return make_address(f, error);
}

td_status tdi_ucx_fabric_open(tdi_engine *engine, const tdi_fabric_spec *spec, tdi_fabric **fabric, tdi_error *error)
{
    *fabric = NULL;
    tdi_ucx_fabric *f = calloc(1, sizeof *f + (size_t)spec->peers * sizeof *f->wires);
    if (!f)
        return tdi_no_memory(error);
    f->fabric = (tdi_fabric){fabric_address, tdi_ucx_fabric_join, fabric_pump, fabric_sleep, fabric_close};
    f->engine = (tdi_ucx *)engine;
    f->api = f->engine->api;
    f->token = spec->token;
    f->generation = spec->generation;
    f->sinks = *spec->sinks;
    f->inboxes = calloc((size_t)spec->peers, sizeof *f->inboxes);
    f->peers = f->inboxes ? spec->peers : 0;
    for (int i = 0; i < f->peers; i++) {
        f->wires[i].fabric = f;
        f->wires[i].peer = i;
    }
    td_status status = f->inboxes ? prepare(f, error) : tdi_no_memory(error);
    if (status == TD_OK)
        *fabric = &f->fabric;
    else
        fabric_close(&f->fabric);
    return status;
}
