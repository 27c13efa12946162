/* batch_prefetch.c - a ring of batches between threads that make rows and the devices that read them in place.
 *
 * Rows that are not in memory have to be read, decoded or augmented, which takes longer than a step may wait. So
 * threads of their own make the batches of the next steps, and the devices' threads wait (`await`) only for what is not
 * ready.
 *
 * A batch is made in pieces, in the order of steps, so that all threads can work at the one that is waited for. The
 * reader wakes one thread when it frees a batch, and all of them when it finds a batch not ready: as many are awake as
 * the input needs. A batch's content depends on its number alone, never on the thread that made it.
 *
 * The ring is limited in bytes, so that batches are still in the processor's cache when they are read. Steps are read
 * in order, by one reader. */
#include "train/batch_prefetch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/trace.h"
#include "data/source.h"

/* More batches in the ring even out their costs, but they should stay in the processor's cache until they are read. */
enum { LEAST_DEPTH = 3, MOST_DEPTH = 16, RING_BYTES = 16 << 20 };

typedef struct batch {
    char *slots[TDI_MAX_FED]; /* [rows, ...] of each input and target, packed */
    int64_t rows;             /* fewer than were begun where there are no more */
    int pieces_left;
    int failed_piece; /* the first that failed, if error.status */
    tdi_error error;
} batch;

struct tdi_prefetch {
    tdi_prefetch_spec spec;
    int slots;
    int64_t row_bytes[TDI_MAX_FED];
    batch *ring; /* [depth]: step s is in ring[s % depth] */
    int depth, pieces;

    pthread_mutex_t lock;
    pthread_cond_t room, made;  /* for the threads; for the reader */
    int64_t next_step;          /* of the next piece to be made */
    int next_piece;             /* below `pieces` */
    int64_t end;                /* no step from here on is begun: all are, or one failed */
    _Atomic int64_t read_from;  /* steps before it are not read any more */
    _Atomic int64_t made_until; /* steps before it are made */
    atomic_int ending;

    pthread_t *threads;
    int n_threads;
    int running;            /* threads that have begun */
    const tdi_label *label; /* of rows that are made; NULL: there is no trace */
};

static batch *batch_of(const tdi_prefetch *prefetch, int64_t step)
{
    return &prefetch->ring[step % prefetch->depth];
}

static bool is_open(const tdi_prefetch *prefetch)
{
    return prefetch->spec.samples == TDI_SAMPLES_UNKNOWN;
}

static int64_t rows_of(const tdi_prefetch *prefetch, int64_t step)
{
    if (is_open(prefetch))
        return prefetch->spec.batch;
    int64_t left = prefetch->spec.samples - step * prefetch->spec.batch;
    return left < prefetch->spec.batch ? left : prefetch->spec.batch;
}

/* ---- making ---- */

static td_status make_rows(const tdi_prefetch *prefetch, int64_t step, int64_t first, int64_t count, tdi_error *error)
{
    const tdi_feed *from = &prefetch->spec.from;
    const batch *into = batch_of(prefetch, step);
    for (int slot = 0; slot < prefetch->slots; slot++)
        if (prefetch->row_bytes[slot])
            TDI_TRY(from->rows(from->context, step, slot, first, count,
                               into->slots[slot] + first * prefetch->row_bytes[slot],
                               tdi_input_type(prefetch->spec.model, slot), error));
    return TD_OK;
}

/* Of a shard; behind the last one, of all rows. */
static int64_t first_row(const tdi_prefetch *prefetch, int64_t step, int shard)
{
    return tdi_shard_first_row(rows_of(prefetch, step), shard, prefetch->spec.shards);
}

