/* generator.c - samples that functions of the user make.
 *
 * With `read`, samples have random access and any thread may call the function. With `next`, the source is a stream: it
 * has no random access, so that whole shuffles leave it in order, and an epoch that is resumed takes the samples before
 * it and drops them.
 *
 * Whichever thread needs a stream's next sample takes it, under the lock. Samples that are taken and not gathered yet
 * wait in a window, whose size follows from the run's order: a batch or two, or the shuffle's buffer. `places` says of
 * each row of the run where it waits. A run to the end of a stream of unknown length does not know its rows, so it
 * lists only those from the first that still waits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/generators.h>

#include "base/context.h"
#include "data/joint_columns.h"

/* The state of a row in a run; from 0 on it is the row's place in the window. */
enum { NOT_WANTED = -1, WANTED = -2 };

enum { ROOM = 64 }; /* rows that `places` holds at first, when it grows */

typedef struct generator_source {
    tdi_joint_columns joint;
    td_generator_args args;
    atomic_bool busy;
    const atomic_int *stop; /* the run's */

    pthread_mutex_t lock; /* guards the members below */
    int64_t taken;        /* samples taken from the stream since it began */
    bool ended;           /* the stream has ended in this run */
    bool training;        /* the run trains */
    bool open;            /* the run goes to the stream's end */
    int64_t begin;        /* row r of the run is the stream's sample begin + r */
    int64_t base, rows;
    int64_t room;            /* rows that `places` can hold */
    int32_t *places;         /* states of rows [base, rows) */
    tdi_vec(char *) window;  /* samples; place 0 takes samples that the run skips */
    tdi_vec(int32_t) unused; /* places without a sample */
    tdi_vec(int) gathers;    /* [window] gathers of the sample that are still to come */
    int columns;             /* columns that are gathered of each row */
} generator_source;

static tdi_source *source_of(generator_source *of)
{
    return &of->joint.reader.source;
}

static td_status failed(generator_source *of, td_status status, int64_t sample, tdi_error *error)
{
    if (status == TD_OK)
        return TD_OK;
    return tdi_fail(error, status, "%s: sample %" PRId64 ": the generator's function returned %s", source_of(of)->name,
                    sample, td_status_name(status));
}

/* ---- any sample ---- */

static td_status any_make(tdi_joint_columns *joint, int64_t row, void *const *to, tdi_error *error)
{
    generator_source *of = (generator_source *)joint;
    const tdi_source *source = source_of(of);
    return failed(of, of->args.read(of->args.user, row, to, source->n_y ? to + source->n_x : NULL), row, error);
}

static td_status any_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    (void)error;
    tdi_joint_begin((tdi_joint_columns *)source, run);
    return TD_OK;
}

static void any_end(tdi_source *source)
{
    tdi_joint_end((tdi_joint_columns *)source);
}

/* ---- a stream ---- */

static td_status add_place(generator_source *of, tdi_error *error)
{
    char *sample = malloc(of->joint.begin[of->joint.columns] + 1);
    if (!sample || !tdi_push(&of->window, sample)) {
        free(sample);
        return tdi_no_memory(error);
    }
    if (!tdi_push(&of->gathers, 0) || !tdi_vec_grow((void **)&of->unused.at, of->unused.count, &of->unused.capacity,
                                                    of->window.count, sizeof *of->unused.at))
        return tdi_no_memory(error);
    of->unused.at[of->unused.count++] = of->window.count - 1; /* tdi_vec_grow above has made room */
    return TD_OK;
}

static int32_t *place_of(generator_source *of, int64_t row)
{
    return &of->places[row - of->base];
}

static bool is_to_come(generator_source *of, int64_t row)
{
    return row >= of->rows ? of->open : row >= of->base && *place_of(of, row) == WANTED;
}

/* The sentence says what helps, which depends on the arguments of td_generator. */
static td_status stream_ended(generator_source *of, tdi_error *error)
{
    const char *steps = of->training ? "a smaller steps_per_epoch" : "fewer steps (td_fit: validation_steps)";
    if (of->open)
        return tdi_fail(error, TD_STOPPED, "%s: the stream has ended", source_of(of)->name);
    if (of->args.samples)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: the stream ended after %" PRId64 " samples, and more were expected: .samples is to be the "
                        "number that it has%s",
                        source_of(of)->name, of->taken,
                        of->args.restart ? "" : ", and .restart given to pass over it again");
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: the stream ended after %" PRId64 " samples, and more were expected: give %s%s",
                    source_of(of)->name, of->taken, of->args.restart ? "" : ".restart, or ", steps);
}

static td_status ask_next(generator_source *of, char *sample)
{
    const tdi_source *source = source_of(of);
    void *places[TDI_MAX_COLUMNS] = {NULL};
    tdi_joint_places(&of->joint, sample, places);
    return of->args.next(of->args.user, places, source->n_y ? places + source->n_x : NULL);
}

