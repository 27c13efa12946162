/* source_generator.c - samples that functions of the caller make.
 *
 * A stream is taken sample by sample, by whichever thread needs the next. What is taken and not gathered yet waits in a
 * window, which holds no more than the order of the pass makes it: a batch or two, or the shuffle's buffer. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/generators.h>

#include "base/vec.h"
#include "data/items.h"

/* Of a row in a pass; what is not below 0 is its place in the window. */
enum { NOT_WANTED = -1, WANTED = -2 };

typedef struct generator_source {
    tdi_items items;
    td_generator_args args;
    size_t bytes[2]; /* of a sample's x and y */
    atomic_bool busy;
    const atomic_int *stop; /* the pass's */

    pthread_mutex_t lock;
    int64_t taken; /* from the stream since it began */
    int64_t begin; /* row r of the pass is the stream's sample begin + r */
    int64_t rows;
    int32_t *places;         /* [rows] */
    tdi_vec(char *) window;  /* samples: x and behind it y; the first is for those that nobody wants */
    tdi_vec(int32_t) unused; /* places */
    tdi_vec(int) gathers;    /* [window] still to come */
    int columns;             /* gathered of each row */
} generator_source;

static td_status failed(const generator_source *of, td_status status, int64_t sample, tdi_error *error)
{
    if (status == TD_OK)
        return TD_OK;
    return tdi_fail(error, status, "%s: sample %" PRId64 ": the generator's function returned %s",
                    of->items.source.name, sample, td_status_name(status));
}

static td_status any_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    const generator_source *of = (const generator_source *)items;
    td_status status = of->args.read(of->args.user, row, column == 0 ? to : NULL, column == 1 ? to : NULL);
    return failed(of, status, row, error);
}

/* ---- a stream ---- */

static td_status add_place(generator_source *of, tdi_error *error)
{
    char *sample = malloc(of->bytes[0] + of->bytes[1] + 1);
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

static td_status stream_ended(const generator_source *of, tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: the stream ended after %" PRId64 " samples, and more were expected: give .restart, fewer "
                    "steps_per_epoch or epochs, or the right number of samples",
                    of->items.source.name, of->taken);
}

static td_status call_next(generator_source *of, char *sample, tdi_error *error)
{
    TDI_TRY(tdi_check_stop(of->stop, error));
    td_status status = of->args.next(of->args.user, sample, of->bytes[1] ? sample + of->bytes[0] : NULL);
    if (status == TD_STOPPED)
        return stream_ended(of, error);
    TDI_TRY(failed(of, status, of->taken, error));
    of->taken++;
    return TD_OK;
}

/* The stream's next sample, into the window where the pass wants it. */
static td_status take_next(generator_source *of, tdi_error *error)
{
    int64_t row = of->taken - of->begin;
    if (row < 0 || row >= of->rows || of->places[row] != WANTED)
        return call_next(of, of->window.at[0], error);
    if (!of->unused.count)
        TDI_TRY(add_place(of, error));
    int32_t place = of->unused.at[of->unused.count - 1];
    TDI_TRY(call_next(of, of->window.at[place], error));
    of->unused.count--;
    of->gathers.at[place] = of->columns;
    of->places[row] = place;
    return TD_OK;
}

static td_status gather_row(generator_source *of, int column, int64_t row, void *to, tdi_error *error)
{
    while (of->places[row] == WANTED)
        TDI_TRY(take_next(of, error));
    int32_t place = of->places[row];
    if (place < 0)
        return tdi_fail(error, TD_INTERNAL, "%s: sample %" PRId64 " is asked for again", of->items.source.name, row);
    memcpy(to, of->window.at[place] + (column == 1 ? of->bytes[0] : 0), of->bytes[column]);
    if (--of->gathers.at[place] == 0) {
        of->unused.at[of->unused.count++] = place;
        of->places[row] = NOT_WANTED;
    }
    return TD_OK;
}

static td_status stream_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    generator_source *of = (generator_source *)items;
    if (!of->places)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "%s: a stream can be passed over, but not read here and there: give .read", items->source.name);
    pthread_mutex_lock(&of->lock);
    td_status status = gather_row(of, column, row, to, error);
    pthread_mutex_unlock(&of->lock);
    return status;
}

/* ---- a pass ---- */

