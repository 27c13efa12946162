/* generator.c - samples that functions of the caller make.
 *
 * A stream is taken sample by sample, by whichever thread needs the next. What is taken and not gathered yet waits in a
 * window, which holds no more than the order of the pass makes it: a batch or two, or the shuffle's buffer. A pass to
 * the end of a stream of unknown length has no list of its rows, only of those from the first on that still wait. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/generators.h>

#include "data/made_samples.h"

/* Of a row in a pass; what is not below 0 is its place in the window. */
enum { NOT_WANTED = -1, WANTED = -2 };

enum { ROOM = 64 }; /* of a list of rows that grows */

typedef struct generator_source {
    tdi_whole whole;
    td_generator_args args;
    atomic_bool busy;
    const atomic_int *stop; /* the pass's */

    pthread_mutex_t lock;
    int64_t taken; /* from the stream since it began */
    bool ended;    /* and no more came, in this pass */
    bool training; /* the pass, which is */
    bool open;     /* to the stream's end */
    int64_t begin; /* row r of the pass is the stream's sample begin + r */
    int64_t base, rows;
    int64_t room;            /* for places */
    int32_t *places;         /* of rows [base, rows) */
    tdi_vec(char *) window;  /* samples; the first is for those that nobody wants */
    tdi_vec(int32_t) unused; /* places */
    tdi_vec(int) gathers;    /* [window] still to come */
    int columns;             /* gathered of each row */
} generator_source;

static tdi_source *source_of(generator_source *of)
{
    return &of->whole.items.source;
}

static td_status failed(generator_source *of, td_status status, int64_t sample, tdi_error *error)
{
    if (status == TD_OK)
        return TD_OK;
    return tdi_fail(error, status, "%s: sample %" PRId64 ": the generator's function returned %s", source_of(of)->name,
                    sample, td_status_name(status));
}

/* ---- any sample ---- */

static td_status any_make(tdi_whole *whole, int64_t row, void *const *to, tdi_error *error)
{
    generator_source *of = (generator_source *)whole;
    const tdi_source *source = source_of(of);
    return failed(of, of->args.read(of->args.user, row, to, source->n_y ? to + source->n_x : NULL), row, error);
}

static td_status any_begin(tdi_source *source, const tdi_source_pass *pass, tdi_error *error)
{
    (void)error;
    tdi_whole_begin((tdi_whole *)source, pass);
    return TD_OK;
}

static void any_end(tdi_source *source)
{
    tdi_whole_end((tdi_whole *)source);
}

/* ---- a stream ---- */

static td_status add_place(generator_source *of, tdi_error *error)
{
    char *sample = malloc(of->whole.begin[of->whole.columns] + 1);
    if (!sample || !tdi_push(&of->window, sample)) {
        free(sample);
        return tdi_no_memory(error);
    }
    if (!tdi_push(&of->gathers, 0) || !tdi_vec_grow((void **)&of->unused.at, of->unused.count, &of->unused.capacity,
                                                    of->window.count, sizeof *of->unused.at))
        return tdi_no_memory(error);
    of->unused.at[of->unused.count++] = of->window.count - 1; /* there is room for all places at once */
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

/* What may help depends on what was given. */
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
    tdi_whole_places(&of->whole, sample, places);
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

/* The list is moved up to the first row that waits, and grows when that frees less than half of it. */
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

/* The stream's next sample, into the window where the pass wants it. */
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
    memcpy(to, of->window.at[place] + of->whole.begin[column], tdi_whole_bytes(&of->whole, column));
    if (--of->gathers.at[place] == 0) {
        of->unused.at[of->unused.count++] = place;
        *place_of(of, row) = NOT_WANTED;
    }
    return TD_OK;
}

static td_status stream_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    generator_source *of = (generator_source *)items;
    pthread_mutex_lock(&of->lock);
    td_status status = of->places ? gather_row(of, column, row, to, error)
                                  : tdi_fail(error, TD_UNSUPPORTED,
                                             "%s: a stream can be passed over, but not read here and there: give .read",
                                             items->source.name);
    pthread_mutex_unlock(&of->lock);
    return status;
}

/* ---- a pass ---- */

