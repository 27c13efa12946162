/* exchange.c - communicators whose collectives are moved between processes.
 *
 * The last worker of a process to begin a collective posts it; what a post means, and who moves the bytes, is
 * courier.c's. It is done when all has arrived and all of its own has been taken over by the wires, since the update
 * writes over what was sent.
 *
 * Whatever breaks, an end of a connection or a sentence from a peer, breaks everything that is pending and all that
 * comes: who waits is woken, latches its outcome, and leaves the step. */
#include "comm/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text.h"
#include "comm/exchange_struct.h"

static const uint32_t wakes_all = 1u << 30; /* more than a counter can be waited for */

typedef struct handle {
    tdi_communicator base;
    tdi_communicator *local; /* for what moves nothing, and for the step's end */
    tdi_exchange_program *program;
} handle;

/* ---- breaking ---- */

static void wake_waiters(tdi_exchange *x)
{
    for (tdi_exchange_program *p = x->programs; p; p = p->next)
        for (int id = 0; id < p->group.collectives->count; id++)
            tdi_event_add(&p->operations[id].done, wakes_all);
    tdi_event_add(&x->gather.done, wakes_all);
}

void tdi_exchange_break(tdi_exchange *x, const tdi_error *why)
{
    pthread_mutex_lock(&x->lock);
    if (!atomic_load(&x->broken)) {
        x->why = *why;
        atomic_store(&x->broken, true);
        wake_waiters(x);
    }
    pthread_mutex_unlock(&x->lock);
    tdi_courier_wake(x);
}

const tdi_error *tdi_exchange_failure(const tdi_exchange *x)
{
    return atomic_load(&x->broken) ? &x->why : NULL;
}

/* ---- communicators ---- */

static const tdi_collective *collective_of(const tdi_exchange_program *p, int id)
{
    return &p->group.collectives->at[id];
}

static bool moves(const tdi_exchange_program *p, int id)
{
    return collective_of(p, id)->kind != TDI_MEET;
}

/* The worker's shards are ready to be added up with the others of this process. */
static void combine(const handle *h, int id)
{
    const tdi_exchange_program *p = h->program;
    const tdi_deal *deal = p->deal;
    int first = deal->first_shard[deal->self], own = tdi_deal_shards(deal, deal->self), workers = p->group.workers;
    const tdi_combining combining = {.order = p->order,
                                     .self = deal->self,
                                     .collective = collective_of(p, id),
                                     .gradients = p->group.gradients,
                                     .begun = p->operations[id].combining};
    tdi_combine(&combining, first + own * h->base.rank / workers, first + own * (h->base.rank + 1) / workers);
}

static bool is_last_to_begin(const handle *h, tdi_operation *operation)
{
    pthread_mutex_t *lock = &h->program->exchange->lock;
    pthread_mutex_lock(lock);
    bool last = ++operation->begun == h->program->group.workers;
    if (last)
        operation->begun = 0;
    pthread_mutex_unlock(lock);
    return last;
}

static void exchange_begin(tdi_communicator *communicator, int id)
{
    handle *h = (handle *)communicator;
    if (!moves(h->program, id)) {
        h->local->begin(h->local, id);
        return;
    }
    if (collective_of(h->program, id)->kind == TDI_REDUCE)
        combine(h, id);
    if (is_last_to_begin(h, &h->program->operations[id]))
        tdi_courier_post(h->program->exchange, h->program, id);
}

static void wait_timed(tdi_exchange_program *p, tdi_operation *operation, uint32_t step)
{
    if ((int32_t)(atomic_load(&operation->done.value) - step) >= 0)
        return;
    double began = tdi_seconds();
    tdi_courier_wait(p->exchange, operation, step, p->group.spin);
    atomic_fetch_add_explicit(&p->exchange->waited, (uint64_t)((tdi_seconds() - began) * 1e9 / p->group.threads),
                              memory_order_relaxed);
}

static tdi_outcome exchange_finish(tdi_communicator *communicator, int id, uint32_t step)
{
    handle *h = (handle *)communicator;
    tdi_exchange *x = h->program->exchange;
    if (!moves(h->program, id))
        return h->local->finish(h->local, id, step);
    tdi_operation *operation = &h->program->operations[id];
    wait_timed(h->program, operation, step);
    return tdi_latch_outcome(&operation->latch, step, atomic_load(&x->broken) ? TDI_BROKEN : TDI_ARRIVED);
}

