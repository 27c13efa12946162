/* courier.c - moves what collectives list, by whoever has the time: the courier, a thread of its own, while the others
 * compute; or one that waits for a collective, since it would be woken later than it can look itself.
 *
 * The courier waits with the fabric for whatever comes. While threads wait and help, step after step, it stays away
 * from it: a frame would wake both. It looks again some milliseconds after they have stopped.
 *
 * Frames are named by program, step, collective, and what they are of: GATHER's by the sender's first shard, a REDUCE's
 * pieces by their number in the order of the sum. A frame that comes before its collective has begun waits on the wire,
 * so that nothing is overwritten that is still read; pieces of a REDUCE need not, as nobody reads their places any more
 * when a peer is a step ahead. Additions wait until then all the same: they are made by threads that flush denormals,
 * and in the gather between steps others drive. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "comm/exchange_struct.h"

enum { KIND_RANGE = 1, KIND_SLOT, KIND_BREAK, KIND_PIECE, KIND_SUM }; /* of frames */
enum { FLAG_STOP = 1 };
enum {
    LITTLE_BYTES = 64 * 1024, /* encrypted in some 50 us: as long as it takes to wake a thread and to go back */
    POLLS = 200,              /* by who waits and may spin, before it sleeps */
    LONGEST_SLEEP_MS = 100,   /* UCX's sockets, by which a peer wakes this process, may be cut off by a sandbox */
    AWAY_MS = 5               /* the courier stays away from the fabric so long after another has driven */
};
/* Seconds. Who has looked for so long and found nothing shares its core with another process, and has waited its turn.
 * Nobody helps for a while then: the courier, which sleeps much and works little, is let in before others. */
static const double slice = 1e-3, crowded = 1.0;
static const double farewell = 0.2; /* seconds to tell peers why a broken exchange ends */

/* ---- waking ---- */