static td_status call_next(generator_source *of, char *sample, tdi_error *error)
{
    TDI_TRY(tdi_check_stop(of->stop, error));
    td_status status = of->ended ? TD_STOPPED : ask_next(of, sample);
    of->ended = status == TD_STOPPED;
    if (of->ended)
        return stream_ended(of, error);
    TDI_TRY(failed(of, status, of->taken, error));
    of->taken++;
    return TD_OK;
}

/* Drops the rows before the first that waits from `places`, and doubles it when that frees less than half of it. */
static td_status make_room(generator_source *of, tdi_error *error)
{
    int64_t listed = of->rows - of->base, done = 0;
    while (done < listed && of->places[done] == NOT_WANTED)
        done++;
    memmove(of->places, of->places + done, (size_t)(listed - done) * sizeof *of->places);
    of->base += done;
    if (2 * (listed - done) <= of->room)
        return TD_OK;
    int32_t *grown = realloc(of->places, 2 * (size_t)of->room * sizeof *grown);
    if (!grown)
        return tdi_no_memory(error);
    of->places = grown;
    of->room *= 2;
    return TD_OK;
}

static td_status want_next(generator_source *of, tdi_error *error)
{
    if (of->rows - of->base == of->room)
        TDI_TRY(make_room(of, error));
    *place_of(of, of->rows++) = WANTED;
    return TD_OK;
}

/* Takes the stream's next sample into the window, or drops it when the run does not gather it. */
static td_status take_next(generator_source *of, tdi_error *error)
{
    int64_t row = of->taken - of->begin;
    if (of->open && row == of->rows)
        TDI_TRY(want_next(of, error));
    if (row < 0 || !is_to_come(of, row))
        return call_next(of, of->window.at[0], error);
    if (!of->unused.count)
        TDI_TRY(add_place(of, error));
    int32_t place = of->unused.at[of->unused.count - 1];
    TDI_TRY(call_next(of, of->window.at[place], error));
    of->unused.count--;
    of->gathers.at[place] = of->columns;
    *place_of(of, row) = place;
    return TD_OK;
}

static td_status gather_row(generator_source *of, int column, int64_t row, void *to, tdi_error *error)
{
    while (is_to_come(of, row))
        TDI_TRY(take_next(of, error));
    int32_t place = row < of->base ? NOT_WANTED : *place_of(of, row);
    if (place < 0)
        return tdi_fail(error, TD_INTERNAL, "%s: sample %" PRId64 " is asked for again", source_of(of)->name, row);
    memcpy(to, of->window.at[place] + of->joint.begin[column], tdi_column_bytes(&source_of(of)->columns[column]));
    if (--of->gathers.at[place] == 0) {
        of->unused.at[of->unused.count++] = place;
        *place_of(of, row) = NOT_WANTED;
    }
    return TD_OK;
}

static td_status stream_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    generator_source *of = (generator_source *)reader;
    pthread_mutex_lock(&of->lock);
    td_status status = of->places ? gather_row(of, column, row, to, error)
                                  : tdi_fail(error, TD_UNSUPPORTED,
                                             "%s: a stream can be passed over, but not read here and there: give .read",
                                             reader->source.name);
    pthread_mutex_unlock(&of->lock);
    return status;
}

/* ---- a pass ---- */

static td_status want_rows(generator_source *of, const tdi_source_run *run, tdi_error *error)
{
    of->base = of->rows = 0;
    of->columns = run->columns;
    of->training = run->training;
    of->open = run->samples == TDI_SAMPLES_UNKNOWN;
    for (int64_t i = 0; i < run->samples; i++)
        of->rows = run->order[i] >= of->rows ? run->order[i] + 1 : of->rows;
    of->room = of->open ? ROOM : of->rows;
    of->places = malloc((size_t)of->room * sizeof *of->places + 1);
    if (!of->places)
        return tdi_no_memory(error);
    for (int64_t i = 0; i < of->rows; i++)
        of->places[i] = NOT_WANTED;
    for (int64_t i = run->first; i < run->samples; i++)
        of->places[run->order[i]] = WANTED;
    return TD_OK;
}

static td_status find_begin(generator_source *of, const tdi_source_run *run, tdi_error *error)
{
    of->begin = 0;
    of->ended = false;
    if (of->args.restart) {
        TDI_TRY(failed(of, of->args.restart(of->args.user), 0, error));
        of->taken = 0;
    } else if (run->samples != TDI_SAMPLES_UNKNOWN) {
        of->begin = run->epoch * run->samples; /* a resumed run drops the samples of earlier epochs */
    }
    if (of->begin < of->taken)
        of->begin = of->taken;
    return of->window.count ? TD_OK : add_place(of, error);
}

static void leave_pass(generator_source *of)
{
    for (int i = 0; i < of->window.count; i++)
        free(of->window.at[i]);
    tdi_vec_free(&of->window);
    tdi_vec_free(&of->unused);
    tdi_vec_free(&of->gathers);
    free(of->places);
    of->places = NULL;
}

static td_status enter_pass(generator_source *of, const tdi_source_run *run, tdi_error *error)
{
    TDI_TRY(find_begin(of, run, error));
    of->unused.count = 0; /* place 0 is never handed out */
    of->stop = run->stop;
    return want_rows(of, run, error);
}

