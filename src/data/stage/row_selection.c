/* row_selection.c - td_repeat, td_shard and td_interleave: other rows of the same samples.
 *
 * Each of the three is a function from a row to a source below and its row there (place_of). Samples are neither copied
 * nor kept, and messages name a sample as the data below does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stages.h>

#include "data/recipe.h"
#include "data/source.h"

enum { ROWS_AT_ONCE = 64 };

typedef struct place {
    int of;
    int64_t row;
} place;

typedef struct rows_source rows_source;

struct rows_source {
    tdi_source source;
    td_data **of;
    int n_of, running; /* the first `running` of them are in a run */
    int64_t **orders;  /* [n_of] of the run */
    place (*place_of)(const rows_source *rows, int64_t row);
    int64_t first, step; /* shard: every step-th row from the first on */
    int32_t *turn_of;    /* interleave: [samples] the source and its row */
    int64_t *turn_row;
};

static place repeated_place(const rows_source *rows, int64_t row)
{
    return (place){0, row % rows->of[0]->source->samples};
}

static place shard_place(const rows_source *rows, int64_t row)
{
    return (place){0, rows->first + row * rows->step};
}

static place interleaved_place(const rows_source *rows, int64_t row)
{
    return (place){rows->turn_of[row], rows->turn_row[row]};
}

/* ---- the source ---- */

/* Consecutive rows of one source are gathered by one call. */
static td_status rows_gather(tdi_source *source, int column, const int64_t *wanted, int64_t count, void *to,
                             td_dtype as, tdi_error *error)
{
    const rows_source *rows = (const rows_source *)source;
    size_t stride = (size_t)tdi_sample_elements(&source->columns[column].shape) * td_dtype_size(as);
    int64_t translated[ROWS_AT_ONCE];
    for (int64_t done = 0; done < count;) {
        place next = rows->place_of(rows, wanted[done]);
        int of = next.of;
        int64_t piece = 0;
        while (done + piece < count && piece < ROWS_AT_ONCE && next.of == of) {
            translated[piece++] = next.row;
            if (done + piece < count)
                next = rows->place_of(rows, wanted[done + piece]);
        }
        tdi_source *from = rows->of[of]->source;
        TDI_TRY(from->gather(from, column, translated, piece, (char *)to + (size_t)done * stride, as, error));
        done += piece;
    }
    return TD_OK;
}

static void rows_end(tdi_source *source)
{
    rows_source *rows = (rows_source *)source;
    for (int i = 0; i < rows->running; i++)
        tdi_source_end(rows->of[i]->source);
    for (int i = 0; i < rows->n_of; i++) {
        free(rows->orders[i]);
        rows->orders[i] = NULL;
    }
    rows->running = 0;
}

/* Begins the run in one of the sources, with its own share of the order. */
static td_status begin_one(rows_source *rows, int of, const tdi_source_run *run, tdi_error *error)
{
    int64_t count = 0;
    tdi_source_run own = *run;
    int64_t *order = malloc((size_t)run->samples * sizeof *order + 1);
    if (!order)
        return tdi_no_memory(error);
    rows->orders[of] = order;
    own.first = 0;
    for (int64_t i = 0; i < run->samples; i++) {
        place at = rows->place_of(rows, run->order[i]);
        own.first += at.of == of && i < run->first;
        if (at.of == of)
            order[count++] = at.row;
    }
    own.order = order;
    own.samples = count;
    own.seed += (uint64_t)of * UINT64_C(0x9e3779b97f4a7c15); /* two sources draw differently for the same row */
    return tdi_source_begin(rows->of[of]->source, &own, error);
}

static td_status rows_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    rows_source *rows = (rows_source *)source;
    for (int i = 0; i < rows->n_of; i++) {
        td_status status = begin_one(rows, i, run, error);
        if (status != TD_OK) {
            rows_end(source);
            return status;
        }
        rows->running++;
    }
    return TD_OK;
}

static const tdi_source *rows_beneath(const tdi_source *source, int index)
{
    const rows_source *rows = (const rows_source *)source;
    return index < rows->n_of ? rows->of[index]->source : NULL;
}

