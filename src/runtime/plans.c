/* plans.c - the plans of a runtime: made on demand, by mode and rows, and bound to its memory. */
#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "tune/tuning_cache_file.h"

static void bind(tdi_runtime *runtime, int index, tdi_mode mode, tdi_plan *plan)
{
    tdi_shard_state *state = &runtime->shards[index];
    tdi_worker *worker = &runtime->workers[tdi_worker_of(runtime, index)];
    tdi_plan_bind(plan, &(tdi_bindings){.activations = state->activations,
                                        .scratch = worker->scratch,
                                        .values = runtime->state->host_values,
                                        .slots = runtime->state->host_slots,
                                        .gradients = state->gradients,
                                        .reduced = tdi_reduced_gradients(runtime),
                                        .exchange = runtime->modes[mode].exchange,
                                        .metrics = state->metrics[mode],
                                        .control = worker->control,
                                        .failed = runtime->out_of_memory,
                                        .shard = state->shard});
}

void tdi_runtime_bind(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans)
{
    for (int p = runtime->division.own_first; p < tdi_own_end(&runtime->division); p++)
        for (int i = 0; i < runtime->shards[p].plans[mode].count; i++) {
            tdi_kept_plan *kept = &runtime->shards[p].plans[mode].at[i];
            if (kept->plan != plans[p] || kept->bound == runtime->bindings)
                continue;
            bind(runtime, p, mode, kept->plan);
            kept->bound = runtime->bindings;
        }
}

void tdi_runtime_put_state(tdi_runtime *runtime, tdi_model_state *state)
{
    if (runtime->state == state)
        return;
    runtime->state = state;
    runtime->bindings++;
    runtime->fresh_gradients = false;
}

static void drop_oldest(tdi_shard_state *state, tdi_mode mode)
{
    int oldest = 0;
    for (int i = 1; i < state->plans[mode].count; i++)
        if (state->plans[mode].at[i].used < state->plans[mode].at[oldest].used)
            oldest = i;
    tdi_plan_free(state->plans[mode].at[oldest].plan);
    state->plans[mode].at[oldest] = state->plans[mode].at[--state->plans[mode].count];
}

/* Twice the weights, by all plans, each shard as much: batches of many sizes would otherwise keep copies without end.
 */
static size_t most_packed(const tdi_runtime *runtime, int shard)
{
    size_t weights = (size_t)runtime->model->architecture->total * sizeof(float);
    size_t most = 2 * weights / (size_t)tdi_own_shards(&runtime->division),
           held = tdi_packed_bytes(&runtime->shards[shard]);
    return most > held ? most - held : 0;
}

/* Makes the plan anew with fewer threads where that is faster. */
static td_status choose_sharing(tdi_runtime *runtime, tdi_mode mode, tdi_plan_spec *spec, tdi_plan **plan,
                                const tdi_tuned **choice, tdi_error *error)
{
    spec->sharing = runtime->division.threads;
    tdi_choose_sharing(runtime, mode, spec->rows, *plan, &spec->sharing, choice);
    if (spec->sharing == spec->threads)
        return TD_OK;
    tdi_plan_free(*plan);
    return tdi_plan_create(spec, plan, error);
}

static td_status make_plan(tdi_runtime *runtime, int index, tdi_mode mode, int64_t rows, tdi_plan **plan,
                           tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    tdi_shard_state *shard = &runtime->shards[index];
    tdi_plan_spec spec = {.graph = state->program.graph,
                          .schedule = &state->program.schedule,
                          .device = tdi_shard_device(runtime, index),
                          .rows = rows,
                          .shard = index,
                          .replica = tdi_worker_of(runtime, index),
                          .replicas = runtime->division.workers,
                          .threads = runtime->division.threads,
                          .sharing = runtime->sharing,
                          .most_packed = most_packed(runtime, index),
                          .chooser = runtime->chooser.cache ? &runtime->chooser : NULL,
                          .spin = tdi_runtime_spins(runtime),
                          .explain = true};
    const tdi_tuned *sharing = NULL;
    TDI_TRY(tdi_plan_create(&spec, plan, error));
    bool fixed = mode == TDI_APPLY || state->program.collectives.count || runtime->sharing;
    td_status status = fixed ? TD_OK : choose_sharing(runtime, mode, &spec, plan, &sharing, error);
    if (status != TD_OK) {
        tdi_plan_free(*plan);
        return status;
    }
    if (shard->plans[mode].count == PLANS_KEPT)
        drop_oldest(shard, mode);
    if (tdi_push(&shard->plans[mode], ((tdi_kept_plan){.rows = rows, .plan = *plan, .sharing = sharing})))
        return TD_OK;
    tdi_plan_free(*plan);
    return tdi_no_memory(error);
}

static tdi_kept_plan *kept_plan(tdi_shard_state *state, tdi_mode mode, int64_t rows)
{
    for (int i = 0; i < state->plans[mode].count; i++)
        if (state->plans[mode].at[i].rows == rows)
            return &state->plans[mode].at[i];
    return NULL;
}

static td_status plan_of(tdi_runtime *runtime, int index, tdi_mode mode, int64_t rows, tdi_plan **plan,
                         tdi_error *error)
{
    tdi_shard_state *shard = &runtime->shards[index];
    tdi_kept_plan *kept = kept_plan(shard, mode, rows);
    if (!kept) {
        TDI_TRY(make_plan(runtime, index, mode, rows, plan, error));
        kept = &shard->plans[mode].at[shard->plans[mode].count - 1];
    }
    kept->used = ++runtime->clock;
    *plan = kept->plan;
    return TD_OK;
}

td_status tdi_plans_of(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    if (mode != TDI_APPLY)
        TDI_TRY(tdi_model_check_rows(runtime->model, rows, error));
    TDI_TRY(tdi_make_mode(runtime, mode, rows, error));
    for (int p = runtime->division.own_first; p < tdi_own_end(&runtime->division); p++) {
        int64_t own = mode == TDI_APPLY ? 1 : tdi_shard_rows(runtime, p, rows);
        TDI_TRY(plan_of(runtime, p, mode, own, &plans[p], error));
    }
    return TD_OK;
}

/* What has grown has another address, even where memory was short for the rest. */
static td_status make_room(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans, tdi_error *error)
{
    bool grown = false;
    td_status status = tdi_grow_memory(runtime, mode, plans, &grown, error);
    runtime->bindings += grown;
    return status;
}

td_status tdi_runtime_prepare(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    const tdi_tuning_cache *cache = runtime->chooser.cache;
    double seconds = cache ? cache->seconds : 0;
    TDI_TRY(tdi_plans_of(runtime, mode, rows, plans, error));
    if (cache && cache->seconds > seconds)
        tdi_buffers_trim();
    TDI_TRY(make_room(runtime, mode, plans, error));
    tdi_tuning_cache_save(runtime->model->context);
    return TD_OK;
}