static td_status want_rows(generator_source *of, const tdi_source_pass *pass, tdi_error *error)
{
    of->rows = 0;
    of->columns = pass->columns;
    for (int64_t i = 0; i < pass->samples; i++)
        of->rows = pass->order[i] >= of->rows ? pass->order[i] + 1 : of->rows;
    of->places = malloc((size_t)of->rows * sizeof *of->places + 1);
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
    if (of->args.restart) {
        TDI_TRY(failed(of, of->args.restart(of->args.user), 0, error));
        of->taken = 0;
    } else if (pass->training) {
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
    of->taken = 0;
    for (char *sample = of->window.at[0]; status == TD_OK;) {
        TDI_TRY(tdi_check_stop(stop, error));
        status = of->args.next(of->args.user, sample, of->bytes[1] ? sample + of->bytes[0] : NULL);
        of->taken += status == TD_OK;
    }
    if (status != TD_STOPPED)
        return failed(of, status, of->taken, error);
    of->items.source.samples = of->taken;
    return TD_OK;
}

static td_status stream_count(tdi_source *source, const atomic_int *stop, tdi_error *error)
{
    generator_source *of = (generator_source *)source;
    if (!of->args.restart)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: how many samples the stream has is not known, and it cannot be restarted to count them: "
                        "give .samples, or td_fit its steps_per_epoch",
                        source->name);
    td_status status = add_place(of, error);
    if (status == TD_OK)
        status = run_through(of, stop, error);
    leave_pass(of);
    return status;
}

/* ---- making it ---- */

static td_status check_sample(const char *name, const td_shape *shape, td_dtype dtype, size_t *bytes, tdi_error *error)
{
    int64_t size = (int64_t)td_dtype_size(dtype);
    bool wrong = shape->rank < 0 || shape->rank > TD_MAX_RANK || (unsigned)dtype > TD_UINT8;
    for (int i = 0; !wrong && i < shape->rank; i++)
        wrong = shape->dim[i] < 1 || __builtin_mul_overflow(size, shape->dim[i], &size);
    *bytes = (size_t)size;
    if (!wrong)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "td_generator: %s_shape or %s_dtype is none: positive extents and a "
                    "td_dtype were expected",
                    name, name);
}

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
    if (args->samples < 0 || args->samples > MOST_SAMPLES || (args->read && args->samples < 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_generator: samples is %" PRId64 "; with .read it must be given, and %" PRId64
                        " is the most possible",
                        args->samples, MOST_SAMPLES);
    return isfinite(args->scale) ? TD_OK
                                 : tdi_fail(error, TD_INVALID_ARGUMENT, "td_generator: scale is not a finite number");
}

static td_status fill(generator_source *of, tdi_error *error)
{
    const td_generator_args *args = &of->args;
    tdi_source *source = &of->items.source;
    TDI_TRY(check_args(args, error));
    TDI_TRY(check_sample("x", &args->x_shape, args->x_dtype, &of->bytes[0], error));
    if (args->targets != TD_NO)
        TDI_TRY(check_sample("y", &args->y_shape, args->y_dtype, &of->bytes[1], error));
    snprintf(source->name, sizeof source->name, "td_generator");
    source->samples = args->next && !args->samples ? TDI_SAMPLES_UNKNOWN : args->samples;
    source->n_x = 1;
    source->n_y = args->targets != TD_NO;
    source->columns[0] = (tdi_column){"x", args->x_shape, args->x_dtype, NULL, args->scale != 0 ? args->scale : 1};
    source->columns[1] = (tdi_column){"y", args->y_shape, args->y_dtype, NULL, 1};
    source->gather = tdi_items_gather;
    of->items.read = args->read ? any_read : stream_read;
    source->made = true;
    source->sequential = args->next != NULL;
    source->count = args->next ? stream_count : NULL;
    source->begin = args->next ? stream_begin : NULL;
    source->end = args->next ? stream_end : NULL;
    return TD_OK;
}

static void generator_release(tdi_source *source)
{
    generator_source *of = (generator_source *)source;
    if (of->args.release)
        of->args.release(of->args.user);
    pthread_mutex_destroy(&of->lock);
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
    of->items.source.release = generator_release;
    pthread_mutex_init(&of->lock, NULL);
    td_status status = fill(of, error);
    if (status == TD_OK)
        *source = &of->items.source;
    else
        generator_release(&of->items.source);
    return status;
}
