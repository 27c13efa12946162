/* runtime.c - making a runtime: devices, workers and shards at once, programs and plans when steps first want them.
 *
 * Memory grows to what the largest plan so far needs and is shared by all plans of a shard, of which one runs at a
 * time. Growing changes addresses, which `bindings` counts: a plan that was bound under another count is bound anew
 * before its next run (tdi_runtime_bind). */
#include "runtime/runtime.h"

#include <string.h>

#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "tune/tuning_cache_file.h"

/* ---- life ---- */

tdi_device *tdi_shard_device(const tdi_runtime *runtime, int shard)
{
    const tdi_division *d = &runtime->division;
    return runtime
        ->devices[tdi_is_remote(runtime, shard) ? 0 : (shard - d->own_first) * runtime->n_devices / tdi_own_shards(d)];
}

void tdi_runtime_own_shards(const tdi_runtime *runtime, int *first, int *end)
{
    *first = runtime->division.own_first;
    *end = tdi_own_end(&runtime->division);
}

tdi_device *tdi_runtime_device(const tdi_runtime *runtime)
{
    return runtime->devices[0];
}

void *tdi_device_memory(tdi_device *device, size_t size, tdi_error *error)
{
    void *memory = device->allocate(device, size);
    if (!memory)
        tdi_memory_short(error, device->name, size, "try a smaller batch");
    return memory;
}

static td_status make_shard(tdi_runtime *runtime, int index, tdi_error *error)
{
    const tdi_division *d = &runtime->division;
    tdi_shard_state *state = &runtime->shards[index];
    int per_group = d->shards > d->groups ? d->shards / d->groups : 1, group = index / per_group;
    state->shard = calloc((size_t)d->threads, sizeof *state->shard);
    for (int thread = 0; state->shard && thread < d->threads; thread++)
        state->shard[thread] = (tdi_shard){.index = index,
                                           .shards = d->shards,
                                           .group_first = group * per_group,
                                           .group_count = per_group,
                                           .gradients = runtime->gradients};
    return state->shard ? TD_OK : tdi_no_memory(error);
}

static td_status make_worker(tdi_runtime *runtime, int index, tdi_error *error)
{
    tdi_worker *worker = &runtime->workers[index];
    worker->threads.count = (uint32_t)runtime->division.threads;
    worker->threads.spin = tdi_runtime_spins(runtime);
    worker->scratch = calloc((size_t)runtime->division.threads, sizeof *worker->scratch);
    worker->control = calloc((size_t)runtime->division.threads, sizeof *worker->control);
    return worker->scratch && worker->control ? TD_OK : tdi_no_memory(error);
}

/* Makes shards and workers, as the division says, and sees that the context has threads for them. */
static td_status furnish(tdi_runtime *runtime, tdi_error *error)
{
    td_model *model = runtime->model;
    const tdi_division *d = &runtime->division;
    TDI_TRY(tdi_context_team(model->context, tdi_runtime_threads(runtime), &runtime->team, error));
    /* Shards promise the same bits on every number of replicas: the clock is not asked. */
    bool rules = model->compiled.shards || model->compiled.by_rules;
    runtime->chooser = (tdi_chooser){.cache = rules ? NULL : tdi_tuning_cache_of(model->context),
                                     .context = model->context,
                                     .team = runtime->team,
                                     .workers = d->workers};
    runtime->shards = calloc((size_t)d->shards, sizeof *runtime->shards);
    runtime->gradients = calloc((size_t)d->shards, sizeof *runtime->gradients);
    runtime->workers = tdi_buffer_create((size_t)d->workers * sizeof *runtime->workers);
    if (!runtime->shards || !runtime->gradients || !runtime->workers)
        return tdi_no_memory(error);
    for (int p = 0; p < d->shards; p++)
        TDI_TRY(make_shard(runtime, p, error));
    for (int w = 0; w < d->workers; w++)
        TDI_TRY(make_worker(runtime, w, error));
    return TD_OK;
}

