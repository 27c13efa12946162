/* runtime.c - making a runtime: devices, threads, parts; plans on demand. */
#include "runtime/runtime.h"

#include <string.h>

#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "tune/tuning_cache_file.h"

/* ---- life ---- */

tdi_device *tdi_part_device(const tdi_runtime *runtime, int part)
{
    return runtime->devices[part * runtime->n_devices / runtime->division.parts];
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

static td_status make_part(tdi_runtime *runtime, int index, tdi_error *error)
{
    const tdi_division *d = &runtime->division;
    tdi_part_state *state = &runtime->parts[index];
    int per_group = d->parts > d->groups ? d->parts / d->groups : 1, group = index / per_group;
    state->part = calloc((size_t)d->lanes, sizeof *state->part);
    for (int lane = 0; state->part && lane < d->lanes; lane++)
        state->part[lane] = (tdi_part){.index = index,
                                       .parts = d->parts,
                                       .group_first = group * per_group,
                                       .group_count = per_group,
                                       .gradients = runtime->gradients};
    return state->part ? TD_OK : tdi_no_memory(error);
}

static td_status make_worker(tdi_runtime *runtime, int index, tdi_error *error)
{
    tdi_worker *worker = &runtime->workers[index];
    worker->lanes.count = (uint32_t)runtime->division.lanes;
    worker->lanes.spin = tdi_team_spins(runtime->team);
    worker->scratch = calloc((size_t)runtime->division.lanes, sizeof *worker->scratch);
    worker->control = calloc((size_t)runtime->division.lanes, sizeof *worker->control);
    return worker->scratch && worker->control ? TD_OK : tdi_no_memory(error);
}

/* Threads, parts and workers, as the division says. */
static td_status furnish(tdi_runtime *runtime, tdi_error *error)
{
    td_model *model = runtime->model;
    const tdi_division *d = &runtime->division;
    TDI_TRY(tdi_team_create(d->workers * d->lanes, &runtime->team, error));
    /* Shards promise the same bits on every number of replicas: the clock is not asked. */
    bool rules = model->compiled.shards || model->compiled.by_rules;
    runtime->chooser = (tdi_chooser){.choices = rules ? NULL : tdi_choices_of(model->context),
                                     .context = model->context,
                                     .team = runtime->team,
                                     .workers = d->workers};
    runtime->parts = calloc((size_t)d->parts, sizeof *runtime->parts);
    runtime->gradients = calloc((size_t)d->parts, sizeof *runtime->gradients);
    runtime->workers = tdi_buffer_create((size_t)d->workers * sizeof *runtime->workers);
    if (!runtime->parts || !runtime->gradients || !runtime->workers)
        return tdi_no_memory(error);
    for (int p = 0; p < d->parts; p++)
        TDI_TRY(make_part(runtime, p, error));
    for (int w = 0; w < d->workers; w++)
        TDI_TRY(make_worker(runtime, w, error));
    return TD_OK;
}

static const char float32_is_faster[] = "a step takes no less time in bfloat16 here";

static void say_float32(td_model *model, const char *why)
{
    if (!model->compiled.float32_said)
        tdi_log(model->context, TD_LOG_INFO, "computing in float32 instead of bfloat16: %s", why);
    model->compiled.float32_said = true;
}

static void go(tdi_runtime *runtime, const tdi_way *way)
{
    runtime->division = way->division;
    runtime->float32 = way->float32;
    runtime->sharing = way->sharing;
    runtime->settled = true;
}

static td_status make_runtime(tdi_runtime *runtime, const tdi_way *way, tdi_error *error)
{
    td_model *model = runtime->model;
    const char *devices = model->compiled.devices ? model->compiled.devices : "cpu";
    runtime->memory = tdi_memory_allowed();
    TDI_TRY(tdi_open_devices(devices, runtime->devices, &runtime->n_devices, error));
    TDI_TRY(tdi_divide(model, runtime->devices, runtime->n_devices, &runtime->division, error));
    runtime->by_rules = runtime->division;
    if (way) {
        go(runtime, way);
    } else if (runtime->devices[0]->no_bfloat16 && tdi_model_wishes_bfloat16(model)) {
        say_float32(model, runtime->devices[0]->no_bfloat16);
    }
    return furnish(runtime, error);
}

static td_status create(td_model *model, const tdi_way *way, tdi_runtime **runtime, tdi_error *error)
{
    *runtime = calloc(1, sizeof **runtime);
    if (!*runtime)
        return tdi_no_memory(error);
    (*runtime)->model = model;
    (*runtime)->state = model->state;
    (*runtime)->bindings = 1;
    td_status status = make_runtime(*runtime, way, error);
    if (status != TD_OK) {
        tdi_runtime_free(*runtime);
        *runtime = NULL;
    }
    return status;
}

void tdi_rehearse(tdi_runtime *runtime, tdi_mode mode, bool in_turn)
{
    const double never = 1e9, nothing = 1e-9; /* seconds: no other way is tried, no stretch ends before its job */
    runtime->modes[mode].pace = (tdi_pace){.in_turn = in_turn, .wait = never, .last = nothing};
}

td_status tdi_runtime_create(td_model *model, const tdi_way *way, tdi_runtime **runtime, tdi_error *error)
{
    TDI_TRY(create(model, way, runtime, error));
    (*runtime)->rehearses = way != NULL;
    for (int m = 0; way && m < TDI_MODES; m++)
        tdi_rehearse(*runtime, (tdi_mode)m, false);
    return TD_OK;
}

td_status tdi_runtime_of(td_model *model, tdi_runtime **runtime, tdi_error *error)
{
    if (!model->runtime) {
        TDI_TRY(create(model, NULL, &model->runtime, error));
        model->free_runtime = tdi_runtime_free;
    }
    *runtime = model->runtime;
    return TD_OK;
}

/* Is it not divided by the rules because steps of `rows` rows have too few? */
static bool is_for_few(const tdi_runtime *runtime, int64_t rows)
{
    return runtime->division.parts != runtime->by_rules.parts && tdi_has_too_few(&runtime->by_rules, rows);
}

/* Divided for few rows, is it to make many? */
static bool is_outgrown(const tdi_runtime *runtime, int64_t rows)
{
    return runtime->for_few && !tdi_has_too_few(&runtime->by_rules, rows);
}

void tdi_runtime_outgrow(td_model *model, int64_t rows)
{
    if (model->runtime && is_outgrown(model->runtime, rows))
        tdi_model_drop_runtime(model);
}

bool tdi_goes_apart(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_way *way)
{
    bool few = tdi_has_too_few(&runtime->division, rows), many = is_outgrown(runtime, rows);
    *way = (tdi_way){.division = few ? tdi_divide_few(&runtime->division, 1) : runtime->by_rules,
                     .float32 = runtime->float32};
    return (mode == TDI_PREDICT || mode == TDI_EVALUATE) && (few || many);
}

static td_status runtime_apart(td_model *model, const tdi_way *way, tdi_runtime **runtime, tdi_error *error)
{
    tdi_runtime **apart = &model->runtimes_apart[way->division.parts > 1];
    if (*apart && (*apart)->float32 != way->float32) {
        tdi_runtime_free(*apart);
        *apart = NULL;
    }
    if (!*apart)
        TDI_TRY(create(model, way, apart, error));
    *runtime = *apart;
    return TD_OK;
}

/* Whether to compute in bfloat16 is asked of the model's own, once. */
static bool lacks_precision(const tdi_runtime *runtime)
{
    return tdi_computes_bfloat16(runtime) && !runtime->settled && !runtime->settled_for_now;
}

td_status tdi_runtime_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error)
{
    TDI_TRY(tdi_runtime_of(model, runtime, error));
    tdi_way way;
    bool own = !tdi_goes_apart(*runtime, mode, rows, &way) || lacks_precision(*runtime);
    return own ? TD_OK : runtime_apart(model, &way, runtime, error);
}