/* *made becomes the first row that has not been made. */
static td_status make_piece(const tdi_prefetch *prefetch, int64_t step, int piece, int64_t *made, tdi_error *error)
{
    int64_t begin = first_row(prefetch, step, prefetch->spec.first_shard);
    int64_t rows = first_row(prefetch, step, prefetch->spec.end_shard) - begin;
    int64_t first = begin + rows * piece / prefetch->pieces, end = begin + rows * (piece + 1) / prefetch->pieces;
    int64_t each = prefetch->spec.one_by_one ? 1 : end - first;
    for (; first < end; first += each) {
        *made = first;
        TDI_TRY(tdi_check_stop(&prefetch->ending, error));
        TDI_TRY(tdi_check_stop(prefetch->spec.stop, error));
        TDI_TRY(make_rows(prefetch, step, first, each, error));
    }
    return TD_OK;
}

static bool is_work(const tdi_prefetch *prefetch)
{
    return prefetch->next_step < prefetch->end &&
           prefetch->next_step < atomic_load(&prefetch->read_from) + prefetch->depth;
}

static void take_piece(tdi_prefetch *prefetch, int64_t *step, int *piece)
{
    *step = prefetch->next_step;
    *piece = prefetch->next_piece++;
    if (*piece == 0) {
        batch *begun = batch_of(prefetch, *step);
        begun->rows = rows_of(prefetch, *step);
        begun->pieces_left = prefetch->pieces;
        begun->error.status = TD_OK;
    }
    if (prefetch->next_piece == prefetch->pieces) {
        prefetch->next_piece = 0;
        prefetch->next_step++;
    }
}

/* Steps behind a failed one are never read. Of several failures that of the first piece is kept. */
static void note_failure(tdi_prefetch *prefetch, int64_t step, int piece, const tdi_error *error)
{
    batch *of = batch_of(prefetch, step);
    if (of->error.status != TD_OK && of->failed_piece < piece)
        return;
    of->error = *error;
    of->failed_piece = piece;
    if (prefetch->end > step + 1)
        prefetch->end = step + 1;
}

/* The step at which the rows end is the last one, and may have none. */
static void note_end(tdi_prefetch *prefetch, int64_t step, int64_t made)
{
    batch *of = batch_of(prefetch, step);
    of->rows = made < of->rows ? made : of->rows;
    if (prefetch->end > step + 1)
        prefetch->end = step + 1;
}

static bool was_stopped(const tdi_prefetch *prefetch)
{
    return tdi_check_stop(&prefetch->ending, NULL) != TD_OK || tdi_check_stop(prefetch->spec.stop, NULL) != TD_OK;
}

static void note_made(tdi_prefetch *prefetch)
{
    int64_t until = atomic_load(&prefetch->made_until);
    while (until < prefetch->next_step && batch_of(prefetch, until)->pieces_left == 0)
        until++;
    if (until == atomic_load(&prefetch->made_until))
        return;
    atomic_store(&prefetch->made_until, until);
    pthread_cond_broadcast(&prefetch->made);
}

/* Called with the lock held; releases it while rows are made. */
static void make_one(tdi_prefetch *prefetch, tdi_track *track)
{
    tdi_error error = {0};
    int64_t step, made = 0;
    int piece;
    take_piece(prefetch, &step, &piece);
    pthread_mutex_unlock(&prefetch->lock);
    double began = track ? tdi_seconds() : 0;
    td_status status = make_piece(prefetch, step, piece, &made, &error);
    if (track)
        tdi_track_note(track, prefetch->label, began, tdi_seconds(), step);
    pthread_mutex_lock(&prefetch->lock);
    if (status == TD_STOPPED && is_open(prefetch) && !was_stopped(prefetch))
        note_end(prefetch, step, made);
    else if (status != TD_OK)
        note_failure(prefetch, step, piece, &error);
    if (--batch_of(prefetch, step)->pieces_left == 0)
        note_made(prefetch);
}

static tdi_track *track_of(const tdi_prefetch *prefetch, int thread)
{
    char name[32];
    snprintf(name, sizeof name, "input thread %d", thread);
    return prefetch->label ? tdi_trace_track(prefetch->spec.model->context->trace, name) : NULL;
}

static void *make_batches(void *argument)
{
    tdi_prefetch *prefetch = argument;
    pthread_mutex_lock(&prefetch->lock);
    tdi_track *track = track_of(prefetch, prefetch->running++);
    while (!atomic_load(&prefetch->ending))
        if (is_work(prefetch))
            make_one(prefetch, track);
        else
            pthread_cond_wait(&prefetch->room, &prefetch->lock);
    pthread_mutex_unlock(&prefetch->lock);
    return NULL;
}