static td_status make_runtime(tdi_runtime *runtime, const tdi_configuration *configuration, tdi_error *error)
{
    td_model *model = runtime->model;
    const char *devices = model->compiled.devices ? model->compiled.devices : "cpu";
    runtime->memory = tdi_memory_allowed();
    runtime->strategy = configuration && configuration->alone ? &tdi_mirrored : tdi_strategy_of(model);
    TDI_TRY(tdi_open_devices(devices, runtime->devices, &runtime->n_devices, error));
    if (configuration) {
        runtime->division = configuration->division;
        runtime->float32 = configuration->float32;
        runtime->sharing = configuration->sharing;
    } else {
        TDI_TRY(tdi_divide(model, runtime->devices, runtime->n_devices, &runtime->division, error));
        runtime->float32 = runtime->strategy->float32;
        if (runtime->devices[0]->no_bfloat16 && tdi_model_wishes_bfloat16(model))
            tdi_say_float32(model, runtime->devices[0]->no_bfloat16);
    }
    return furnish(runtime, error);
}

td_status tdi_runtime_open(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                           tdi_error *error)
{
    *runtime = calloc(1, sizeof **runtime);
    if (!*runtime)
        return tdi_no_memory(error);
    (*runtime)->model = model;
    (*runtime)->state = model->state;
    (*runtime)->bindings = 1;
    td_status status = make_runtime(*runtime, configuration, error);
    if (status != TD_OK) {
        tdi_runtime_free(*runtime);
        *runtime = NULL;
    }
    return status;
}

void tdi_fix_threads(tdi_runtime *runtime, tdi_mode mode, bool in_turn)
{
    const double
        never = 1e9,
        nothing = 1e-9; /* seconds: threads and one in their place are not compared, no stretch ends before its job */
    runtime->modes[mode].governor = (tdi_thread_governor){.in_turn = in_turn, .wait = never, .last = nothing};
}

td_status tdi_runtime_create(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                             tdi_error *error)
{
    TDI_TRY(tdi_runtime_open(model, configuration, runtime, error));
    (*runtime)->is_trial = true;
    for (int m = 0; m < TDI_MODES; m++)
        tdi_fix_threads(*runtime, (tdi_mode)m, false);
    return TD_OK;
}

static void free_plans(tdi_runtime *runtime, int shard, tdi_mode mode)
{
    tdi_shard_state *state = &runtime->shards[shard];
    tdi_device *device = tdi_shard_device(runtime, shard);
    for (int i = 0; i < state->plans[mode].count; i++)
        tdi_plan_free(state->plans[mode].at[i].plan);
    tdi_vec_free(&state->plans[mode]);
    device->release(device, state->metrics[mode]);
    state->metrics[mode] = NULL;
}

static void free_shard(tdi_runtime *runtime, int index)
{
    tdi_shard_state *state = &runtime->shards[index];
    tdi_device *device = tdi_shard_device(runtime, index);
    for (int mode = 0; mode < TDI_MODES; mode++)
        free_plans(runtime, index, (tdi_mode)mode);
    for (int slot = 0; slot < TDI_MAX_FED; slot++) {
        device->release(device, state->inputs[0][slot].data);
        device->release(device, state->inputs[1][slot].data);
    }
    free(state->shard);
    device->release(device, state->activations);
    device->release(device, state->gradients);
}

static void disconnect(const tdi_runtime *runtime, tdi_mode_state *mode)
{
    for (int w = 0; mode->communicators && w < runtime->division.workers; w++)
        mode->communicators[w]->release(mode->communicators[w]);
    free(mode->communicators);
    mode->communicators = NULL;
    mode->steps = 0;
}

void tdi_runtime_disconnect(tdi_runtime *runtime, tdi_mode mode)
{
    disconnect(runtime, &runtime->modes[mode]);
}

static void free_mode(tdi_runtime *runtime, tdi_mode_state *mode)
{
    if (!mode->made)
        return;
    disconnect(runtime, mode);
    free(mode->sums);
    runtime->devices[0]->release(runtime->devices[0], mode->exchange);
    tdi_program_release(&mode->program);
    *mode = (tdi_mode_state){0};
}

void tdi_runtime_drop_mode(tdi_runtime *runtime, tdi_mode mode)
{
    for (int p = 0; p < runtime->division.shards; p++)
        free_plans(runtime, p, mode);
    free_mode(runtime, &runtime->modes[mode]);
}

static void free_worker(tdi_runtime *runtime, tdi_worker *worker)
{
    for (int thread = 0; worker->scratch && thread < runtime->division.threads; thread++)
        runtime->devices[0]->release(runtime->devices[0], worker->scratch[thread]);
    free(worker->scratch);
    free(worker->control);
}