static const tdi_source *rows_origin(const tdi_source *source, int64_t *row)
{
    const rows_source *rows = (const rows_source *)source;
    place at = rows->place_of(rows, *row);
    *row = at.row;
    return rows->of[at.of]->source;
}

static void free_rows(rows_source *rows)
{
    free(rows->of);
    free(rows->orders);
    free(rows->turn_of);
    free(rows->turn_row);
    free(rows);
}

static void rows_release(tdi_source *source)
{
    rows_source *rows = (rows_source *)source;
    for (int i = 0; i < rows->n_of; i++)
        td_data_release(rows->of[i]);
    free_rows(rows);
}

/* ---- making it ---- */

/* Makes a source over `count` data whose columns are alike, without `values`. */
static td_status create(td_data *const *of, int count, rows_source **made, tdi_error *error)
{
    rows_source *rows = calloc(1, sizeof *rows);
    if (!rows)
        return tdi_no_memory(error);
    tdi_source *source = &rows->source;
    rows->n_of = count;
    rows->of = malloc((size_t)count * sizeof *rows->of);
    rows->orders = calloc((size_t)count, sizeof *rows->orders);
    if (!rows->of || !rows->orders) {
        free_rows(rows);
        return tdi_no_memory(error);
    }
    memcpy(rows->of, of, (size_t)count * sizeof *rows->of);
    *source = *of[0]->source;
    source->gather = rows_gather;
    source->release = rows_release;
    source->beneath = rows_beneath;
    source->origin = rows_origin;
    source->checksum = NULL;
    source->of = NULL;
    source->count = NULL;
    source->begin = NULL;
    source->end = NULL;
    for (int i = 0; i < count; i++)
        if (of[i]->source->begin) {
            source->begin = rows_begin;
            source->end = rows_end;
        }
    for (int i = 0; i < tdi_source_columns(source); i++)
        source->columns[i].values = NULL;
    *made = rows;
    return TD_OK;
}

static td_status check_counted(const char *stage, const tdi_source *source, tdi_error *error)
{
    if (source->samples != TDI_SAMPLES_UNKNOWN)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: how many samples %s has is not known: give its .samples", stage,
                    source->name);
}

static td_status make_repeat(td_data *of, const void *argument, tdi_source **source, tdi_error *error)
{
    const td_repeat_args *args = argument;
    rows_source *rows = NULL;
    int64_t samples;
    if (args->guard || args->times < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_repeat: data and a number of times above 0 were expected");
    if (of->source->sequential)
        return tdi_fail(error, TD_UNSUPPORTED, "td_repeat: %s is a stream, which is passed over once an epoch",
                        of->source->name);
    TDI_TRY(check_counted("td_repeat", of->source, error));
    if (__builtin_mul_overflow(of->source->samples, args->times, &samples))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_repeat: %" PRId64 " times is too often", args->times);
    TDI_TRY(create(&of, 1, &rows, error));
    rows->place_of = repeated_place;
    rows->source.samples = samples;
    *source = &rows->source;
    return TD_OK;
}

td_data *td_repeat_(const td_repeat_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_repeat, args);
}

static td_status make_shard(td_data *of, const void *argument, tdi_source **source, tdi_error *error)
{
    const td_shard_args *args = argument;
    rows_source *rows = NULL;
    if (args->guard || args->count < 1 || args->index < 0 || args->index >= args->count)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_shard: shard %d of %d; data, an index from 0 and a count above it were expected",
                        args->index, args->count);
    TDI_TRY(check_counted("td_shard", of->source, error));
    int64_t samples = (of->source->samples - args->index + args->count - 1) / args->count;
    if (samples < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_shard: the %" PRId64 " samples of %s leave none for shard %d of %d", of->source->samples,
                        of->source->name, args->index, args->count);
    TDI_TRY(create(&of, 1, &rows, error));
    rows->place_of = shard_place;
    rows->first = args->index;
    rows->step = args->count;
    rows->source.samples = samples;
    *source = &rows->source;
    return TD_OK;
}

td_data *td_shard_(const td_shard_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_shard, args);
}

/* ---- several in turn ---- */