static void write_to(int eventfd)
{
    const uint64_t one = 1;
    while (write(eventfd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void read_from(int eventfd)
{
    uint64_t woken;
    while (read(eventfd, &woken, sizeof woken) < 0 && errno == EINTR)
        continue;
}

static void call_courier(tdi_exchange *x)
{
    atomic_store(&x->courier_called, true);
    if (atomic_exchange(&x->courier_sleeps, false))
        write_to(x->wake_courier);
}

static void call_driver(tdi_exchange *x)
{
    if (atomic_exchange(&x->driver_sleeps, false))
        write_to(x->wake_driver);
}

void tdi_courier_wake(tdi_exchange *x)
{
    call_driver(x);
    call_courier(x);
}

/* ---- operations ---- */

static size_t range_bytes(const tdi_collective *collective, int shards)
{
    return (size_t)collective->transfers[0].size * (size_t)shards;
}

/* Where a process's shards have their values of a GATHER, one behind the other. */
static char *range_of(const tdi_exchange_program *p, const tdi_collective *collective, int process)
{
    const tdi_transfer *transfer = &collective->transfers[0];
    return *p->group.exchange + transfer->offset + transfer->size * p->deal->first_shard[process];
}

static void trace_begin(tdi_exchange *x, tdi_operation *operation)
{
    operation->track = -1;
    if (!x->trace)
        return;
    operation->began = tdi_seconds();
    for (int t = TDI_EXCHANGE_TRACKS; t-- > 0;)
        operation->track = x->track_used[t] ? operation->track : t;
    if (operation->track >= 0)
        x->track_used[operation->track] = true;
}

static void trace_end(tdi_exchange *x, const tdi_operation *operation)
{
    if (operation->track < 0)
        return;
    x->track_used[operation->track] = false;
    if (x->trace)
        tdi_track_note(x->tracks[operation->track], operation->label, operation->began, tdi_seconds(),
                       (int64_t)operation->step - 1);
}

static void begin_operation(tdi_exchange *x, tdi_operation *operation)
{
    operation->step++;
    operation->moving = true;
    x->moving++;
    x->heavy += operation->heavy;
    trace_begin(x, operation);
}

static void end_operation(tdi_exchange *x, tdi_operation *operation)
{
    operation->moving = false;
    operation->left = operation->expected;
    x->moving--;
    x->heavy -= operation->heavy;
    if (operation->reduction)
        tdi_reduction_clear(operation->reduction);
    trace_end(x, operation);
    tdi_event_add(&operation->done, 1);
}

void tdi_courier_resume(tdi_exchange *x)
{
    if (!x->held || !x->fabric)
        return;
    x->held = false;
    for (int peer = 0; peer < x->processes; peer++)
        if (peer != x->self)
            x->peers[peer].wire->resume(x->peers[peer].wire);
}

static void end_if_done(tdi_exchange *x, tdi_operation *operation)
{
    if (operation->left || !operation->moving)
        return;
    end_operation(x, operation);
    tdi_courier_resume(x);
}

/* ---- what is sent ---- */

static void send_to(tdi_exchange *x, int peer, const tdi_frame *frame, const void *payload)
{
    if (x->peers[peer].lost)
        return;
    x->peers[peer].borrowed++;
    x->peers[peer].wire->send(x->peers[peer].wire, frame, payload);
    atomic_fetch_add_explicit(&x->sent, frame->length, memory_order_relaxed);
}

static void send_to_all(tdi_exchange *x, const tdi_frame *frame, const void *payload)
{
    for (int peer = 0; peer < x->processes; peer++)
        if (peer != x->self)
            send_to(x, peer, frame, payload);
}

static tdi_frame frame_of(const tdi_exchange_program *p, const tdi_operation *operation, int kind)
{
    bool stops = atomic_load(&p->exchange->stop_step) == operation->step;
    return (tdi_frame){.kind = (uint16_t)kind,
                       .flags = stops ? FLAG_STOP : 0,
                       .id = (uint32_t)(operation - p->operations),
                       .generation = p->number,
                       .step = operation->step};
}

static tdi_frame slice_frame(const tdi_exchange_program *p, const tdi_operation *operation,
                             const tdi_reduction_slice *slice, int kind)
{
    tdi_frame frame = frame_of(p, operation, kind);
    frame.length = (uint32_t)(slice->size * (int64_t)sizeof(float));
    frame.offset = (uint64_t)slice->offset;
    return frame;
}

/* Adds up what is there; the sum goes to all that do not add it up themselves. */
static void add_up(tdi_exchange *x, const tdi_exchange_program *p, tdi_operation *operation, tdi_reduction_slice *slice)
{
    float *sum = *p->group.sums + slice->offset;
    if (!tdi_slice_add(operation->reduction, slice, sum) || slice->owner != x->self)
        return;
    tdi_frame frame = slice_frame(p, operation, slice, KIND_SUM);
    frame.shard = (uint32_t)x->self;
    send_to_all(x, &frame, sum);
}

static void send_pieces(tdi_exchange *x, const tdi_exchange_program *p, const tdi_operation *operation,
                        const tdi_reduction_slice *slice)
{
    const tdi_reduction *r = operation->reduction;
    tdi_frame frame = slice_frame(p, operation, slice, KIND_PIECE);
    for (int i = r->first_own; i < r->first_own + r->own; i++) {
        const float *values = p->group.gradients[r->order->piece[i].subtree.first] + slice->offset;
        frame.shard = (uint32_t)i;
        if (slice->owner == TDI_EVERY_PROCESS)
            send_to_all(x, &frame, values);
        else if (slice->owner != x->self)
            send_to(x, slice->owner, &frame, values);
    }
}

static void put_own_pieces(const tdi_exchange_program *p, const tdi_reduction *r, tdi_reduction_slice *slice)
{
    for (int i = r->first_own; i < r->first_own + r->own; i++)
        tdi_slice_put(slice, i, p->group.gradients[r->order->piece[i].subtree.first] + slice->offset);
}

static void reduce(tdi_exchange *x, const tdi_exchange_program *p, tdi_operation *operation)
{
    tdi_reduction *r = operation->reduction;
    for (int s = 0; s < r->count; s++)
        send_pieces(x, p, operation, &r->slices[s]);
    for (int s = 0; s < r->count; s++) {
        if (!tdi_adds_up(r, &r->slices[s]))
            continue;
        put_own_pieces(p, r, &r->slices[s]);
        add_up(x, p, operation, &r->slices[s]);
    }
}

static void gather(tdi_exchange *x, const tdi_exchange_program *p, const tdi_operation *operation,
                   const tdi_collective *collective)
{
    tdi_frame frame = frame_of(p, operation, KIND_RANGE);
    frame.length = (uint32_t)range_bytes(collective, tdi_deal_shards(p->deal, x->self));
    frame.shard = (uint32_t)p->deal->first_shard[x->self];
    if (tdi_deal_shards(p->deal, x->self))
        send_to_all(x, &frame, range_of(p, collective, x->self));
}

static void move_collective(tdi_exchange *x, const tdi_exchange_program *p, int id)
{
    tdi_operation *operation = &p->operations[id];
    begin_operation(x, operation);
    if (atomic_load(&x->wishes_stop))
        atomic_store(&x->stop_step, operation->step);
    if (operation->reduction)
        reduce(x, p, operation);
    else
        gather(x, p, operation, &p->group.collectives->at[id]);
    end_if_done(x, operation);
}

static void move_slots(tdi_exchange *x)
{
    begin_operation(x, &x->gather);
    tdi_frame frame = {
        .length = (uint32_t)x->slot_bytes, .kind = KIND_SLOT, .step = x->gather.step, .shard = (uint32_t)x->self};
    send_to_all(x, &frame, x->slots + (size_t)x->self * x->slot_bytes);
    end_if_done(x, &x->gather);
}

static void tell_why(tdi_exchange *x)
{
    tdi_frame frame = {.length = (uint32_t)strlen(x->why.message),
                       .kind = KIND_BREAK,
                       .flags = (uint16_t)x->why.status,
                       .shard = (uint32_t)x->self};
    send_to_all(x, &frame, x->why.message);
}

/* ---- what is received ---- */

static tdi_exchange_program *find_program(tdi_exchange *x, uint32_t number)
{
    pthread_mutex_lock(&x->lock);
    tdi_exchange_program *p = x->programs;
    while (p && p->number != number)
        p = p->next;
    pthread_mutex_unlock(&x->lock);
    return p;
}

static tdi_sink_answer refuse(const tdi_exchange *x, int peer, const tdi_frame *frame, const char *how,
                              tdi_error *error)
{
    tdi_fail(error, TD_IO,
             "%s sent %u bytes of number %u for collective %u of step %u, %s: the processes run different programs",
             x->peers[peer].name, frame->length, frame->shard, frame->id, frame->step, how);
    return TDI_REFUSE;
}

static tdi_sink_answer hold(tdi_exchange *x)
{
    x->held = true;
    return TDI_HOLD;
}

static tdi_sink_answer place_range(tdi_exchange *x, const tdi_exchange_program *p, int peer, const tdi_frame *frame,
                                   void **place, tdi_error *error)
{
    const tdi_collective *collective = &p->group.collectives->at[frame->id];
    if (collective->kind != TDI_GATHER || frame->shard != (uint32_t)p->deal->first_shard[peer] ||
        frame->length != range_bytes(collective, tdi_deal_shards(p->deal, peer)))
        return refuse(x, peer, frame, "which is not its range", error);
    *place = range_of(p, collective, peer);
    return TDI_TAKE;
}

static tdi_reduction_slice *slice_of(const tdi_operation *operation, const tdi_frame *frame)
{
    bool floats = operation->reduction && frame->length % sizeof(float) == 0;
    return floats ? tdi_reduction_find(operation->reduction, frame->offset, frame->length / sizeof(float)) : NULL;
}

static tdi_sink_answer place_piece(tdi_exchange *x, const tdi_exchange_program *p, int peer, const tdi_frame *frame,
                                   void **place, tdi_error *error)
{
    const tdi_operation *operation = &p->operations[frame->id];
    const tdi_reduction_slice *slice = slice_of(operation, frame);
    int piece = (int)frame->shard;
    if (!slice || !tdi_adds_up(operation->reduction, slice) || frame->shard >= (uint32_t)p->order->pieces ||
        p->order->piece[piece].process != peer || slice->values[piece])
        return refuse(x, peer, frame, "which is no piece of it", error);
    *place = tdi_slice_place(operation->reduction, slice, piece);
    return TDI_TAKE;
}

static tdi_sink_answer place_sum(tdi_exchange *x, const tdi_exchange_program *p, int peer, const tdi_frame *frame,
                                 void **place, tdi_error *error)
{
    tdi_reduction_slice *slice = slice_of(&p->operations[frame->id], frame);
    if (!slice || slice->owner != peer || slice->has_sum)
        return refuse(x, peer, frame, "which is no sum of it", error);
    slice->has_sum = true;
    *place = *p->group.sums + slice->offset;
    return TDI_TAKE;
}

static tdi_sink_answer place_of_program(tdi_exchange *x, int peer, const tdi_frame *frame, void **place,
                                        tdi_error *error)
{
    const tdi_exchange_program *p = find_program(x, frame->generation);
    if (!p)
        return frame->generation > atomic_load(&x->connected) ? hold(x)
                                                              : refuse(x, peer, frame, "which nobody waits for", error);
    if (frame->id >= (uint32_t)p->group.collectives->count)
        return refuse(x, peer, frame, "which there is not", error);
    const tdi_operation *operation = &p->operations[frame->id];
    bool early = frame->step == operation->step + 1;
    if (early && (operation->moving || frame->kind != KIND_PIECE))
        return hold(x);
    if (!early && (frame->step != operation->step || !operation->moving))
        return refuse(x, peer, frame, "which nobody waits for", error);
    return (frame->kind == KIND_RANGE   ? place_range
            : frame->kind == KIND_PIECE ? place_piece
                                        : place_sum)(x, p, peer, frame, place, error);
}

static tdi_sink_answer place_slot(tdi_exchange *x, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    if (frame->step == x->gather.step + 1)
        return hold(x);
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
    switch (frame->kind) {
    case KIND_RANGE:
    case KIND_PIECE:
    case KIND_SUM:
        return place_of_program(x, peer, frame, place, error);
    case KIND_SLOT:
        return place_slot(x, peer, frame, place, error);
    default:
        return refuse(x, peer, frame, "of a kind there is not", error);
    }
}

/* A sentence about one of them, perhaps about who was lost, is passed on as it is. */
static bool names_a_process(const tdi_exchange *x, const char *sentence, size_t length)
{
    for (int i = 0; i < x->processes; i++)
        if (memmem(sentence, length, x->peers[i].name, strlen(x->peers[i].name)))
            return true;
    return false;
}

static void hear_break(tdi_exchange *x, int peer, const tdi_frame *frame)
{
    bool names_one = names_a_process(x, x->heard, frame->length);
    tdi_error why;
    tdi_error_init(&why);
    tdi_fail(&why, frame->flags ? (td_status)frame->flags : TD_IO, "%s%s%.*s", names_one ? "" : x->peers[peer].name,
             names_one ? "" : ": ", (int)frame->length, x->heard);
    atomic_store(&x->told, true); /* all have been told by who began it */
    tdi_exchange_break(x, &why);
}

static void count_off(tdi_exchange *x, tdi_operation *operation)
{
    operation->left--;
    end_if_done(x, operation);
}

static void take_piece(tdi_exchange *x, const tdi_exchange_program *p, const tdi_frame *frame, const float *values)
{
    tdi_operation *operation = &p->operations[frame->id];
    tdi_reduction_slice *slice = slice_of(operation, frame);
    tdi_slice_put(slice, (int)frame->shard, values);
    if (operation->moving)
        add_up(x, p, operation, slice);
}

static void frame_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    tdi_exchange *x = user;
    if (frame->kind == KIND_BREAK) {
        hear_break(x, peer, frame);
        return;
    }
    const tdi_exchange_program *p = frame->kind == KIND_SLOT ? NULL : find_program(x, frame->generation);
    if (atomic_load(&x->broken) || (!p && frame->kind != KIND_SLOT))
        return;
    if (frame->flags & FLAG_STOP)
        atomic_store(&x->stop_step, frame->step);
    if (frame->kind == KIND_PIECE)
        take_piece(x, p, frame, place);
    count_off(x, p ? &p->operations[frame->id] : &x->gather);
}

static void frame_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    (void)payload;
    tdi_exchange *x = user;
    x->peers[peer].borrowed--;
    if (frame->kind == KIND_BREAK || atomic_load(&x->broken))
        return;
    const tdi_exchange_program *p = frame->kind == KIND_SLOT ? NULL : find_program(x, frame->generation);
    if (p || frame->kind == KIND_SLOT)
        count_off(x, p ? &p->operations[frame->id] : &x->gather);
}

static void peer_lost(void *user, int peer, const tdi_error *why)
{
    tdi_exchange *x = user;
    x->peers[peer].borrowed = 0;
    x->peers[peer].lost = true;
    tdi_error lost = {0};
    tdi_link_tell_loss(x->peers[peer].name, why, &lost);
    tdi_exchange_break(x, &lost);
}

const tdi_sinks tdi_courier_sinks = {NULL, place_frame, frame_arrived, frame_sent, peer_lost};

/* ---- driving ---- */

static bool take_post(tdi_exchange *x, tdi_post *next)
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

static bool has_posts(tdi_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool any = x->posts.count > 0;
    pthread_mutex_unlock(&x->lock);
    return any;
}

static bool start_posts(tdi_exchange *x)
{
    bool any = false;
    for (tdi_post next; take_post(x, &next); any = true) {
        if (atomic_load(&x->broken))
            continue;
        if (next.program)
            move_collective(x, next.program, next.id);
        else
            move_slots(x);
    }
    if (any)
        tdi_courier_resume(x);
    return any;
}

/* One round; false: there is nothing to do but to wait. */
static bool drive_once(tdi_exchange *x)
{
    bool any = start_posts(x);
    if (atomic_load(&x->broken) && !atomic_exchange(&x->told, true))
        tell_why(x);
    return x->fabric->pump(x->fabric) || any;
}

static bool is_wanted(tdi_exchange *x)
{
    return atomic_load(&x->visitors) > 0 || atomic_load(&x->quits);
}

/* Waits until the fabric has something to move, or somebody calls. */
static void sleep_driving(tdi_exchange *x)
{
    struct pollfd fds[] = {{.fd = x->wake_driver, .events = POLLIN},
                           {.fd = x->fabric->sleep(x->fabric), .events = POLLIN}};
    atomic_store(&x->driver_sleeps, true);
    if (fds[1].fd >= 0 && !has_posts(x) && !atomic_load(&x->broken) && !is_wanted(x))
        poll(fds, 2, LONGEST_SLEEP_MS);
    atomic_store(&x->driver_sleeps, false);
    if (fds[0].revents)
        read_from(x->wake_driver);
}

static bool is_over(const tdi_exchange *x, tdi_operation *operation, uint32_t step)
{
    return (int32_t)(atomic_load(&operation->done.value) - step) >= 0 || atomic_load(&x->broken);
}

static bool is_crowded(const tdi_exchange *x)
{
    return tdi_seconds() < atomic_load_explicit(&x->crowded_until, memory_order_relaxed);
}

/* Looks once; returns how often in a row it has found nothing. */
static int look(tdi_exchange *x, int idle)
{
    double began = tdi_seconds();
    if (drive_once(x))
        return 0;
    double now = tdi_seconds();
    if (now - began > slice)
        atomic_store_explicit(&x->crowded_until, now + crowded, memory_order_relaxed);
    return idle + 1;
}

static void drive_until(tdi_exchange *x, tdi_operation *operation, uint32_t step, bool spin)
{
    int idle = 0;
    atomic_store_explicit(&x->helped, true, memory_order_relaxed);
    while (!is_over(x, operation, step) && !is_wanted(x) && x->fabric && !is_crowded(x)) {
        idle = look(x, idle);
        if (idle > (spin ? POLLS : 0))
            sleep_driving(x);
    }
}

/* Gives the fabric back; what is left to do is the courier's. */
static void stop_driving(tdi_exchange *x)
{
    bool awaited = x->moving > 0 && (atomic_load(&x->waiting) > 0 || is_crowded(x));
    bool busy = x->fabric && (awaited || x->heavy > 0 || x->fabric->sleep(x->fabric) < 0);
    pthread_mutex_unlock(&x->driving);
    if (busy || has_posts(x) || (atomic_load(&x->broken) && !atomic_load(&x->told)))
        call_courier(x);
}

void tdi_courier_wait(tdi_exchange *x, tdi_operation *operation, uint32_t step, bool spin)
{
    while (!is_over(x, operation, step)) {
        atomic_fetch_add(&x->waiting, 1); /* before the lock is asked for: who has it then, sees to this operation */
        bool drives = !is_wanted(x) && !is_crowded(x) && pthread_mutex_trylock(&x->driving) == 0;
        if (!drives)
            tdi_event_wait(&operation->done, step, spin);
        atomic_fetch_sub(&x->waiting, 1);
        if (!drives)
            continue;
        drive_until(x, operation, step, spin);
        stop_driving(x);
    }
}

bool tdi_courier_is_little(int64_t bytes)
{
    return bytes <= LITTLE_BYTES;
}

static bool is_little(const tdi_exchange *x, const tdi_exchange_program *p, int id)
{
    return p ? !p->operations[id].heavy : tdi_courier_is_little((int64_t)x->slot_bytes);
}

void tdi_courier_post(tdi_exchange *x, tdi_exchange_program *p, int id)
{
    pthread_mutex_lock(&x->lock);
    bool posted = tdi_push(&x->posts, ((tdi_post){p, id}));
    bool little = is_little(x, p, id);
    pthread_mutex_unlock(&x->lock);
    if (!posted)
        tdi_exchange_break(x, &(tdi_error){TD_NO_MEMORY, "out of memory"});
    else if (little && !is_wanted(x) && pthread_mutex_trylock(&x->driving) == 0) {
        if (x->fabric)
            drive_once(x);
        stop_driving(x);
    } else
        tdi_courier_wake(x);
}

/* ---- the courier ---- */

enum { NO_FABRIC = -2, NOT_MINE = -1 };

/* Until it is called, or the fabric has something to move. `descriptor`: the fabric's, or one of the above. */
static void sleep_as_courier(tdi_exchange *x, int descriptor)
{
    bool helped = atomic_exchange(&x->helped, false) && atomic_load(&x->waiting) == 0;
    bool away = descriptor == NOT_MINE || (descriptor >= 0 && helped);
    struct pollfd fds[] = {{.fd = x->wake_courier, .events = POLLIN}, {.fd = descriptor, .events = POLLIN}};
    atomic_store(&x->courier_sleeps, true);
    if (!atomic_load(&x->courier_called))
        poll(fds, away ? 1 : 2, away ? AWAY_MS : LONGEST_SLEEP_MS);
    atomic_store(&x->courier_sleeps, false);
    if (fds[0].revents)
        read_from(x->wake_courier);
}

/* Moves what there is, and returns what to sleep with. */
static int drive_as_courier(tdi_exchange *x)
{
    int descriptor = NOT_MINE;
    bool moved = false;
    double began = x->trace ? tdi_seconds() : 0;
    while (x->fabric && descriptor < 0 && !is_wanted(x)) {
        while (drive_once(x) && !is_wanted(x))
            moved = true;
        descriptor = x->fabric->sleep(x->fabric);
    }
    if (moved && x->trace)
        tdi_track_note(x->courier_track, x->moves_label, began, tdi_seconds(), 0);
    return x->fabric ? descriptor : NO_FABRIC;
}

void *tdi_courier_main(void *argument)
{
    tdi_exchange *x = argument;
    tdi_courier_lock(x);
    tdi_courier_resume(x);
    tdi_courier_unlock(x);
    while (!atomic_load(&x->quits)) {
        int descriptor = NOT_MINE;
        atomic_store(&x->courier_called, false);
        if (!is_wanted(x) && pthread_mutex_trylock(&x->driving) == 0) {
            descriptor = drive_as_courier(x);
            pthread_mutex_unlock(&x->driving);
        }
        if (!atomic_load(&x->quits))
            sleep_as_courier(x, descriptor);
    }
    return NULL;
}

/* ---- the fabric, taken by others ---- */

void tdi_courier_lock(tdi_exchange *x)
{
    atomic_fetch_add(&x->visitors, 1);
    call_driver(x);
    pthread_mutex_lock(&x->driving);
    atomic_fetch_sub(&x->visitors, 1);
}

void tdi_courier_unlock(tdi_exchange *x)
{
    stop_driving(x);
}

static bool are_borrowed(const tdi_exchange *x)
{
    for (int peer = 0; peer < x->processes; peer++)
        if (x->peers[peer].borrowed > 0)
            return true;
    return false;
}

void tdi_courier_give_up(tdi_exchange *x)
{
    if (!x->fabric)
        return;
    double ends = tdi_seconds() + farewell;
    atomic_store(&x->told, true);
    tell_why(x);
    while (are_borrowed(x) && tdi_seconds() < ends)
        if (!x->fabric->pump(x->fabric)) {
            struct pollfd fd = {.fd = x->fabric->sleep(x->fabric), .events = POLLIN};
            poll(&fd, 1, fd.fd < 0 ? 0 : 1);
        }
    x->fabric->close(x->fabric);
    x->fabric = NULL;
}
