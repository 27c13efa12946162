/* exchange.c - the courier, and communicators that have it move what their collectives list.
 *
 * The last worker of a process to begin a collective posts it. The courier sends this process's ranges to each peer,
 * and only from then on takes theirs: before, a thread might still be reading what the step before had left in their
 * places. It is done when all have arrived and all of its own have been taken over by the wires, since the update
 * writes sums over what was sent.
 *
 * Whatever breaks, an end of a connection or a sentence from a peer, breaks everything that is pending and all that
 * comes: who waits is woken, latches its outcome, and leaves the step. */
#define _GNU_SOURCE
#include "comm/exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/thread.h"

enum { KIND_RANGE = 1, KIND_SLOT, KIND_BREAK }; /* of frames */
enum { FLAG_STOP = 1 };
enum { NAME_BYTES = 96 };

static const uint32_t wakes_all = 1u << 30; /* more than a counter can be waited for */

typedef struct operation {
    int begun;     /* workers that have begun it in the step under way; under the lock */
    uint32_t step; /* that is being moved, or was moved last; the courier's, as the next two */
    int64_t left;  /* frames that have not arrived, and own ones that have not been taken over */
    bool moving;
    tdi_event done; /* steps */
    tdi_latch latch;
} operation;

typedef struct program {
    tdi_exchange *exchange;
    uint32_t number; /* in the order of connecting, from 1 on */
    const tdi_deal *deal;
    tdi_group_spec group;
    int references;
    operation *operations; /* [collectives] */
    struct program *next;
} program;

typedef struct handle {
    tdi_communicator base;
    tdi_communicator *local; /* for what moves nothing, and for the step's end */
    program *program;
} handle;

/* A program's collective, or with NULL the slots of tdi_exchange_gather. */
typedef struct post {
    program *program;
    int id;
} post;

struct tdi_exchange {
    int processes, self;
    tdi_fabric *fabric; /* NULL: not started */
    tdi_wire **wires;
    tdi_sinks sinks;
    char (*names)[NAME_BYTES];
    pthread_t courier;
    bool started, ended;
    pthread_mutex_t lock;
    int wake; /* an eventfd */
    atomic_bool quits, broken, told;
    tdi_error why; /* written once, before `broken` */
    tdi_vec(post) posts;
    program *programs;
    _Atomic uint32_t connected;
    _Atomic uint64_t sent;
    atomic_bool wishes_stop;
    _Atomic uint32_t stop_step; /* of the program that runs; 0: none */

    char *slots;
    size_t slot_bytes;
    uint32_t gathers; /* under the lock */
    operation gather;
    char heard[sizeof((tdi_error *)0)->message]; /* a peer's sentence */
};

/* ---- breaking ---- */

