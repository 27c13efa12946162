/* map.c - samples that a function of the caller makes of others.
 *
 * What it is given and the key of its draws are a function of (seed, epoch, sample number) alone, so that what it makes
 * is the same on any thread, and again after a resume. */
#include <inttypes.h>
#include <stdlib.h>
#include <tandem/stages.h>

#include "base/rng.h"
#include "data/made_samples.h"

#define MAP_STREAM UINT64_C(0x6d61700000000000) /* "map": apart from other draws by the same seed */

typedef struct map_source {
    tdi_whole whole;
    td_data *of;
    td_map_args args;
    bool targets;     /* are made; else they stay as they are */
    atomic_bool busy; /* of a random map: within a pass */
    bool training;    /* of the pass, as are: */
    uint64_t seed;
    int64_t epoch;
} map_source;

static tdi_source *source_of(map_source *map)
{
    return &map->whole.items.source;
}

/* ---- one sample ---- */

static int given_columns(const map_source *map)
{
    const tdi_source *of = map->of->source;
    return of->n_x + (map->targets ? of->n_y : 0);
}

/* What the function is given, and room for what it makes that nobody wants. */
typedef struct bench {
    float *given;
    char *unwanted;
    const float *from[TDI_MAX_COLUMNS];
    void *to[TDI_MAX_COLUMNS];
} bench;

static td_status make_bench(const map_source *map, void *const *to, bench *made, tdi_error *error)
{
    int64_t elements = 0;
    const tdi_source *of = map->of->source;
    for (int i = 0; i < given_columns(map); i++)
        elements += tdi_sample_elements(&of->columns[i].shape);
    made->given = malloc((size_t)elements * sizeof *made->given + 1);
    made->unwanted = malloc(map->whole.begin[map->whole.columns] + 1);
    if (!made->given || !made->unwanted)
        return tdi_no_memory(error);
    elements = 0;
    for (int i = 0; i < given_columns(map); i++) {
        made->from[i] = made->given + elements;
        elements += tdi_sample_elements(&of->columns[i].shape);
    }
    tdi_whole_places(&map->whole, made->unwanted, made->to);
    for (int i = 0; i < map->whole.columns; i++)
        made->to[i] = to[i] ? to[i] : made->to[i];
    return TD_OK;
}

static uint64_t key_of(const map_source *map, int64_t row)
{
    tdi_philox block = tdi_philox_block(map->seed, MAP_STREAM + (uint64_t)map->epoch, (uint64_t)row);
    return (uint64_t)block.word[0] << 32 | block.word[1];
}

static td_status call(map_source *map, int64_t row, const bench *on, tdi_error *error)
{
    const td_map_sample sample = {.number = row,
                                  .key = key_of(map, row),
                                  .training = map->training,
                                  .x = on->from,
                                  .y = map->targets ? on->from + map->of->source->n_x : NULL,
                                  .to_x = on->to,
                                  .to_y = map->targets ? on->to + source_of(map)->n_x : NULL};
    td_status status = map->args.function(map->args.user, &sample);
    if (status == TD_OK)
        return TD_OK;
    const tdi_source *origin = tdi_source_origin(source_of(map), &row);
    return tdi_fail(error, status == TD_STOPPED ? TD_INVALID_ARGUMENT : status, /* nobody asked for a stop */
                    "%s: sample %" PRId64 ": td_map's function returned %s", origin->name, row, td_status_name(status));
}

static td_status map_make(tdi_whole *whole, int64_t row, void *const *to, tdi_error *error)
{
    map_source *map = (map_source *)whole;
    tdi_source *of = map->of->source;
    bench on = {0};
    td_status status = make_bench(map, to, &on, error);
    for (int i = 0; i < given_columns(map) && status == TD_OK; i++)
        status = of->gather(of, i, &row, 1, (void *)on.from[i], TD_FLOAT32, error);
    if (status == TD_OK)
        status = call(map, row, &on, error);
    free(on.given);
    free(on.unwanted);
    return status;
}

/* ---- the source ---- */

static td_status map_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                            tdi_error *error)
{
    const map_source *map = (const map_source *)source;
    tdi_source *of = map->of->source;
    if (column < map->whole.columns)
        return tdi_items_gather(source, column, rows, count, to, as, error);
    return of->gather(of, of->n_x + column - source->n_x, rows, count, to, as, error);
}