static void exchange_end_step(tdi_communicator *communicator)
{
    handle *h = (handle *)communicator;
    h->local->end_step(h->local);
}

static const tdi_error *exchange_failure(const tdi_communicator *communicator)
{
    return &((const handle *)communicator)->program->exchange->why;
}

static void unlink_program(tdi_exchange_program *p)
{
    tdi_exchange *x = p->exchange;
    pthread_mutex_lock(&x->lock);
    tdi_exchange_program **at = &x->programs;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    int kept = 0;
    for (int i = 0; i < x->posts.count; i++)
        if (x->posts.at[i].program != p)
            x->posts.at[kept++] = x->posts.at[i];
    x->posts.count = kept;
    pthread_mutex_unlock(&x->lock);
}

static void free_program(tdi_exchange_program *p)
{
    for (int id = 0; p->operations && id < p->group.collectives->count; id++) {
        tdi_reduction_free(p->operations[id].reduction);
        free(p->operations[id].combining);
    }
    tdi_buffer_free(p->operations);
    tdi_sum_order_free(p->order);
    free(p);
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void release(tdi_exchange *x)
{
    close_descriptor(x->wake_courier);
    close_descriptor(x->wake_driver);
    pthread_mutex_destroy(&x->lock);
    pthread_mutex_destroy(&x->driving);
    tdi_vec_free(&x->posts);
    free(x->peers);
    tdi_buffer_free(x);
}

static void exchange_release(tdi_communicator *communicator)
{
    handle *h = (handle *)communicator;
    tdi_exchange_program *p = h->program;
    tdi_exchange *x = p->exchange;
    h->local->release(h->local);
    free(h);
    if (--p->references)
        return;
    tdi_courier_lock(x);
    unlink_program(p);
    if (atomic_load(&x->broken))
        tdi_courier_give_up(x);
    tdi_courier_unlock(x);
    free_program(p);
    if (x->ended && !x->programs)
        release(x);
}

static handle *add_handle(tdi_exchange_program *p, tdi_communicator *local)
{
    handle *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    *h = (handle){.base = {.rank = local->rank,
                           .size = local->size,
                           .begin = exchange_begin,
                           .finish = exchange_finish,
                           .end_step = exchange_end_step,
                           .failure = exchange_failure,
                           .release = exchange_release},
                  .local = local,
                  .program = p};
    return h;
}

/* ---- programs ---- */

/* The frames that come in a step to a process, and those that it sends. */
static int64_t frames_of_gather(const tdi_deal *deal)
{
    int64_t frames = 0;
    for (int process = 0; process < deal->processes; process++)
        if (tdi_deal_shards(deal, process))
            frames += process == deal->self ? deal->processes - 1 : 1;
    return frames;
}

static int64_t bytes_of(const tdi_collective *collective, int shards)
{
    int64_t bytes = 0;
    for (int t = 0; t < collective->count; t++)
        bytes += collective->transfers[t].size * (collective->kind == TDI_REDUCE ? (int64_t)sizeof(float) : shards);
    return bytes;
}

static td_status make_operation(tdi_exchange_program *p, int id, tdi_error *error)
{
    const tdi_collective *collective = collective_of(p, id);
    tdi_operation *operation = &p->operations[id];
    tdi_reduction **reduction = &operation->reduction;
    operation->track = -1;
    int64_t own = bytes_of(collective, tdi_deal_shards(p->deal, p->deal->self));
    operation->heavy = !tdi_courier_is_little(own * (p->deal->processes - 1));
    operation->expected = frames_of_gather(p->deal);
    if (collective->kind == TDI_REDUCE) {
        operation->combining = calloc((size_t)p->deal->shards, sizeof *operation->combining);
        if (!operation->combining)
            return tdi_no_memory(error);
        TDI_TRY(tdi_reduction_create(p->order, p->deal, collective, reduction, error));
        operation->heavy = operation->heavy || !(*reduction)->direct;
        operation->expected = tdi_reduction_arrivals(*reduction) + tdi_reduction_sends(*reduction);
    }
    operation->left = operation->expected;
    return TD_OK;
}

static td_status make_operations(tdi_exchange_program *p, tdi_error *error)
{
    p->operations = tdi_buffer_create((size_t)p->group.collectives->count * sizeof *p->operations + 1);
    if (!p->operations)
        return tdi_no_memory(error);
    TDI_TRY(tdi_sum_order_create(p->deal, &p->order, error));
    for (int id = 0; id < p->group.collectives->count; id++)
        if (moves(p, id))
            TDI_TRY(make_operation(p, id, error));
    return TD_OK;
}

static void link_program(tdi_exchange *x, tdi_exchange_program *p)
{
    tdi_courier_lock(x);
    pthread_mutex_lock(&x->lock);
    p->number = atomic_fetch_add(&x->connected, 1) + 1;
    p->next = x->programs;
    x->programs = p;
    atomic_store(&x->stop_step, 0);
    for (int id = 0; atomic_load(&x->broken) && id < p->group.collectives->count; id++)
        tdi_event_add(&p->operations[id].done, wakes_all);
    pthread_mutex_unlock(&x->lock);
    tdi_courier_resume(x); /* frames of this program may have come before it */
    tdi_courier_unlock(x);
}

static td_status add_program(tdi_exchange *x, const tdi_deal *deal, const tdi_group_spec *group,
                             tdi_exchange_program **program, tdi_error *error)
{
    tdi_exchange_program *p = calloc(1, sizeof *p);
    if (!p)
        return tdi_no_memory(error);
    *p = (tdi_exchange_program){.exchange = x, .deal = deal, .group = *group, .references = group->workers};
    td_status status = make_operations(p, error);
    if (status != TD_OK) {
        free_program(p);
        return status;
    }
    link_program(x, p);
    *program = p;
    return TD_OK;
}

static td_status add_handles(tdi_exchange_program *p, tdi_communicator **local, tdi_communicator **handles,
                             tdi_error *error)
{
    int made = 0, workers = p->group.workers;
    for (handle *h; made < workers && (h = add_handle(p, local[made])); made++)
        handles[made] = &h->base;
    if (made == workers)
        return TD_OK;
    for (int w = workers; w-- > made;) {
        local[w]->release(local[w]);
        p->references--;
    }
    while (made--)
        handles[made]->release(handles[made]);
    return tdi_no_memory(error);
}

td_status tdi_exchange_connect(tdi_exchange *x, const tdi_deal *deal, const tdi_group_spec *group,
                               tdi_communicator **handles, tdi_error *error)
{
    tdi_exchange_program *p = NULL;
    tdi_communicator **local = calloc((size_t)group->workers, sizeof *local);
    if (!local)
        return tdi_no_memory(error);
    td_status status = tdi_local_group_create(group, local, error);
    bool connected = status == TD_OK;
    if (connected)
        status = add_program(x, deal, group, &p, error);
    for (int w = 0; connected && !p && w < group->workers; w++)
        local[w]->release(local[w]);
    if (p)
        status = add_handles(p, local, handles, error);
    free(local);
    return status;
}

/* ---- between steps ---- */

td_status tdi_exchange_gather(tdi_exchange *x, void *slots, size_t size, tdi_error *error)
{
    pthread_mutex_lock(&x->lock);
    x->slots = slots;
    x->slot_bytes = size;
    uint32_t count = ++x->gathers;
    pthread_mutex_unlock(&x->lock);
    tdi_courier_post(x, NULL, 0);
    tdi_courier_wait(x, &x->gather, count, false);
    const tdi_error *why = tdi_exchange_failure(x);
    return why ? tdi_fail(error, why->status, "%s", why->message) : TD_OK;
}

void tdi_exchange_ask_to_stop(tdi_exchange *x)
{
    atomic_store(&x->wishes_stop, true);
}

bool tdi_exchange_stops(tdi_exchange *x, uint32_t step)
{
    if (atomic_load(&x->stop_step) != step)
        return false;
    atomic_store(&x->wishes_stop, false);
    return true;
}

uint64_t tdi_exchange_sent(const tdi_exchange *x)
{
    return atomic_load(&x->sent);
}

double tdi_exchange_waited(const tdi_exchange *x)
{
    return 1e-9 * (double)atomic_load(&x->waited);
}

/* ---- the trace ---- */

static bool make_tracks(tdi_exchange *x, tdi_trace *trace)
{
    char name[48];
    bool good = true;
    for (int t = 0; t < TDI_EXCHANGE_TRACKS; t++) {
        snprintf(name, sizeof name, "exchange, under way %d", t + 1);
        good = (x->tracks[t] = tdi_trace_track(trace, name)) && good;
    }
    x->courier_track = tdi_trace_track(trace, "exchange, courier");
    x->moves_label = tdi_trace_label(trace, "move bytes", "communication", "");
    return good && x->courier_track && x->moves_label;
}

static bool label_program(const tdi_exchange_program *p, tdi_trace *trace)
{
    static const char *const names[] = {[TDI_GATHER] = "gather", [TDI_REDUCE] = "gradients"};
    bool good = true;
    for (int id = 0; id < p->group.collectives->count; id++) {
        tdi_operation *operation = &p->operations[id];
        char about[48];
        if (!moves(p, id) || operation->labelled == tdi_trace_id(trace))
            continue;
        snprintf(about, sizeof about, "collective %d, %lld bytes", id,
                 (long long)bytes_of(collective_of(p, id), p->deal->shards));
        operation->label = tdi_trace_label(trace, names[collective_of(p, id)->kind], "communication", about);
        operation->labelled = tdi_trace_id(trace);
        good = good && operation->label;
    }
    return good;
}

td_status tdi_exchange_trace(tdi_exchange *x, tdi_trace *trace, tdi_error *error)
{
    bool good = true;
    tdi_courier_lock(x);
    x->trace = trace;
    if (trace && x->traced != tdi_trace_id(trace))
        good = make_tracks(x, trace);
    x->traced = trace ? tdi_trace_id(trace) : x->traced;
    for (const tdi_exchange_program *p = x->programs; p && trace; p = p->next)
        good = label_program(p, trace) && good;
    x->trace = good ? trace : NULL;
    tdi_courier_unlock(x);
    return good ? TD_OK : tdi_no_memory(error);
}

/* ---- life ---- */

static bool copy_spec(tdi_exchange *x, const tdi_exchange_spec *spec)
{
    size_t n = (size_t)spec->processes;
    x->processes = spec->processes;
    x->self = spec->self;
    x->gather.track = -1;
    x->gather.left = x->gather.expected = 2 * (int64_t)(n - 1);
    x->peers = calloc(n, sizeof *x->peers);
    if (!x->peers)
        return false;
    for (size_t i = 0; i < n; i++)
        snprintf(x->peers[i].name, sizeof x->peers[i].name, "%s", spec->names[i]);
    return true;
}

td_status tdi_exchange_create(const tdi_exchange_spec *spec, tdi_exchange **exchange, tdi_error *error)
{
    tdi_exchange *x = tdi_buffer_create(sizeof *x); /* events have cache lines of their own */
    if (!x)
        return tdi_no_memory(error);
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_init(&x->driving, NULL);
    x->wake_courier = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->wake_driver = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->sinks = tdi_courier_sinks;
    x->sinks.user = x;
    td_status status = !copy_spec(x, spec) ? tdi_no_memory(error)
                       : x->wake_courier < 0 || x->wake_driver < 0
                           ? tdi_fail(error, TD_IO, "eventfd: %s", strerror(errno))
                           : TD_OK;
    if (status != TD_OK) {
        release(x);
        return status;
    }
    *exchange = x;
    return TD_OK;
}

const tdi_sinks *tdi_exchange_sinks(tdi_exchange *x)
{
    return &x->sinks;
}

td_status tdi_exchange_start(tdi_exchange *x, tdi_fabric *fabric, tdi_wire *const *wires, tdi_error *error)
{
    for (int peer = 0; peer < x->processes; peer++)
        x->peers[peer].wire = wires[peer];
    x->fabric = fabric;
    x->held = true; /* peers may have sent before the wires were joined */
    TDI_TRY(tdi_thread_start(&x->courier, tdi_courier_main, x, error));
    x->started = true;
    return TD_OK;
}

void tdi_exchange_free(tdi_exchange *x)
{
    if (!x)
        return;
    atomic_store(&x->quits, true);
    tdi_courier_wake(x);
    if (x->started)
        pthread_join(x->courier, NULL);
    if (x->fabric)
        x->fabric->close(x->fabric);
    x->fabric = NULL;
    x->ended = true;
    tdi_exchange_break(x, &(tdi_error){TD_STOPPED, "the group of processes has been closed"});
    if (!x->programs)
        release(x);
}