static void wake_courier(tdi_exchange *x)
{
    const uint64_t one = 1;
    while (write(x->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void wake_waiters(tdi_exchange *x)
{
    for (program *p = x->programs; p; p = p->next)
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
    wake_courier(x);
}

const tdi_error *tdi_exchange_failure(const tdi_exchange *x)
{
    return atomic_load(&x->broken) ? &x->why : NULL;
}

/* ---- what the courier sends ---- */

static int own_shards(const tdi_deal *deal)
{
    return deal->first_shard[deal->self + 1] - deal->first_shard[deal->self];
}

static size_t transfer_bytes(const tdi_collective *collective, const tdi_transfer *transfer)
{
    return (size_t)transfer->size * (collective->kind == TDI_REDUCE ? sizeof(float) : 1);
}

/* Where a shard's range lies in this process. */
static char *place_of(const program *p, const tdi_collective *collective, const tdi_transfer *transfer, int shard)
{
    if (collective->kind == TDI_REDUCE)
        return (char *)(p->group.gradients[shard] + transfer->offset);
    return *p->group.exchange + transfer->offset + (int64_t)shard * transfer->size;
}

static void send_to_all(tdi_exchange *x, const tdi_frame *frame, const void *payload)
{
    for (int peer = 0; peer < x->processes; peer++) {
        if (peer == x->self)
            continue;
        x->wires[peer]->send(x->wires[peer], frame, payload);
        atomic_fetch_add_explicit(&x->sent, frame->length, memory_order_relaxed);
    }
}

static void complete_if_done(operation *operation)
{
    if (operation->left || !operation->moving)
        return;
    operation->moving = false;
    tdi_event_add(&operation->done, 1);
}

static void move_collective(tdi_exchange *x, program *p, int id)
{
    const tdi_collective *collective = &p->group.collectives->at[id];
    operation *operation = &p->operations[id];
    bool stop = atomic_load(&x->wishes_stop);
    operation->step++;
    operation->moving = true;
    operation->left = (int64_t)collective->count *
                      ((int64_t)own_shards(p->deal) * (x->processes - 1) + p->deal->shards - own_shards(p->deal));
    if (stop)
        atomic_store(&x->stop_step, operation->step);
    for (int shard = p->deal->first_shard[x->self]; shard < p->deal->first_shard[x->self + 1]; shard++)
        for (int t = 0; t < collective->count; t++) {
            const tdi_transfer *transfer = &collective->transfers[t];
            tdi_frame frame = {.length = (uint32_t)transfer_bytes(collective, transfer),
                               .kind = KIND_RANGE,
                               .flags = stop ? FLAG_STOP : 0,
                               .id = (uint32_t)id,
                               .generation = p->number,
                               .step = operation->step,
                               .shard = (uint32_t)shard,
                               .offset = (uint64_t)transfer->offset};
            send_to_all(x, &frame, place_of(p, collective, transfer, shard));
        }
    complete_if_done(operation);
}

static void move_slots(tdi_exchange *x)
{
    operation *operation = &x->gather;
    operation->step++;
    operation->moving = true;
    operation->left = 2 * (int64_t)(x->processes - 1);
    send_to_all(
        x,
        &(tdi_frame){
            .length = (uint32_t)x->slot_bytes, .kind = KIND_SLOT, .step = operation->step, .shard = (uint32_t)x->self},
        x->slots + (size_t)x->self * x->slot_bytes);
    complete_if_done(operation);
}

static void tell_why(tdi_exchange *x)
{
    send_to_all(x,
                &(tdi_frame){.length = (uint32_t)strlen(x->why.message),
                             .kind = KIND_BREAK,
                             .flags = (uint16_t)x->why.status,
                             .shard = (uint32_t)x->self},
                x->why.message);
}

/* ---- what it receives ---- */

static program *find_program(tdi_exchange *x, uint32_t number)
{
    pthread_mutex_lock(&x->lock);
    program *p = x->programs;
    while (p && p->number != number)
        p = p->next;
    pthread_mutex_unlock(&x->lock);
    return p;
}

static tdi_sink_answer refuse(const tdi_exchange *x, int peer, const tdi_frame *frame, const char *how,
                              tdi_error *error)
{
    tdi_fail(error, TD_IO,
             "%s sent %u bytes of shard %u for collective %u of step %u, %s: the processes run different "
             "programs",
             x->names[peer], frame->length, frame->shard, frame->id, frame->step, how);
    return TDI_REFUSE;
}

static tdi_sink_answer place_range(tdi_exchange *x, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    program *p = find_program(x, frame->generation);
    if (!p)
        return frame->generation > atomic_load(&x->connected) ? TDI_HOLD
                                                              : refuse(x, peer, frame, "which nobody waits for", error);
    if (frame->id >= (uint32_t)p->group.collectives->count)
        return refuse(x, peer, frame, "which there is not", error);
    const tdi_collective *collective = &p->group.collectives->at[frame->id];
    const operation *operation = &p->operations[frame->id];
    if (frame->step == operation->step + 1)
        return TDI_HOLD;
    if (frame->step != operation->step || !operation->moving)
        return refuse(x, peer, frame, "which nobody waits for", error);
    if (frame->shard < (uint32_t)p->deal->first_shard[peer] || frame->shard >= (uint32_t)p->deal->first_shard[peer + 1])
        return refuse(x, peer, frame, "which is not its shard", error);
    for (int t = 0; t < collective->count; t++) {
        const tdi_transfer *transfer = &collective->transfers[t];
        if ((uint64_t)transfer->offset != frame->offset || transfer_bytes(collective, transfer) != frame->length)
            continue;
        *place = place_of(p, collective, transfer, (int)frame->shard);
        return TDI_TAKE;
    }
    return refuse(x, peer, frame, "which is no range of it", error);
}

static tdi_sink_answer place_slot(tdi_exchange *x, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    if (frame->step == x->gather.step + 1)
        return TDI_HOLD;
    if (frame->step != x->gather.step || !x->gather.moving || frame->length != x->slot_bytes ||
        frame->shard != (uint32_t)peer)
        return refuse(x, peer, frame, "which is no slot", error);
    *place = x->slots + (size_t)peer * x->slot_bytes;
    return TDI_TAKE;
}

static tdi_sink_answer place_frame(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    tdi_exchange *x = user;
    if (frame->kind == KIND_BREAK && frame->length < sizeof x->heard) {
        *place = x->heard;
        return TDI_TAKE;
    }
    if (atomic_load(&x->broken))
        return TDI_DROP;
    if (frame->kind == KIND_RANGE)
        return place_range(x, peer, frame, place, error);
    if (frame->kind == KIND_SLOT)
        return place_slot(x, peer, frame, place, error);
    return refuse(x, peer, frame, "of a kind there is not", error);
}

static operation *operation_of(tdi_exchange *x, const tdi_frame *frame)
{
    if (frame->kind == KIND_SLOT)
        return &x->gather;
    program *p = frame->kind == KIND_RANGE ? find_program(x, frame->generation) : NULL;
    return p ? &p->operations[frame->id] : NULL;
}

static void count_off(tdi_exchange *x, const tdi_frame *frame)
{
    operation *operation = operation_of(x, frame);
    if (!operation || frame->step != operation->step)
        return;
    operation->left--;
    complete_if_done(operation);
}

/* A sentence about one of them, perhaps about who was lost, is passed on as it is. */
static bool names_a_process(const tdi_exchange *x, const char *sentence, size_t length)
{
    for (int i = 0; i < x->processes; i++)
        if (memmem(sentence, length, x->names[i], strlen(x->names[i])))
            return true;
    return false;
}

static void break_arrived(tdi_exchange *x, int peer, const tdi_frame *frame)
{
    tdi_error why = {0};
    bool names_one = names_a_process(x, x->heard, frame->length);
    tdi_fail(&why, frame->flags ? (td_status)frame->flags : TD_IO, "%s%s%.*s", names_one ? "" : x->names[peer],
             names_one ? "" : ": ", (int)frame->length, x->heard);
    atomic_store(&x->told, true); /* all have been told by who began it */
    tdi_exchange_break(x, &why);
}

static void frame_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    (void)place;
    tdi_exchange *x = user;
    if (frame->kind == KIND_BREAK) {
        break_arrived(x, peer, frame);
        return;
    }
    if (frame->flags & FLAG_STOP)
        atomic_store(&x->stop_step, frame->step);
    count_off(x, frame);
}

static void frame_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    (void)peer, (void)payload;
    count_off(user, frame);
}

static void peer_lost(void *user, int peer, const tdi_error *why)
{
    tdi_exchange *x = user;
    tdi_error lost = {0};
    tdi_link_tell_loss(x->names[peer], why, &lost);
    tdi_exchange_break(x, &lost);
}

/* ---- the courier ---- */

static bool take_post(tdi_exchange *x, post *next)
{
    pthread_mutex_lock(&x->lock);
    bool any = x->posts.count > 0;
    if (any) {
        *next = x->posts.at[0];
        memmove(x->posts.at, x->posts.at + 1, (size_t)--x->posts.count * sizeof *x->posts.at);
    }
    pthread_mutex_unlock(&x->lock);
    return any;
}

/* Frames that came too early are asked about again. */
static void resume_all(tdi_exchange *x)
{
    for (int peer = 0; peer < x->processes; peer++)
        if (peer != x->self)
            x->wires[peer]->resume(x->wires[peer]);
}

/* Until the fabric has something to move, or the courier is woken. */
static void sleep_until_woken(tdi_exchange *x)
{
    uint64_t woken;
    struct pollfd fds[] = {{.fd = x->wake, .events = POLLIN}, {.fd = x->fabric->sleep(x->fabric), .events = POLLIN}};
    if (fds[1].fd < 0)
        return;
    poll(fds, 2, -1);
    if (fds[0].revents && read(x->wake, &woken, sizeof woken) == sizeof woken)
        resume_all(x);
}

static bool start_posts(tdi_exchange *x)
{
    bool any = false;
    for (post next; take_post(x, &next); any = true) {
        if (atomic_load(&x->broken))
            continue;
        if (next.program)
            move_collective(x, next.program, next.id);
        else
            move_slots(x);
    }
    return any;
}

static void *courier_main(void *argument)
{
    tdi_exchange *x = argument;
    resume_all(x); /* peers may have sent before the wires were joined */
    while (!atomic_load(&x->quits)) {
        if (start_posts(x))
            resume_all(x);
        if (atomic_load(&x->broken) && !atomic_exchange(&x->told, true))
            tell_why(x);
        if (!x->fabric->pump(x->fabric))
            sleep_until_woken(x);
    }
    return NULL;
}

static bool add_post(tdi_exchange *x, program *p, int id)
{
    return tdi_push(&x->posts, ((post){p, id}));
}

/* ---- communicators ---- */

static bool moves(const program *p, int id)
{
    return p->group.collectives->at[id].kind != TDI_MEET;
}

static void exchange_begin(tdi_communicator *communicator, int id)
{
    handle *h = (handle *)communicator;
    tdi_exchange *x = h->program->exchange;
    if (!moves(h->program, id)) {
        h->local->begin(h->local, id);
        return;
    }
    operation *operation = &h->program->operations[id];
    bool last, posted = true;
    pthread_mutex_lock(&x->lock);
    last = ++operation->begun == h->program->group.workers;
    if (last) {
        operation->begun = 0;
        posted = add_post(x, h->program, id);
    }
    pthread_mutex_unlock(&x->lock);
    if (!posted)
        tdi_exchange_break(x, &(tdi_error){TD_NO_MEMORY, "out of memory"});
    else if (last)
        wake_courier(x);
}

static tdi_outcome exchange_finish(tdi_communicator *communicator, int id, uint32_t step)
{
    handle *h = (handle *)communicator;
    tdi_exchange *x = h->program->exchange;
    if (!moves(h->program, id))
        return h->local->finish(h->local, id, step);
    operation *operation = &h->program->operations[id];
    tdi_event_wait(&operation->done, step, h->program->group.spin);
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

static void unlink_program(program *p)
{
    tdi_exchange *x = p->exchange;
    pthread_mutex_lock(&x->lock);
    program **at = &x->programs;
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

static void release(tdi_exchange *x)
{
    if (x->wake >= 0)
        close(x->wake);
    pthread_mutex_destroy(&x->lock);
    tdi_vec_free(&x->posts);
    free(x->wires);
    free(x->names);
    tdi_buffer_free(x);
}

static void exchange_release(tdi_communicator *communicator)
{
    handle *h = (handle *)communicator;
    program *p = h->program;
    h->local->release(h->local);
    free(h);
    if (--p->references)
        return;
    tdi_exchange *x = p->exchange;
    unlink_program(p);
    tdi_buffer_free(p->operations);
    free(p);
    if (x->ended && !x->programs)
        release(x);
}

static handle *add_handle(program *p, tdi_communicator *local)
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

static program *add_program(tdi_exchange *x, const tdi_deal *deal, const tdi_group_spec *group)
{
    program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (program){.exchange = x, .deal = deal, .group = *group, .references = group->workers};
    p->operations = tdi_buffer_create((size_t)group->collectives->count * sizeof *p->operations + 1);
    if (!p->operations) {
        free(p);
        return NULL;
    }
    pthread_mutex_lock(&x->lock);
    p->number = atomic_fetch_add(&x->connected, 1) + 1;
    p->next = x->programs;
    x->programs = p;
    atomic_store(&x->stop_step, 0);
    if (atomic_load(&x->broken))
        for (int id = 0; id < group->collectives->count; id++)
            tdi_event_add(&p->operations[id].done, wakes_all);
    pthread_mutex_unlock(&x->lock);
    wake_courier(x); /* frames of this program may have come before it */
    return p;
}

static td_status add_handles(program *p, tdi_communicator **local, tdi_communicator **handles, tdi_error *error)
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
    tdi_communicator **local = calloc((size_t)group->workers, sizeof *local);
    if (!local)
        return tdi_no_memory(error);
    td_status status = tdi_local_group_create(group, local, error);
    program *p = status == TD_OK ? add_program(x, deal, group) : NULL;
    if (p)
        status = add_handles(p, local, handles, error);
    else if (status == TD_OK) {
        for (int w = 0; w < group->workers; w++)
            local[w]->release(local[w]);
        status = tdi_no_memory(error);
    }
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
    bool posted = add_post(x, NULL, 0);
    pthread_mutex_unlock(&x->lock);
    if (!posted)
        return tdi_no_memory(error);
    wake_courier(x);
    tdi_event_wait(&x->gather.done, count, false);
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

/* ---- life ---- */

static bool copy_spec(tdi_exchange *x, const tdi_exchange_spec *spec)
{
    size_t n = (size_t)spec->processes;
    x->processes = spec->processes;
    x->self = spec->self;
    x->wires = malloc(n * sizeof *x->wires);
    x->names = calloc(n, sizeof *x->names);
    if (!x->wires || !x->names)
        return false;
    for (size_t i = 0; i < n; i++)
        snprintf(x->names[i], sizeof x->names[i], "%s", spec->names[i]);
    return true;
}

td_status tdi_exchange_create(const tdi_exchange_spec *spec, tdi_exchange **exchange, tdi_error *error)
{
    tdi_exchange *x = tdi_buffer_create(sizeof *x); /* events have cache lines of their own */
    if (!x)
        return tdi_no_memory(error);
    pthread_mutex_init(&x->lock, NULL);
    x->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->sinks = (tdi_sinks){x, place_frame, frame_arrived, frame_sent, peer_lost};
    td_status status = !copy_spec(x, spec) ? tdi_no_memory(error)
                       : x->wake < 0       ? tdi_fail(error, TD_IO, "eventfd: %s", strerror(errno))
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
    memcpy(x->wires, wires, (size_t)x->processes * sizeof *wires);
    x->fabric = fabric;
    TDI_TRY(tdi_thread_start(&x->courier, courier_main, x, error));
    x->started = true;
    return TD_OK;
}

void tdi_exchange_free(tdi_exchange *x)
{
    if (!x)
        return;
    atomic_store(&x->quits, true);
    wake_courier(x);
    if (x->started)
        pthread_join(x->courier, NULL);
    if (x->fabric)
        x->fabric->close(x->fabric);
    x->ended = true;
    tdi_exchange_break(x, &(tdi_error){TD_STOPPED, "the group of processes has been closed"});
    if (!x->programs)
        release(x);
}