static void free_part(tdi_runtime *runtime, int index)
{
    tdi_part_state *state = &runtime->parts[index];
    tdi_device *device = tdi_part_device(runtime, index);
    for (int mode = 0; mode < TDI_MODES; mode++) {
        for (int i = 0; i < state->plans[mode].count; i++)
            tdi_plan_free(state->plans[mode].at[i].plan);
        tdi_vec_free(&state->plans[mode]);
        device->release(device, state->metrics[mode]);
    }
    for (int slot = 0; slot < 2 * TDI_MAX_IO; slot++) {
        device->release(device, state->inputs[0][slot].data);
        device->release(device, state->inputs[1][slot].data);
    }
    free(state->part);
    device->release(device, state->activations);
    device->release(device, state->gradients);
}

static void free_mode(tdi_runtime *runtime, tdi_mode_state *mode)
{
    if (!mode->made)
        return;
    for (int w = 0; mode->communicators && w < runtime->division.workers; w++)
        if (mode->communicators[w])
            mode->communicators[w]->release(mode->communicators[w]);
    free(mode->communicators);
    free(mode->sums);
    runtime->devices[0]->release(runtime->devices[0], mode->exchange);
    tdi_program_release(&mode->program);
    *mode = (tdi_mode_state){0};
}

static void free_worker(tdi_runtime *runtime, tdi_worker *worker)
{
    for (int lane = 0; worker->scratch && lane < runtime->division.lanes; lane++)
        runtime->devices[0]->release(runtime->devices[0], worker->scratch[lane]);
    free(worker->scratch);
    free(worker->control);
}