/* ---- reading ---- */

static void let_go_before(tdi_prefetch *prefetch, int64_t step)
{
    if (step <= atomic_load(&prefetch->read_from))
        return;
    pthread_mutex_lock(&prefetch->lock);
    if (step > atomic_load(&prefetch->read_from)) {
        atomic_store(&prefetch->read_from, step);
        pthread_cond_signal(&prefetch->room);
    }
    pthread_mutex_unlock(&prefetch->lock);
}

/* Steps behind a failed one are not made; the reader that waits for them gets its failure. */
static td_status wait_for(tdi_prefetch *prefetch, int64_t step, tdi_error *error)
{
    pthread_mutex_lock(&prefetch->lock);
    if (atomic_load(&prefetch->made_until) <= step)
        pthread_cond_broadcast(&prefetch->room);
    while (atomic_load(&prefetch->made_until) <= step && atomic_load(&prefetch->made_until) < prefetch->end)
        pthread_cond_wait(&prefetch->made, &prefetch->lock);
    const batch *last = batch_of(prefetch, step < prefetch->end ? step : prefetch->end - 1);
    td_status status = last->error.status;
    if (status != TD_OK)
        tdi_fail(error, status, "%s", last->error.message);
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

td_status tdi_prefetch_look(tdi_prefetch *prefetch, int64_t step, int64_t *steps, int64_t *samples, tdi_error *error)
{
    *steps = *samples = 0;
    let_go_before(prefetch, step);
    TDI_TRY(wait_for(prefetch, step, error));
    pthread_mutex_lock(&prefetch->lock);
    for (; step < atomic_load(&prefetch->made_until); step++) {
        const batch *of = batch_of(prefetch, step);
        if (of->error.status != TD_OK || !of->rows)
            break;
        *steps += 1;
        *samples += of->rows;
    }
    pthread_mutex_unlock(&prefetch->lock);
    return TD_OK;
}

static td_status prefetch_await(void *context, int64_t step, tdi_error *error)
{
    tdi_prefetch *prefetch = context;
    let_go_before(prefetch, step - 1);
    if (step < atomic_load(&prefetch->made_until) && batch_of(prefetch, step)->error.status == TD_OK)
        return TD_OK;
    return wait_for(prefetch, step, error);
}

static td_status prefetch_rows(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to,
                               td_dtype as, tdi_error *error)
{
    const tdi_prefetch *prefetch = context;
    int64_t bytes = prefetch->row_bytes[slot];
    if (as != tdi_input_type(prefetch->spec.model, slot))
        return tdi_fail(error, TD_INTERNAL, "input %d is not made as %s", slot, td_dtype_name(as));
    memcpy(to, batch_of(prefetch, step)->slots[slot] + first * bytes, (size_t)(count * bytes));
    return TD_OK;
}

static const void *prefetch_in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const tdi_prefetch *prefetch = context;
    if (as != tdi_input_type(prefetch->spec.model, slot))
        return NULL;
    return batch_of(prefetch, step)->slots[slot] + first * prefetch->row_bytes[slot];
}

static int64_t prefetch_sample(void *context, int64_t step, int64_t row, const char **name)
{
    const tdi_feed *from = &((const tdi_prefetch *)context)->spec.from;
    return from->sample(from->context, step, row, name);
}

tdi_feed tdi_prefetch_feed(tdi_prefetch *prefetch)
{
    return (tdi_feed){.context = prefetch,
                      .rows = prefetch_rows,
                      .in_place = prefetch_in_place,
                      .await = prefetch_await,
                      .sample = prefetch_sample};
}

/* ---- life ---- */