static td_status map_begin(tdi_source *source, const tdi_source_pass *pass, tdi_error *error)
{
    map_source *map = (map_source *)source;
    bool random = map->args.random == TD_YES;
    int kept = pass->columns - map->whole.columns; /* targets that stay as they are */
    tdi_source_pass own = *pass;
    if (random && atomic_exchange(&map->busy, true))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: data with a random map serves one pass at a time: open and map it again for another",
                        source->name);
    own.columns = given_columns(map) + (kept > 0 ? kept : 0);
    td_status status = tdi_source_begin(map->of->source, &own, error);
    if (status != TD_OK) {
        atomic_store(&map->busy, false);
        return status;
    }
    tdi_whole_begin(&map->whole, pass);
    if (random && pass->training) {
        map->training = true;
        map->seed = pass->seed;
        map->epoch = pass->epoch;
    }
    return TD_OK;
}

static void map_end(tdi_source *source)
{
    map_source *map = (map_source *)source;
    tdi_source_end(map->of->source);
    tdi_whole_end(&map->whole);
    if (map->args.random != TD_YES)
        return;
    map->training = false;
    map->seed = 0;
    map->epoch = 0;
    atomic_store(&map->busy, false);
}

static const tdi_source *map_beneath(const tdi_source *source, int index)
{
    return index == 0 ? ((const map_source *)source)->of->source : NULL;
}

static void free_map(map_source *map)
{
    tdi_whole_release(&map->whole);
    free(map);
}

static void map_release(tdi_source *source)
{
    map_source *map = (map_source *)source;
    td_data_release(map->of);
    if (map->args.release)
        map->args.release(map->args.user);
    free_map(map);
}

/* ---- making it ---- */

static td_status add_inputs(map_source *map, tdi_error *error)
{
    const tdi_source *of = map->of->source;
    TDI_TRY(tdi_whole_add_list(&map->whole, "td_map", false, map->args.x, error));
    for (int i = 0; !map->args.x && i < of->n_x; i++)
        TDI_TRY(tdi_whole_add(&map->whole, "td_map", false, &(td_column){.shape = of->columns[i].shape}, error));
    if (source_of(map)->n_x)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "td_map: .x is an empty list, and a sample has one input at least");
}

static td_status add_targets(map_source *map, tdi_error *error)
{
    tdi_source *source = source_of(map);
    const tdi_source *of = map->of->source;
    if (map->targets)
        return tdi_whole_add_list(&map->whole, "td_map", true, map->args.y, error);
    if (source->n_x + of->n_y > TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "td_map: a sample has at most %d inputs and targets together",
                        TDI_MAX_COLUMNS);
    for (int i = 0; i < of->n_y; i++)
        source->columns[source->n_x + source->n_y++] = of->columns[of->n_x + i];
    return TD_OK;
}

static td_status fill(map_source *map, tdi_error *error)
{
    if (map->args.guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_map takes one argument by position (data): name the rest, as .function = function");
    if (!map->args.function)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_map: there is no .function");
    TDI_TRY(add_inputs(map, error));
    return add_targets(map, error);
}

static td_status make_map(td_data *of, const void *args, tdi_source **source, tdi_error *error)
{
    map_source *map = calloc(1, sizeof *map);
    if (!map)
        return tdi_no_memory(error);
    map->of = of;
    map->args = *(const td_map_args *)args;
    map->targets = map->args.y && of->source->n_y;
    *source_of(map) = *of->source;
    tdi_whole_init(&map->whole);
    map->whole.make = map_make;
    source_of(map)->gather = map_gather;
    source_of(map)->begin = map_begin;
    source_of(map)->end = map_end;
    source_of(map)->count = tdi_count_beneath;
    source_of(map)->release = map_release;
    source_of(map)->beneath = map_beneath;
    source_of(map)->origin = NULL;
    source_of(map)->checksum = NULL;
    source_of(map)->drawn |= map->args.random == TD_YES;
    td_status status = fill(map, error);
    if (status == TD_OK)
        *source = source_of(map);
    else
        free_map(map);
    return status;
}

td_data *td_map_(const td_map_args *args)
{
    td_data *made = tdi_data_stage(args->data, &args->at, make_map, args);
    if (!made->source && args->release)
        args->release(args->user);
    return made;
}