void tdi_runtime_free(tdi_runtime *runtime)
{
    if (!runtime)
        return;
    for (int p = 0; runtime->shards && p < runtime->division.shards; p++)
        free_shard(runtime, p);
    for (int mode = 0; mode < TDI_MODES; mode++)
        free_mode(runtime, &runtime->modes[mode]);
    for (int w = 0; runtime->workers && w < runtime->division.workers; w++)
        free_worker(runtime, &runtime->workers[w]);
    free(runtime->shards);
    free(runtime->traced.tracks);
    free(runtime->gradients);
    if (runtime->n_devices)
        runtime->devices[0]->release(runtime->devices[0], runtime->sums);
    tdi_buffer_free(runtime->workers);
    tdi_close_devices(runtime->devices, runtime->n_devices);
    free(runtime);
}

/* ---- modes ---- */

static td_status connect_workers(const tdi_runtime *runtime, tdi_mode_state *state, tdi_error *error)
{
    const tdi_division *d = &runtime->division;
    const tdi_strategy *strategy = runtime->strategy;
    tdi_group_spec group = {.workers = d->workers,
                            .threads = tdi_runtime_threads(runtime),
                            .spin = tdi_runtime_spins(runtime),
                            .collectives = &state->program.collectives,
                            .shards = d->shards,
                            .gradients = runtime->gradients,
                            .sums = &runtime->sums,
                            .exchange = &state->exchange};
    state->communicators = calloc((size_t)d->workers, sizeof *state->communicators);
    if (!state->communicators)
        return tdi_no_memory(error);
    td_status status = strategy->connect(strategy, &group, state->communicators, error);
    if (status != TD_OK) {
        free(state->communicators);
        state->communicators = NULL;
    }
    return status;
}

static td_status make_program(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    const tdi_division *d = &runtime->division;
    tdi_target target = {.shards = d->shards,
                         .groups = d->groups,
                         .device = runtime->devices[0],
                         .float32 = runtime->float32,
                         .effects_last = runtime->strategy->can_break,
                         .exchanged = runtime->strategy->exchange != NULL,
                         .rows = rows};
    TDI_TRY(tdi_program_create(runtime->model, mode, &target, &state->program, error));
    state->made = true;
    tdi_control_reckon(&state->control, state->program.graph);
    return TD_OK;
}

td_status tdi_make_mode(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    if (state->made && state->program.graph->gathers_factors && rows > state->program.graph->rows)
        tdi_runtime_drop_mode(runtime, mode);
    if (!state->made)
        TDI_TRY(make_program(runtime, mode, rows, error));
    if (!state->sums)
        state->sums = calloc(1, tdi_metric_bytes(&state->program.slots));
    if (!state->sums)
        return tdi_no_memory(error);
    return state->communicators ? TD_OK : connect_workers(runtime, state, error);
}

/* ---- memory ---- */

/* Makes a buffer larger, its content lost; sets *grown when its address has changed. */
static td_status grow(tdi_device *device, char **buffer, size_t *size, size_t need, bool *grown, tdi_error *error)
{
    if (*buffer && *size >= need)
        return TD_OK;
    device->release(device, *buffer);
    *buffer = tdi_device_memory(device, need, error);
    *size = *buffer ? need : 0;
    *grown = true;
    return *buffer ? TD_OK : TD_NO_MEMORY;
}

static td_status need_metrics(tdi_runtime *runtime, int shard, tdi_mode mode, tdi_error *error)
{
    double **metrics = &runtime->shards[shard].metrics[mode];
    size_t bytes = tdi_metric_bytes(&runtime->modes[mode].program.slots);
    if (!*metrics)
        *metrics = tdi_device_memory(tdi_shard_device(runtime, shard), bytes, error);
    return *metrics ? TD_OK : TD_NO_MEMORY;
}

td_status tdi_need_sums(tdi_runtime *runtime, tdi_mode mode, tdi_error *error)
{
    TDI_TRY(tdi_make_mode(runtime, mode, 0, error));
    for (int p = 0; p < runtime->division.shards; p++)
        TDI_TRY(need_metrics(runtime, p, mode, error));
    return TD_OK;
}

/* An arena of the trained variables, if there is none yet. */
static td_status need_arena(const tdi_runtime *runtime, tdi_device *device, float **arena, bool *grown,
                            tdi_error *error)
{
    if (*arena)
        return TD_OK;
    *arena = tdi_device_memory(device, (size_t)runtime->model->architecture->trained * sizeof(float), error);
    *grown = true;
    return *arena ? TD_OK : TD_NO_MEMORY;
}