static void forget(tdi_runtime *runtime)
{
    runtime->traced = (tdi_traced){0};
    runtime->team = NULL;
    runtime->parts = NULL;
    runtime->gradients = NULL;
    runtime->workers = NULL;
    runtime->fresh_gradients = false;
    memset(runtime->modes, 0, sizeof runtime->modes);
}

/* All that `furnish` made, and what was made since: devices stay. */
static void clear(tdi_runtime *runtime)
{
    tdi_team_free(runtime->team);
    for (int p = 0; runtime->parts && p < runtime->division.parts; p++)
        free_part(runtime, p);
    for (int mode = 0; mode < TDI_MODES; mode++)
        free_mode(runtime, &runtime->modes[mode]);
    for (int w = 0; runtime->workers && w < runtime->division.workers; w++)
        free_worker(runtime, &runtime->workers[w]);
    free(runtime->parts);
    free(runtime->traced.tracks);
    free(runtime->gradients);
    tdi_buffer_free(runtime->workers);
    forget(runtime);
}

void tdi_runtime_free(tdi_runtime *runtime)
{
    if (!runtime)
        return;
    clear(runtime);
    tdi_close_devices(runtime->devices, runtime->n_devices);
    free(runtime);
}

/* ---- modes ---- */

static td_status connect_workers(tdi_runtime *runtime, tdi_mode_state *state, tdi_error *error)
{
    const tdi_division *d = &runtime->division;
    state->communicators = calloc((size_t)d->workers, sizeof *state->communicators);
    state->sums = calloc(1, tdi_metric_bytes(&state->program.slots) + 1);
    if (!state->communicators || !state->sums)
        return tdi_no_memory(error);
    return tdi_local_group_create(d->workers, d->workers * d->lanes, tdi_team_spins(runtime->team),
                                  state->program.collectives, state->communicators, error);
}

static td_status make_mode(tdi_runtime *runtime, tdi_mode mode, tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    const tdi_division *d = &runtime->division;
    if (state->made)
        return TD_OK;
    tdi_target target = {
        .parts = d->parts, .groups = d->groups, .device = runtime->devices[0], .float32 = runtime->float32};
    TDI_TRY(tdi_program_create(runtime->model, mode, &target, &state->program, error));
    state->made = true;
    tdi_control_reckon(&state->control, state->program.graph);
    if (mode == TDI_TRAIN && d->groups > 1 && !runtime->settled && tdi_has_statistics_per_replica(runtime->model))
        tdi_log(runtime->model->context, TD_LOG_INFO,
                "batch normalization takes its statistics from each of the %d slices of a batch, not from the whole as "
                "on one device; its layers are not `synchronized`",
                d->groups);
    td_status status = connect_workers(runtime, state, error);
    if (status != TD_OK)
        free_mode(runtime, state);
    return status;
}

/* ---- memory of a part ---- */

/* Grows a buffer, its content lost; *grown tells that addresses changed. */
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

static td_status need_metrics(tdi_runtime *runtime, int part, tdi_mode mode, tdi_error *error)
{
    double **metrics = &runtime->parts[part].metrics[mode];
    size_t bytes = tdi_metric_bytes(&runtime->modes[mode].program.slots);
    if (!*metrics)
        *metrics = tdi_device_memory(tdi_part_device(runtime, part), bytes, error);
    return *metrics ? TD_OK : TD_NO_MEMORY;
}

td_status tdi_need_sums(tdi_runtime *runtime, tdi_mode mode, tdi_error *error)
{
    TDI_TRY(make_mode(runtime, mode, error));
    for (int p = 0; p < runtime->division.parts; p++)
        TDI_TRY(need_metrics(runtime, p, mode, error));
    return TD_OK;
}

