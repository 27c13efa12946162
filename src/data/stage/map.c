/* map.c - td_map: samples that a function of the user computes from others.
 *
 * The function's arguments and the key of its draws depend on (seed, epoch, sample number) alone, so that its results
 * are the same on any thread and after a resume. */
#include <inttypes.h>
#include <stdlib.h>
#include <tandem/stages.h>

#include "base/rng.h"
#include "data/joint_columns.h"

#define MAP_STREAM UINT64_C(0x6d61700000000000) /* "map"; keeps these draws independent of others by the same seed */

typedef struct map_source {
    tdi_joint_columns joint;
    td_map_args args;
    bool targets;     /* the function computes targets too; else they pass through */
    atomic_bool busy; /* a random map's run is under way; the members below are the run's */
    bool training;
    uint64_t seed;
    int64_t epoch;
} map_source;

static tdi_source *source_of(map_source *map)
{
    return &map->joint.reader.source;
}

/* ---- one sample ---- */

static int given_columns(const map_source *map)
{
    const tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    return of->n_x + (map->targets ? of->n_y : 0);
}

/* The function's arguments, and memory for the columns that it computes and nobody gathers. */
typedef struct scratch {
    float *given;
    char *unwanted;
    const float *from[TDI_MAX_COLUMNS];
    void *to[TDI_MAX_COLUMNS];
} scratch;

static td_status make_scratch(const map_source *map, void *const *to, scratch *made, tdi_error *error)
{
    int64_t elements = 0;
    const tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    for (int i = 0; i < given_columns(map); i++)
        elements += tdi_sample_elements(&of->columns[i].shape);
    made->given = malloc((size_t)elements * sizeof *made->given + 1);
    made->unwanted = malloc(map->joint.begin[map->joint.columns] + 1);
    if (!made->given || !made->unwanted)
        return tdi_no_memory(error);
    elements = 0;
    for (int i = 0; i < given_columns(map); i++) {
        made->from[i] = made->given + elements;
        elements += tdi_sample_elements(&of->columns[i].shape);
    }
    tdi_joint_places(&map->joint, made->unwanted, made->to);
    for (int i = 0; i < map->joint.columns; i++)
        made->to[i] = to[i] ? to[i] : made->to[i];
    return TD_OK;
}

static uint64_t key_of(const map_source *map, int64_t row)
{
    tdi_philox block = tdi_philox_block(map->seed, MAP_STREAM + (uint64_t)map->epoch, (uint64_t)row);
    return (uint64_t)block.word[0] << 32 | block.word[1];
}

static td_status call(map_source *map, int64_t row, const scratch *on, tdi_error *error)
{
    const td_map_sample sample = {.number = row,
                                  .key = key_of(map, row),
                                  .training = map->training,
                                  .x = on->from,
                                  .y = map->targets ? on->from + tdi_stage_below(&map->joint.reader.source)->n_x : NULL,
                                  .to_x = on->to,
                                  .to_y = map->targets ? on->to + source_of(map)->n_x : NULL};
    td_status status = map->args.function(map->args.user, &sample);
    if (status == TD_OK)
        return TD_OK;
    const tdi_source *origin = tdi_source_origin(source_of(map), &row);
    return tdi_fail(
        error, status == TD_STOPPED ? TD_INVALID_ARGUMENT : status, /* the user's function must not stop training */
        "%s: sample %" PRId64 ": td_map's function returned %s", origin->name, row, td_status_name(status));
}

static td_status map_make(tdi_joint_columns *joint, int64_t row, void *const *to, tdi_error *error)
{
    map_source *map = (map_source *)joint;
    tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    scratch on = {0};
    td_status status = make_scratch(map, to, &on, error);
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
    tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    if (column < map->joint.columns)
        return tdi_sample_reader_gather(source, column, rows, count, to, as, error);
    return of->gather(of, given_columns(map) + column - map->joint.columns, rows, count, to, as, error);
}

static td_status map_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    map_source *map = (map_source *)source;
    bool random = map->args.random == TD_YES;
    int kept = run->columns - map->joint.columns; /* targets and weights that pass through */
    tdi_source_run own = *run;
    if (random && atomic_exchange(&map->busy, true))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: data with a random map serves one pass at a time: open and map it again for another",
                        source->name);
    own.columns = given_columns(map) + (kept > 0 ? kept : 0);
    td_status status = tdi_source_begin(tdi_stage_below(&map->joint.reader.source), &own, error);
    if (status != TD_OK) {
        atomic_store(&map->busy, false);
        return status;
    }
    tdi_joint_begin(&map->joint, run);
    if (random && run->training) {
        map->training = true;
        map->seed = run->seed;
        map->epoch = run->epoch;
    }
    return TD_OK;
}

static void map_end(tdi_source *source)
{
    map_source *map = (map_source *)source;
    tdi_source_end(tdi_stage_below(&map->joint.reader.source));
    tdi_joint_end(&map->joint);
    if (map->args.random != TD_YES)
        return;
    map->training = false;
    map->seed = 0;
    map->epoch = 0;
    atomic_store(&map->busy, false);
}

static void free_map(map_source *map)
{
    tdi_joint_release(&map->joint);
    free(map);
}

static void map_release(tdi_source *source)
{
    map_source *map = (map_source *)source;
    td_data_release(source->of);
    if (map->args.release)
        map->args.release(map->args.user);
    free_map(map);
}

/* ---- making it ---- */

static td_status add_inputs(map_source *map, tdi_error *error)
{
    const tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    TDI_TRY(tdi_joint_add_list(&map->joint, "td_map", TDI_X, map->args.x, error));
    for (int i = 0; !map->args.x && i < of->n_x; i++)
        TDI_TRY(tdi_joint_add(&map->joint, "td_map", TDI_X, &(td_column){.shape = of->columns[i].shape}, error));
    if (source_of(map)->n_x)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "td_map: .x is an empty list, and a sample has one input at least");
}

static td_status add_targets(map_source *map, tdi_error *error)
{
    tdi_source *source = source_of(map);
    const tdi_source *of = tdi_stage_below(&map->joint.reader.source);
    if (map->targets)
        TDI_TRY(tdi_joint_add_list(&map->joint, "td_map", TDI_Y, map->args.y, error));
    int made = map->joint.columns, given = given_columns(map), passed = tdi_source_columns(of) - given;
    if (made + passed > TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "td_map: a sample has at most %d inputs, targets and weights together",
                        TDI_MAX_COLUMNS);
    for (int i = 0; i < passed; i++)
        source->columns[made + i] = of->columns[given + i];
    source->n_y = map->targets ? source->n_y : of->n_y;
    source->n_w = of->n_w;
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
    tdi_stage_init(source_of(map), of);
    map->args = *(const td_map_args *)args;
    map->targets = map->args.y && of->source->n_y;
    tdi_joint_init(&map->joint);
    map->joint.make = map_make;
    source_of(map)->gather = map_gather;
    source_of(map)->begin = map_begin;
    source_of(map)->end = map_end;
    source_of(map)->release = map_release;
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