static bool same_columns(const tdi_source *a, const tdi_source *b)
{
    bool same = a->n_x == b->n_x && a->n_y == b->n_y && a->n_w == b->n_w;
    for (int i = 0; same && i < tdi_source_columns(a); i++) {
        const tdi_column *one = &a->columns[i], *other = &b->columns[i];
        same = one->dtype == other->dtype && one->scale == other->scale && one->shape.rank == other->shape.rank &&
               memcmp(one->shape.dim, other->shape.dim, (size_t)one->shape.rank * sizeof *one->shape.dim) == 0;
    }
    return same;
}

static td_status check_alike(td_data *const *of, int count, int64_t *samples, tdi_error *error)
{
    *samples = 0;
    for (int i = 0; i < count; i++) {
        const tdi_source *source = of[i]->source;
        TDI_TRY(check_counted("td_interleave", source, error));
        if (!same_columns(of[0]->source, source))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "td_interleave: the samples of %s are not of the shapes and types of those of %s",
                            source->name, of[0]->source->name);
        if (!tdi_recipes_agree(of[0]->source->recipe, source->recipe))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "td_interleave: the class folders of %s are not those of %s, so that their numbers mean "
                            "other classes; give them the same names",
                            source->name, of[0]->source->name);
        *samples += source->samples;
    }
    return TD_OK;
}

/* Takes `block` samples of each source in turn; a source without samples left is skipped. */
static void deal(rows_source *rows, int64_t block, int64_t *dealt)
{
    for (int64_t row = 0; row < rows->source.samples;)
        for (int of = 0; of < rows->n_of; of++)
            for (int64_t i = 0; i < block && dealt[of] < rows->of[of]->source->samples; i++) {
                rows->turn_of[row] = of;
                rows->turn_row[row++] = dealt[of]++;
            }
}

static td_status take_turns(rows_source *rows, int64_t block, tdi_error *error)
{
    size_t samples = (size_t)rows->source.samples;
    int64_t *dealt = calloc((size_t)rows->n_of, sizeof *dealt);
    rows->turn_of = malloc(samples * sizeof *rows->turn_of);
    rows->turn_row = malloc(samples * sizeof *rows->turn_row);
    bool there = dealt && rows->turn_of && rows->turn_row;
    if (there)
        deal(rows, block, dealt);
    free(dealt);
    return there ? TD_OK : tdi_no_memory(error);
}

static void gather_flags(rows_source *rows)
{
    tdi_source *source = &rows->source;
    for (int i = 1; i < rows->n_of; i++) {
        const tdi_source *of = rows->of[i]->source;
        source->sequential |= of->sequential;
        source->drawn |= of->drawn;
        source->by_class |= of->by_class;
        source->on_demand |= of->on_demand;
        source->stamp = source->stamp * 31 + of->stamp;
        source->skipped += of->skipped;
    }
}

static td_status make_interleave(td_data *unused, const void *argument, tdi_source **source, tdi_error *error)
{
    const td_interleave_args *args = argument;
    rows_source *rows = NULL;
    int count = 0;
    int64_t samples;
    (void)unused;
    while (args->list[count])
        count++;
    if (args->guard || args->block < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_interleave: data and a block of 1 or more were expected");
    TDI_TRY(check_alike(args->list, count, &samples, error));
    TDI_TRY(create(args->list, count, &rows, error));
    rows->place_of = interleaved_place;
    rows->source.samples = samples;
    gather_flags(rows);
    td_status status = take_turns(rows, args->block ? args->block : 1, error);
    if (status == TD_OK)
        *source = &rows->source;
    else
        free_rows(rows);
    return status;
}

/* The first poison of a list, whose other data is then released; else the first data. */
static td_data *pick(td_data *const *list)
{
    td_data *picked = list[0];
    for (int i = 0; list[i] && picked->source; i++)
        picked = list[i]->source ? picked : list[i];
    for (int i = 0; list[i] && !picked->source; i++)
        if (list[i] != picked)
            td_data_release(list[i]);
    return picked;
}

td_data *td_interleave_(const td_interleave_args *args)
{
    if (!args->list || !args->list[0])
        return tdi_data_stage(NULL, &args->at, make_interleave, args);
    td_data *picked = pick(args->list);
    if (!picked->source)
        return picked;
    td_data *made = tdi_data_stage(picked, &args->at, make_interleave, args);
    for (int i = 1; !made->source && args->list[i]; i++)
        td_data_release(args->list[i]);
    return made;
}