static td_status grow_part(tdi_runtime *runtime, int index, tdi_mode mode, const tdi_plan *plan, bool *grown,
                           tdi_error *error)
{
    tdi_part_state *state = &runtime->parts[index];
    tdi_device *device = tdi_part_device(runtime, index);
    TDI_TRY(grow(device, &state->activations, &state->activation_bytes, tdi_plan_activation_bytes(plan), grown, error));
    if (tdi_trains(mode) && !state->gradients) {
        state->gradients =
            tdi_device_memory(device, (size_t)runtime->model->architecture->trained * sizeof(float), error);
        runtime->gradients[index] = state->gradients;
        *grown = true;
        if (!state->gradients)
            return TD_NO_MEMORY;
    }
    return need_metrics(runtime, index, mode, error);
}

static td_status grow_scratch(tdi_runtime *runtime, int worker_index, size_t need, bool *grown, tdi_error *error)
{
    tdi_worker *worker = &runtime->workers[worker_index];
    need = need ? need : 1; /* so that 0 bytes are those of lanes without */
    if (worker->scratch_bytes >= need)
        return TD_OK;
    worker->scratch_bytes = 0;
    for (int lane = 0; lane < runtime->division.lanes; lane++) {
        size_t none = 0;
        TDI_TRY(grow(runtime->devices[0], &worker->scratch[lane], &none, need, grown, error));
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

static size_t packed_bytes(const tdi_part_state *part)
{
    size_t bytes = 0;
    for (int mode = 0; mode < TDI_MODES; mode++)
        for (int i = 0; i < part->plans[mode].count; i++)
            bytes += tdi_plan_packed_bytes(part->plans[mode].at[i].plan);
    return bytes;
}

/* Twice the weights, by all plans, each part as much: batches of many sizes would otherwise keep copies without end. */
static size_t most_packed(const tdi_runtime *runtime, int part)
{
    size_t weights = (size_t)runtime->model->architecture->total * sizeof(float);
    size_t most = 2 * weights / (size_t)runtime->division.parts, held = packed_bytes(&runtime->parts[part]);
    return most > held ? most - held : 0;
}

double tdi_runtime_bytes(const tdi_runtime *runtime)
{
    double bytes = 0;
    for (int p = 0; runtime->parts && p < runtime->division.parts; p++) {
        const tdi_part_state *part = &runtime->parts[p];
        bytes += (double)packed_bytes(part) + (double)part->activation_bytes;
        bytes += part->gradients ? (double)runtime->model->architecture->trained * sizeof(float) : 0;
    }
    for (int w = 0; runtime->workers && w < runtime->division.workers; w++)
        bytes += (double)runtime->workers[w].scratch_bytes * runtime->division.lanes;
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
    for (int p = 0; p < d->parts; p++) {
        tdi_part_state *part = &runtime->parts[p];
        tdi_device *device = tdi_part_device(runtime, p);
        drop(device, &part->activations);
        device->release(device, part->gradients);
        part->gradients = runtime->gradients[p] = NULL;
        part->activation_bytes = 0;
    }
    for (int w = 0; w < d->workers; w++) {
        for (int lane = 0; lane < d->lanes; lane++)
            drop(runtime->devices[0], &runtime->workers[w].scratch[lane]);
        runtime->workers[w].scratch_bytes = 0;
    }
    runtime->fresh_gradients = false;
    runtime->bindings++;
}

/* ---- plans ---- */

static int worker_of(const tdi_runtime *runtime, int part)
{
    int worker = 0;
    while (worker + 1 < runtime->division.workers && tdi_worker_first_part(runtime, worker + 1) <= part)
        worker++;
    return worker;
}

static void bind(tdi_runtime *runtime, int index, tdi_mode mode, tdi_plan *plan)
{
    tdi_part_state *state = &runtime->parts[index];
    tdi_worker *worker = &runtime->workers[worker_of(runtime, index)];
    tdi_plan_bind(plan, &(tdi_bindings){.activations = state->activations,
                                        .scratch = worker->scratch,
                                        .values = runtime->state->host_values,
                                        .slots = runtime->state->host_slots,
                                        .gradients = state->gradients,
                                        .reduced = runtime->gradients[0],
                                        .exchange = runtime->modes[mode].exchange,
                                        .metrics = state->metrics[mode],
                                        .control = worker->control,
                                        .failed = runtime->lacked,
                                        .part = state->part});
}

void tdi_runtime_bind(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans)
{
    for (int p = 0; p < runtime->division.parts; p++)
        for (int i = 0; i < runtime->parts[p].plans[mode].count; i++) {
            tdi_kept_plan *kept = &runtime->parts[p].plans[mode].at[i];
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

static void drop_oldest(tdi_part_state *state, tdi_mode mode)
{
    int oldest = 0;
    for (int i = 1; i < state->plans[mode].count; i++)
        if (state->plans[mode].at[i].used < state->plans[mode].at[oldest].used)
            oldest = i;
    tdi_plan_free(state->plans[mode].at[oldest].plan);
    state->plans[mode].at[oldest] = state->plans[mode].at[--state->plans[mode].count];
}

/* Makes the plan anew with fewer lanes where that is faster. */
static td_status settle_sharing(tdi_runtime *runtime, tdi_mode mode, tdi_plan_spec *spec, tdi_plan **plan,
                                const tdi_choice **choice, tdi_error *error)
{
    spec->sharing = runtime->division.lanes;
    TDI_TRY(tdi_choose_sharing(runtime, mode, spec->rows, *plan, &spec->sharing, choice, error));
    if (spec->sharing == spec->lanes)
        return TD_OK;
    tdi_plan_free(*plan);
    return tdi_plan_create(spec, plan, error);
}

static td_status make_plan(tdi_runtime *runtime, int index, tdi_mode mode, int64_t rows, tdi_plan **plan,
                           tdi_error *error)
{
    tdi_mode_state *state = &runtime->modes[mode];
    tdi_part_state *part = &runtime->parts[index];
    tdi_plan_spec spec = {.graph = state->program.graph,
                          .schedule = &state->program.schedule,
                          .device = tdi_part_device(runtime, index),
                          .rows = rows,
                          .part = index,
                          .replica = worker_of(runtime, index),
                          .replicas = runtime->division.workers,
                          .lanes = runtime->division.lanes,
                          .sharing = runtime->sharing,
                          .most_packed = most_packed(runtime, index),
                          .chooser = runtime->chooser.choices ? &runtime->chooser : NULL,
                          .spin = tdi_team_spins(runtime->team),
                          .explain = true};
    const tdi_choice *sharing = NULL;
    TDI_TRY(tdi_plan_create(&spec, plan, error));
    bool fixed = mode == TDI_APPLY || state->program.collectives || runtime->sharing;
    td_status status = fixed ? TD_OK : settle_sharing(runtime, mode, &spec, plan, &sharing, error);
    if (status != TD_OK) {
        tdi_plan_free(*plan);
        return status;
    }
    if (part->plans[mode].count == PLANS_KEPT)
        drop_oldest(part, mode);
    if (tdi_push(&part->plans[mode], ((tdi_kept_plan){.rows = rows, .plan = *plan, .sharing = sharing})))
        return TD_OK;
    tdi_plan_free(*plan);
    return tdi_no_memory(error);
}

static tdi_kept_plan *kept_plan(tdi_part_state *state, tdi_mode mode, int64_t rows)
{
    for (int i = 0; i < state->plans[mode].count; i++)
        if (state->plans[mode].at[i].rows == rows)
            return &state->plans[mode].at[i];
    return NULL;
}

static td_status plan_of(tdi_runtime *runtime, int index, tdi_mode mode, int64_t rows, tdi_plan **plan,
                         tdi_error *error)
{
    tdi_part_state *part = &runtime->parts[index];
    tdi_kept_plan *kept = kept_plan(part, mode, rows);
    if (!kept) {
        TDI_TRY(make_plan(runtime, index, mode, rows, plan, error));
        kept = &part->plans[mode].at[part->plans[mode].count - 1];
    }
    kept->used = ++runtime->clock;
    *plan = kept->plan;
    return TD_OK;
}

static td_status plans_of(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    if (mode != TDI_APPLY)
        TDI_TRY(tdi_model_check_rows(runtime->model, rows, error));
    TDI_TRY(make_mode(runtime, mode, error));
    for (int p = 0; p < runtime->division.parts; p++) {
        int64_t own = mode == TDI_APPLY ? 1 : tdi_part_rows(runtime, p, rows);
        TDI_TRY(plan_of(runtime, p, mode, own, &plans[p], error));
    }
    return TD_OK;
}

/* Makes all anew for another way; sums that a backup has brought before the first step stay. When it fails all is as it
 * was, and is asked again. */
static td_status change_way(tdi_runtime *runtime, tdi_mode mode, const tdi_way *way, tdi_error *error)
{
    int parts = runtime->division.parts, count = tdi_runtime_sums(runtime, mode);
    double *sums = calloc((size_t)parts * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        return tdi_no_memory(error);
    tdi_runtime_get_sums(runtime, mode, sums);
    tdi_runtime before = *runtime;
    forget(runtime);
    runtime->division = way->division;
    runtime->float32 = way->float32;
    td_status status = furnish(runtime, error);
    if (status == TD_OK && count)
        status = tdi_runtime_put_sums(runtime, mode, parts, count, sums, error);
    free(sums);
    if (status == TD_OK) {
        clear(&before);
        return TD_OK;
    }
    clear(runtime);
    *runtime = before;
    runtime->settled = false;
    return status;
}

td_status tdi_runtime_resume(tdi_runtime *runtime, int parts, bool float32, int64_t rows, tdi_error *error)
{
    tdi_division division;
    if (!tdi_divide_again(&runtime->division, parts, rows, &division))
        return TD_OK;
    runtime->settled = true;
    if (float32)
        say_float32(runtime->model, float32_is_faster);
    if (parts == runtime->division.parts && float32 == runtime->float32)
        return TD_OK;
    TDI_TRY(change_way(runtime, TDI_TRAIN, &(tdi_way){.division = division, .float32 = float32}, error));
    runtime->for_few = is_for_few(runtime, rows);
    return TD_OK;
}

/* The first steps that train (of a model that cannot be trained: that predict) say which way all go; until then a model
 * to be trained goes by the rules, and where it would compute in bfloat16 the way that its predictions say for now. */
static bool is_asked(tdi_runtime *runtime, tdi_mode mode)
{
    bool for_now = runtime->model->compiled.is_set && mode != TDI_TRAIN && mode != TDI_GRADIENTS;
    if (runtime->settled)
        return false;
    if (for_now && (runtime->settled_for_now || mode == TDI_APPLY || !tdi_computes_bfloat16(runtime)))
        return false;
    runtime->settled = !for_now;
    return true;
}

/* What predictions alone have settled: a run that trains makes the same choices with them and without. */
static td_status unsettle(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    bool changed = runtime->settled_for_now && runtime->way && runtime->way->chosen > 0;
    if (changed)
        TDI_TRY(change_way(runtime, mode, &(tdi_way){.division = runtime->by_rules}, error));
    runtime->way = NULL;
    runtime->for_few = false;
    runtime->settled_for_now = !runtime->settled;
    return changed ? plans_of(runtime, mode, rows, plans, error) : TD_OK;
}

static td_status settle(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    bool other;
    tdi_way way;
    if (!is_asked(runtime, mode))
        return TD_OK;
    TDI_TRY(unsettle(runtime, mode, rows, plans, error));
    const tdi_plan *largest = plans[runtime->division.parts - 1];
    TDI_TRY(tdi_choose_other(runtime, mode, rows, largest, &way, &other, error));
    if (!other)
        return TD_OK;
    td_status status = change_way(runtime, mode, &way, error);
    if (status != TD_OK) {
        runtime->settled_for_now = false;
        runtime->way = NULL;
        return status;
    }
    runtime->for_few = is_for_few(runtime, rows);
    if (way.float32)
        say_float32(runtime->model, float32_is_faster);
    return plans_of(runtime, mode, rows, plans, error);
}

static td_status grow_all(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans, bool *grown, tdi_error *error)
{
    for (int p = 0; p < runtime->division.parts; p++) {
        TDI_TRY(grow_exchange(runtime, mode, plans[p], error));
        TDI_TRY(grow_part(runtime, p, mode, plans[p], grown, error));
        TDI_TRY(grow_scratch(runtime, worker_of(runtime, p), tdi_plan_scratch_bytes(plans[p]), grown, error));
    }
    return TD_OK;
}

/* What grew has another address, though there may have been no room for the rest. */
static td_status make_room(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans, tdi_error *error)
{
    bool grown = false;
    td_status status = grow_all(runtime, mode, plans, &grown, error);
    runtime->bindings += grown;
    return status;
}

td_status tdi_runtime_prepare(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    const tdi_choices *choices = runtime->chooser.choices;
    double measured = choices ? choices->seconds : 0;
    TDI_TRY(plans_of(runtime, mode, rows, plans, error));
    TDI_TRY(settle(runtime, mode, rows, plans, error));
    if (choices && choices->seconds > measured)
        tdi_buffers_trim();
    TDI_TRY(make_room(runtime, mode, plans, error));
    tdi_choices_remember(runtime->model->context);
    return TD_OK;
}