static td_status stream_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    generator_source *of = (generator_source *)source;
    if (atomic_exchange(&of->busy, true))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: a stream serves one pass at a time", source->name);
    td_status status = enter_pass(of, run, error);
    if (status == TD_OK)
        return TD_OK;
    leave_pass(of);
    atomic_store(&of->busy, false);
    return status;
}

static void stream_end(tdi_source *source)
{
    generator_source *of = (generator_source *)source;
    leave_pass(of);
    atomic_store(&of->busy, false);
}

static td_status run_through(generator_source *of, const atomic_int *stop, tdi_error *error)
{
    td_status status = TD_OK;
    TDI_TRY(failed(of, of->args.restart(of->args.user), 0, error));
    for (of->taken = 0; status == TD_OK; of->taken += status == TD_OK) {
        TDI_TRY(tdi_check_stop(stop, error));
        status = ask_next(of, of->window.at[0]);
    }
    if (status != TD_STOPPED)
        return failed(of, status, of->taken, error);
    source_of(of)->samples = of->taken;
    return TD_OK;
}

static td_status stream_count(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error)
{
    generator_source *of = (generator_source *)source;
    if (!of->args.restart)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: how many samples the stream has is not known, and it cannot be restarted to count them: "
                        "give .restart, .samples%s",
                        source->name, or_else);
    td_status status = add_place(of, error);
    if (status == TD_OK)
        status = run_through(of, stop, error);
    leave_pass(of);
    return status;
}

static const tdi_source *stream_origin(const tdi_source *source, int64_t *row)
{
    *row += ((const generator_source *)source)->begin;
    return NULL;
}

/* ---- making it ---- */

#define MOST_SAMPLES (INT64_C(1) << 48)

static td_status check_args(const td_generator_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_generator takes one argument by position (x_shape): name the rest, as .next = function");
    if (!args->read == !args->next)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_generator: one of .read and .next was expected, got %s",
                        args->read ? "both" : "none");
    if (args->read && args->restart)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_generator: .restart belongs to .next");
    if (args->more_y && args->targets == TD_NO)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_generator: .more_y are targets, and .targets is TD_NO");
    if (args->sample_weight && args->targets == TD_NO)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_generator: .sample_weight weighs losses, of which there are none where .targets is TD_NO");
    if (args->samples < 0 || args->samples > MOST_SAMPLES || (args->read && args->samples < 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_generator: samples is %" PRId64 "; with .read it must be given, and %" PRId64
                        " is the most possible",
                        args->samples, MOST_SAMPLES);
    return TD_OK;
}

static td_status add_columns(tdi_joint_columns *joint, const td_generator_args *args, tdi_error *error)
{
    const char *name = "td_generator";
    const td_column x = {args->x_shape, args->x_dtype, args->scale}, y = {args->y_shape, args->y_dtype, 0};
    TDI_TRY(tdi_joint_add(joint, name, TDI_X, &x, error));
    TDI_TRY(tdi_joint_add_list(joint, name, TDI_X, args->more_x, error));
    if (args->targets == TD_NO)
        return TD_OK;
    TDI_TRY(tdi_joint_add(joint, name, TDI_Y, &y, error));
    TDI_TRY(tdi_joint_add_list(joint, name, TDI_Y, args->more_y, error));
    return tdi_joint_add_list(joint, name, TDI_WEIGHT, args->sample_weight, error);
}

static td_status fill(generator_source *of, tdi_error *error)
{
    const td_generator_args *args = &of->args;
    tdi_source *source = source_of(of);
    TDI_TRY(check_args(args, error));
    TDI_TRY(add_columns(&of->joint, args, error));
    snprintf(source->name, sizeof source->name, "td_generator");
    source->samples = args->next && !args->samples ? TDI_SAMPLES_UNKNOWN : args->samples;
    source->sequential = args->next != NULL;
    source->count = args->next ? stream_count : NULL;
    source->begin = args->next ? stream_begin : any_begin;
    source->end = args->next ? stream_end : any_end;
    source->origin = args->next ? stream_origin : NULL;
    of->joint.make = any_make;
    if (args->next)
        of->joint.reader.read = stream_read;
    return TD_OK;
}

static void generator_release(tdi_source *source)
{
    generator_source *of = (generator_source *)source;
    if (of->args.release)
        of->args.release(of->args.user);
    pthread_mutex_destroy(&of->lock);
    tdi_joint_release(&of->joint);
    free(of);
}

td_status tdi_source_generator(const td_generator_args *args, tdi_source **source, tdi_error *error)
{
    generator_source *of = calloc(1, sizeof *of);
    if (!of) {
        if (args->release)
            args->release(args->user);
        return tdi_no_memory(error);
    }
    of->args = *args;
    tdi_joint_init(&of->joint);
    source_of(of)->release = generator_release;
    pthread_mutex_init(&of->lock, NULL);
    td_status status = fill(of, error);
    return tdi_source_finish(source_of(of), status, source);
}