static int ring_depth(const tdi_prefetch *prefetch)
{
    int64_t bytes = 1;
    for (int slot = 0; slot < prefetch->slots; slot++)
        bytes += prefetch->row_bytes[slot] * prefetch->spec.batch;
    int64_t steps = is_open(prefetch) ? MOST_DEPTH : prefetch->spec.steps - prefetch->spec.first_step;
    int64_t most = steps < MOST_DEPTH ? steps : MOST_DEPTH;
    int64_t depth = RING_BYTES / bytes;
    depth = depth < LEAST_DEPTH ? LEAST_DEPTH : depth;
    return (int)(depth < most ? depth : most);
}

static td_status make_ring(tdi_prefetch *prefetch, tdi_error *error)
{
    const tdi_prefetch_spec *spec = &prefetch->spec;
    prefetch->slots = tdi_input_slots(spec->model, spec->mode);
    for (int slot = 0; slot < prefetch->slots; slot++)
        prefetch->row_bytes[slot] = tdi_input_bytes_per_row(spec->model, spec->mode, slot);
    prefetch->depth = ring_depth(prefetch);
    prefetch->ring = calloc((size_t)prefetch->depth, sizeof *prefetch->ring);
    if (!prefetch->ring)
        return tdi_no_memory(error);
    for (int i = 0; i < prefetch->depth; i++)
        for (int slot = 0; slot < prefetch->slots; slot++) {
            prefetch->ring[i].slots[slot] = tdi_buffer_create((size_t)(prefetch->row_bytes[slot] * spec->batch));
            if (!prefetch->ring[i].slots[slot])
                return tdi_fail(error, TD_NO_MEMORY,
                                "out of memory for %d batches of %lld samples; try a smaller batch", prefetch->depth,
                                (long long)spec->batch);
        }
    return TD_OK;
}

static td_status start_threads(tdi_prefetch *prefetch, int threads, tdi_error *error)
{
    prefetch->threads = calloc((size_t)threads, sizeof *prefetch->threads);
    if (!prefetch->threads)
        return tdi_no_memory(error);
    for (int i = 0; i < threads; i++) {
        TDI_TRY(tdi_thread_start(&prefetch->threads[i], make_batches, prefetch, error));
        prefetch->n_threads++;
    }
    return TD_OK;
}

td_status tdi_prefetch_start(const tdi_prefetch_spec *spec, tdi_prefetch **prefetch, tdi_error *error)
{
    int threads = spec->threads ? spec->threads : tdi_cores_allowed();
    tdi_prefetch *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->spec = *spec;
    if (!spec->shards)
        made->spec.shards = made->spec.end_shard = 1;
    made->pieces = threads;
    made->next_step = spec->first_step;
    made->end = is_open(made) ? INT64_MAX : spec->steps;
    atomic_init(&made->read_from, spec->first_step);
    atomic_init(&made->made_until, spec->first_step);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->room, NULL);
    pthread_cond_init(&made->made, NULL);
    td_status status = make_ring(made, error);
    if (spec->model->context->trace)
        made->label = tdi_trace_label(spec->model->context->trace, "make rows", "input", "");
    if (status == TD_OK)
        status = start_threads(made, threads, error);
    if (status == TD_OK)
        *prefetch = made;
    else
        tdi_prefetch_stop(made);
    return status;
}

static void join_threads(tdi_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->lock);
    atomic_store(&prefetch->ending, 1);
    pthread_cond_broadcast(&prefetch->room);
    pthread_mutex_unlock(&prefetch->lock);
    for (int i = 0; i < prefetch->n_threads; i++)
        pthread_join(prefetch->threads[i], NULL);
}

void tdi_prefetch_stop(tdi_prefetch *prefetch)
{
    if (!prefetch)
        return;
    join_threads(prefetch);
    for (int i = 0; prefetch->ring && i < prefetch->depth; i++)
        for (int slot = 0; slot < prefetch->slots; slot++)
            tdi_buffer_free(prefetch->ring[i].slots[slot]);
    pthread_cond_destroy(&prefetch->made);
    pthread_cond_destroy(&prefetch->room);
    pthread_mutex_destroy(&prefetch->lock);
    free(prefetch->ring);
    free(prefetch->threads);
    free(prefetch);
}
