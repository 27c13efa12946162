/* run.c - a job on all threads: feed, step, meet, again. */
#include <math.h>
#include <string.h>

#include "dist/inside.h"
#include "layers/training.h"

typedef struct run {
    tdi_runtime *runtime;
    const tdi_job *job;
    tdi_plan *full[TDI_MAX_PARTS], *last[TDI_MAX_PARTS];
    int64_t last_rows;
    int64_t done;      /* steps completed */
    atomic_bool ended; /* a feed failed, or a loss is not finite */
    bool not_finite;
    bool alone; /* one lane makes all: the others need not even meet it */
} run;

static int64_t rows_of(const run *r, int64_t i)
{
    return i + 1 == r->job->steps ? r->last_rows : r->job->batch;
}

/* ---- feeding ---- */

static td_status check_classes(const run *r, int slot, const int32_t *labels, int64_t count, int64_t step,
                               int64_t first, tdi_error *error)
{
    const td_tensor *output = r->runtime->model->outputs[slot - r->runtime->model->n_inputs];
    int64_t classes = output->shape.dim[output->shape.rank - 1];
    for (int64_t i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "step %lld, row %lld: class number %d, but the model has classes 0 to %lld",
                            (long long)step, (long long)(first + i), (int)labels[i], (long long)classes - 1);
    return TD_OK;
}

static td_dtype fed_type(const td_model *model, int slot)
{
    if (slot >= model->n_inputs)
        return tdi_loss_wants_classes(&model->training[slot - model->n_inputs].loss) ? TD_INT32 : TD_FLOAT32;
    td_dtype dtype = model->inputs[slot]->dtype;
    return dtype == TD_INT32 || dtype == TD_INT64 ? TD_INT32 : TD_FLOAT32;
}

static int64_t elements_per_row(const td_model *model, int slot)
{
    if (slot < model->n_inputs)
        return tdi_shape_elements(&model->inputs[slot]->shape);
    int output = slot - model->n_inputs;
    td_shape target = tdi_loss_target_shape(&model->training[output].loss, &model->outputs[output]->shape);
    return tdi_shape_elements(&target);
}

/* One lane's share of one part's rows of one input. */
static td_status feed_slot(const run *r, int part, int slot, int64_t step, int64_t rows, int lane, tdi_error *error)
{
    const tdi_runtime *runtime = r->runtime;
    const td_model *model = runtime->model;
    int64_t begin, end, first = tdi_part_first_row(rows, part, runtime->division.parts);
    tdi_range(TDI_ROWS, tdi_part_rows(runtime, part, rows), lane, r->alone ? 1 : runtime->division.lanes, &begin, &end);
    if (begin >= end)
        return TD_OK;
    td_dtype as = fed_type(model, slot);
    int64_t per_row = elements_per_row(model, slot);
    char *to = (char *)runtime->parts[part].inputs[slot] + begin * per_row * 4;
    TDI_TRY(r->job->feed.rows(r->job->feed.context, step, slot, first + begin, end - begin, to, as, error));
    if (slot < model->n_inputs || as != TD_INT32)
        return TD_OK;
    return check_classes(r, slot, (const int32_t *)(const void *)to, (end - begin) * per_row, step, first + begin,
                         error);
}

static td_status feed(run *r, int worker, int lane, int64_t step, int64_t rows, tdi_error *error)
{
    tdi_runtime *runtime = r->runtime;
    bool targets = r->job->mode != TDI_PREDICT;
    int slots = runtime->model->n_inputs + (targets ? runtime->model->n_outputs : 0);
    for (int p = tdi_worker_first_part(runtime, worker); p < tdi_worker_first_part(runtime, worker + 1); p++) {
        if (lane == 0)
            runtime->parts[p].part.first_row = tdi_part_first_row(rows, p, runtime->division.parts);
        for (int slot = 0; slot < slots; slot++)
            TDI_TRY(feed_slot(r, p, slot, step, rows, lane, error));
    }
    return TD_OK;
}

/* ---- one thread's run ---- */

static void set_control(run *r, int worker, int64_t i, int64_t rows)
{
    const td_model *model = r->runtime->model;
    r->runtime->workers[worker].control = (tdi_control){.learning_rate = model->optimizer.learning_rate,
                                                        .inverse_count = 1.0f / (float)rows,
                                                        .iteration = model->iteration + i,
                                                        .step = model->iteration + i,
                                                        .seed = r->job->seed};
}

static bool losses_finite(const run *r)
{
    const tdi_metric_slots *slots = &r->runtime->modes[r->job->mode].program.slots;
    for (int p = 0; p < r->runtime->division.parts; p++)
        for (int o = 0; o < r->runtime->model->n_outputs; o++)
            if (!isfinite(r->runtime->parts[p].metrics[r->job->mode][2 * slots->loss[o]]))
                return false;
    return true;
}

/* By thread 0, when all have finished a step and before any begins the next. */
static void account(run *r)
{
    r->done++;
    if (r->job->mode != TDI_TRAIN && r->job->mode != TDI_GRADIENTS)
        return;
    if (!losses_finite(r)) {
        r->not_finite = true;
        atomic_store(&r->ended, true);
    }
}

static void take_outputs(run *r, int worker, int64_t step, int64_t rows, tdi_plan *const *plans)
{
    const tdi_runtime *runtime = r->runtime;
    for (int p = tdi_worker_first_part(runtime, worker); p < tdi_worker_first_part(runtime, worker + 1); p++) {
        int64_t first = tdi_part_first_row(rows, p, runtime->division.parts), count = tdi_part_rows(runtime, p, rows);
        for (int o = 0; count && o < runtime->model->n_outputs; o++)
            r->job->take(r->job->take_context, step, first, count, o, tdi_plan_output(plans[p], o));
    }
}