static td_status grow_shard(tdi_runtime *runtime, int index, tdi_mode mode, const tdi_plan *plan, bool *grown,
                            tdi_error *error)
{
    tdi_shard_state *state = &runtime->shards[index];
    tdi_device *device = tdi_shard_device(runtime, index);
    TDI_TRY(grow(device, &state->activations, &state->activation_bytes, tdi_plan_activation_bytes(plan), grown, error));
    if (!tdi_trains(mode))
        return TD_OK;
    td_status status = need_arena(runtime, device, &state->gradients, grown, error);
    runtime->gradients[index] = state->gradients;
    return status;
}

static td_status grow_scratch(tdi_runtime *runtime, int worker_index, size_t need, bool *grown, tdi_error *error)
{
    tdi_worker *worker = &runtime->workers[worker_index];
    need = need ? need : 1; /* scratch_bytes 0 means that there is no buffer */
    if (worker->scratch_bytes >= need)
        return TD_OK;
    worker->scratch_bytes = 0;
    for (int thread = 0; thread < runtime->division.threads; thread++) {
        size_t none = 0;
        TDI_TRY(grow(runtime->devices[0], &worker->scratch[thread], &none, need, grown, error));
    }
    worker->scratch_bytes = need;
    return TD_OK;
}

static td_status grow_exchange(tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan, tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    if (!state->exchange)
        state->exchange = tdi_device_memory(runtime->devices[0], tdi_plan_exchange_bytes(plan), error);
    return state->exchange ? TD_OK : TD_NO_MEMORY;
}

td_status tdi_grow_memory(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans, bool *grown, tdi_error *error)
{
    if (tdi_trains(mode) && runtime->strategy->exchange)
        TDI_TRY(need_arena(runtime, runtime->devices[0], &runtime->sums, grown, error));
    for (int p = 0; p < runtime->division.shards; p++) {
        TDI_TRY(need_metrics(runtime, p, mode, error));
        if (tdi_is_remote(runtime, p))
            continue;
        TDI_TRY(grow_shard(runtime, p, mode, plans[p], grown, error));
        TDI_TRY(grow_exchange(runtime, mode, plans[p], error));
        TDI_TRY(grow_scratch(runtime, tdi_worker_of(runtime, p), tdi_plan_scratch_bytes(plans[p]), grown, error));
    }
    return TD_OK;
}

size_t tdi_packed_bytes(const tdi_shard_state *shard)
{
    size_t bytes = 0;
    for (int mode = 0; mode < TDI_MODES; mode++)
        for (int i = 0; i < shard->plans[mode].count; i++)
            bytes += tdi_plan_packed_bytes(shard->plans[mode].at[i].plan);
    return bytes;
}

double tdi_runtime_bytes(const tdi_runtime *runtime)
{
    double bytes = 0;
    double arena = (double)runtime->model->architecture->trained * sizeof(float);
    for (int p = 0; runtime->shards && p < runtime->division.shards; p++) {
        const tdi_shard_state *shard = &runtime->shards[p];
        bytes += (double)tdi_packed_bytes(shard) + (double)shard->activation_bytes;
        bytes += shard->gradients ? arena : 0;
    }
    bytes += runtime->sums ? arena : 0;
    for (int w = 0; runtime->workers && w < runtime->division.workers; w++)
        bytes += (double)runtime->workers[w].scratch_bytes * runtime->division.threads;
    return bytes;
}

static void drop(tdi_device *device, char **buffer)
{
    device->release(device, *buffer);
    *buffer = NULL;
}

void tdi_runtime_give_back(tdi_runtime *runtime)
{
    const tdi_division *d = &runtime->division;
    for (int p = 0; p < d->shards; p++) {
        tdi_shard_state *shard = &runtime->shards[p];
        tdi_device *device = tdi_shard_device(runtime, p);
        drop(device, &shard->activations);
        device->release(device, shard->gradients);
        shard->gradients = runtime->gradients[p] = NULL;
        shard->activation_bytes = 0;
    }
    runtime->devices[0]->release(runtime->devices[0], runtime->sums);
    runtime->sums = NULL;
    for (int w = 0; w < d->workers; w++) {
        for (int thread = 0; thread < d->threads; thread++)
            drop(runtime->devices[0], &runtime->workers[w].scratch[thread]);
        runtime->workers[w].scratch_bytes = 0;
    }
    runtime->fresh_gradients = false;
    runtime->bindings++;
}