static td_status want_rows(generator_source *of, const tdi_source_pass *pass, tdi_error *error)
{
    of->base = of->rows = 0;
    of->columns = pass->columns;
    of->training = pass->training;
    of->open = pass->samples == TDI_SAMPLES_UNKNOWN;
    for (int64_t i = 0; i < pass->samples; i++)
        of->rows = pass->order[i] >= of->rows ? pass->order[i] + 1 : of->rows;
    of->room = of->open ? ROOM : of->rows;
    of->places = malloc((size_t)of->room * sizeof *of->places + 1);
    if (!of->places)
        return tdi_no_memory(error);
    for (int64_t i = 0; i < of->rows; i++)
        of->places[i] = NOT_WANTED;
    for (int64_t i = pass->first; i < pass->samples; i++)
        of->places[pass->order[i]] = WANTED;
    return TD_OK;
}

static td_status find_begin(generator_source *of, const tdi_source_pass *pass, tdi_error *error)
{
    of->begin = 0;
    of->ended = false;
    if (of->args.restart) {
        TDI_TRY(failed(of, of->args.restart(of->args.user), 0, error));
        of->taken = 0;
    } else if (pass->samples != TDI_SAMPLES_UNKNOWN) {
        of->begin =
            pass->epoch * pass->samples; /* a run that is resumed takes what earlier epochs had, and leaves it */
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

static td_status enter_pass(generator_source *of, const tdi_source_pass *pass, tdi_error *error)
{
    TDI_TRY(find_begin(of, pass, error));
    of->unused.count = 0; /* the first place stays out of it */
    of->stop = pass->stop;
    return want_rows(of, pass, error);
}

static td_status stream_begin(tdi_source *source, const tdi_source_pass *pass, tdi_error *error)
{
    generator_source *of = (generator_source *)source;
    if (atomic_exchange(&of->busy, true))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: a stream serves one pass at a time", source->name);
    td_status status = enter_pass(of, pass, error);
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
    if (args->samples < 0 || args->samples > MOST_SAMPLES || (args->read && args->samples < 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_generator: samples is %" PRId64 "; with .read it must be given, and %" PRId64
                        " is the most possible",
                        args->samples, MOST_SAMPLES);
    return TD_OK;
}

static td_status add_columns(tdi_whole *whole, const td_generator_args *args, tdi_error *error)
{
    const char *name = "td_generator";
    const td_column x = {args->x_shape, args->x_dtype, args->scale}, y = {args->y_shape, args->y_dtype, 0};
    TDI_TRY(tdi_whole_add(whole, name, false, &x, error));
    TDI_TRY(tdi_whole_add_list(whole, name, false, args->more_x, error));
    if (args->targets == TD_NO)
        return TD_OK;
    TDI_TRY(tdi_whole_add(whole, name, true, &y, error));
    return tdi_whole_add_list(whole, name, true, args->more_y, error);
}

static td_status fill(generator_source *of, tdi_error *error)
{
    const td_generator_args *args = &of->args;
    tdi_source *source = source_of(of);
    TDI_TRY(check_args(args, error));
    TDI_TRY(add_columns(&of->whole, args, error));
    snprintf(source->name, sizeof source->name, "td_generator");
    source->samples = args->next && !args->samples ? TDI_SAMPLES_UNKNOWN : args->samples;
    source->sequential = args->next != NULL;
    source->count = args->next ? stream_count : NULL;
    source->begin = args->next ? stream_begin : any_begin;
    source->end = args->next ? stream_end : any_end;
    source->origin = args->next ? stream_origin : NULL;
    of->whole.make = any_make;
    if (args->next)
        of->whole.items.read = stream_read;
    return TD_OK;
}

static void generator_release(tdi_source *source)
{
    generator_source *of = (generator_source *)source;
    if (of->args.release)
        of->args.release(of->args.user);
    pthread_mutex_destroy(&of->lock);
    tdi_whole_release(&of->whole);
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
    tdi_whole_init(&of->whole);
    source_of(of)->release = generator_release;
    pthread_mutex_init(&of->lock, NULL);
    td_status status = fill(of, error);
    if (status == TD_OK)
        *source = source_of(of);
    else
        generator_release(source_of(of));
    return status;
}