static void meet(const run *r, tdi_communicator *communicator)
{
    if (!r->alone)
        communicator->end_step(communicator);
}

static bool begin_step(run *r, int worker, int lane, int64_t i, tdi_communicator *communicator)
{
    int64_t rows = rows_of(r, i);
    tdi_worker *self = &r->runtime->workers[worker];
    tdi_error error = {0};
    if (r->job->mode != TDI_APPLY && feed(r, worker, lane, r->job->first_step + i, rows, &error) != TD_OK) {
        if (!atomic_exchange(&r->ended, true))
            self->error = error;
    }
    if (lane == 0)
        set_control(r, worker, i, rows);
    meet(r, communicator);
    return !atomic_load(&r->ended);
}

static void run_steps(run *r, int index)
{
    tdi_runtime *runtime = r->runtime;
    tdi_mode_state *mode = &runtime->modes[r->job->mode];
    int worker = index / runtime->division.lanes, lane = index % runtime->division.lanes;
    int first = tdi_worker_first_part(runtime, worker), count = tdi_worker_first_part(runtime, worker + 1) - first;
    tdi_communicator *communicator = mode->communicators[worker];
    if (r->alone && index > 0)
        return;
    for (int64_t i = 0; i < r->job->steps && begin_step(r, worker, lane, i, communicator); i++) {
        tdi_plan *const *plans = i + 1 == r->job->steps ? r->last : r->full;
        tdi_plans_run(plans + first, count, lane, mode->steps + (uint32_t)i + 1, &runtime->workers[worker].lanes,
                      communicator);
        meet(r, communicator);
        if (index == 0)
            account(r);
        if (r->job->take && lane == 0)
            take_outputs(r, worker, r->job->first_step + i, rows_of(r, i), plans);
    }
}

static void run_thread(void *argument, int index)
{
    run *r = argument;
    tdi_device *device = r->runtime->devices[0];
    int state = device->enter_thread ? device->enter_thread(device) : 0;
    run_steps(r, index);
    if (device->leave_thread)
        device->leave_thread(device, state);
}

/* ---- the job ---- */

static td_status prepare(run *r, tdi_error *error)
{
    const tdi_job *job = r->job;
    r->last_rows = job->samples - (job->steps - 1) * job->batch;
    if (job->steps > 1)
        TDI_TRY(tdi_runtime_prepare(r->runtime, job->mode, job->batch, r->full, error));
    return tdi_runtime_prepare(r->runtime, job->mode, r->last_rows, r->last, error);
}

static bool runs_alone(const run *r)
{
    bool one = tdi_plan_sharing(r->last[0]) == 1 && (r->job->steps == 1 || tdi_plan_sharing(r->full[0]) == 1);
    return r->runtime->division.parts == 1 && r->runtime->modes[r->job->mode].program.collectives == 0 && one;
}

static td_status outcome(const run *r, tdi_error *error)
{
    for (int w = 0; w < r->runtime->division.workers; w++) {
        tdi_error *own = &r->runtime->workers[w].error;
        if (own->status != TD_OK) {
            td_status status = tdi_fail(error, own->status, "%s", own->message);
            *own = (tdi_error){0};
            return status;
        }
    }
    if (r->not_finite)
        return tdi_fail(
            error, TD_NOT_FINITE,
            "the loss is not a finite number at step %lld; look for NaN in the data, or lower the learning rate",
            (long long)(r->job->first_step + r->done - 1));
    return TD_OK;
}

td_status tdi_runtime_run(tdi_runtime *runtime, const tdi_job *job, tdi_error *error)
{
    run r = {.runtime = runtime, .job = job};
    TDI_TRY(prepare(&r, error));
    r.alone = runs_alone(&r);
    tdi_team_run(runtime->team, run_thread, &r);
    runtime->modes[job->mode].steps += (uint32_t)r.done;
    if (job->mode == TDI_TRAIN || job->mode == TDI_APPLY)
        runtime->model->iteration += r.done;
    return outcome(&r, error);
}

/* ---- results ---- */

void tdi_runtime_sums(const tdi_runtime *runtime, tdi_mode mode, double sums[][2])
{
    memset(sums, 0, TDI_MAX_METRIC_SLOTS * sizeof *sums);
    for (int p = 0; p < runtime->division.parts; p++)
        for (int s = 0; s < runtime->modes[mode].program.slots.count; s++) {
            sums[s][0] += runtime->parts[p].metrics[mode][2 * s];
            sums[s][1] += runtime->parts[p].metrics[mode][2 * s + 1];
        }
}

void tdi_runtime_reset_sums(tdi_runtime *runtime, tdi_mode mode)
{
    for (int p = 0; p < runtime->division.parts; p++)
        if (runtime->parts[p].metrics[mode])
            memset(runtime->parts[p].metrics[mode], 0, TDI_MAX_METRIC_SLOTS * 2 * sizeof(double));
}

const tdi_metric_slots *tdi_runtime_slots(const tdi_runtime *runtime, tdi_mode mode)
{
    return &runtime->modes[mode].program.slots;
}

float *tdi_runtime_gradient(const tdi_runtime *runtime, const tdi_variable *variable)
{
    return runtime->gradients[0] ? runtime->gradients[0] + variable->offset : NULL;
}
