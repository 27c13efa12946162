/* inputs.c - a step's rows: read where they lie, or brought together.
 *
 * Rows that lie in memory as the step wants them, float32, unscaled and in order, are read where they lie: kernels are
 * pointed at them as the step begins (tdi_plan_set_input). All others are brought together, each thread its share, and
 * converted on the way: bytes stay bytes in the source.
 *
 * They go into one of two buffers in turn. A thread that is done with a step feeds the next one while others still read
 * this one's rows, and all meet once a step rather than twice. So a step may be fed while the one before it runs, and
 * never earlier. */
#include "runtime/inputs.h"
#include "layers/losses.h"
#include "plan/threads/place.h"
#include "runtime/runtime_struct.h"

td_dtype tdi_input_type(const td_model *model, int slot)
{
    int output = slot - model->architecture->n_inputs;
    bool numbers = output < 0 ? model->architecture->indices[slot] != 0
                              : output < model->architecture->n_outputs &&
                                    tdi_loss_wants_classes(&model->compiled.outputs[output].loss);
    return numbers ? TD_INT32 : TD_FLOAT32;
}

static int64_t elements_per_row(const td_model *model, tdi_mode mode, int slot)
{
    int output = slot - model->architecture->n_inputs, column = output - model->architecture->n_outputs;
    if (output < 0)
        return tdi_shape_elements(&model->architecture->inputs[slot]->shape);
    if (column >= 0)
        return tdi_model_weight_elements(model, tdi_trains(mode), column);
    if (!tdi_model_has_target(model, output))
        return 0;
    td_shape target =
        tdi_loss_target_shape(&model->compiled.outputs[output].loss, &model->architecture->outputs[output]->shape);
    return tdi_shape_elements(&target);
}

int64_t tdi_input_bytes_per_row(const td_model *model, tdi_mode mode, int slot)
{
    return elements_per_row(model, mode, slot) * 4;
}

int tdi_input_slots(const td_model *model, tdi_mode mode)
{
    const tdi_architecture *architecture = model->architecture;
    if (mode == TDI_APPLY || mode == TDI_PREDICT)
        return mode == TDI_APPLY ? 0 : architecture->n_inputs;
    return architecture->n_inputs + architecture->n_outputs + model->weighting[tdi_trains(mode)].columns;
}

/* NULL: the rows are to be brought together. Class numbers and indices always are, as they are checked on the way. */
static const void *in_place(const tdi_runtime *runtime, const tdi_job *job, int64_t index, int slot, int64_t first)
{
    td_dtype as = tdi_input_type(runtime->model, slot);
    if (!job->feed.in_place || as != TD_FLOAT32)
        return NULL;
    return job->feed.in_place(job->feed.context, job->first_step + index, slot, first, as);
}

static td_status grow(tdi_runtime *runtime, int shard, tdi_batch_buffer *buffer, int64_t bytes, tdi_error *error)
{
    tdi_device *device = tdi_shard_device(runtime, shard);
    if (buffer->data && buffer->bytes >= bytes)
        return TD_OK;
    device->release(device, buffer->data);
    buffer->bytes = 0;
    buffer->data = tdi_device_memory(device, (size_t)bytes, error);
    if (!buffer->data)
        return TD_NO_MEMORY;
    buffer->bytes = bytes;
    return TD_OK;
}

/* Are the slot's rows brought together? An output without a loss or a metric has no targets and weights to feed. */
static bool is_fed(const tdi_runtime *runtime, const tdi_job *job, int slot)
{
    return tdi_input_bytes_per_row(runtime->model, job->mode, slot) && !in_place(runtime, job, 0, slot, 0);
}

td_status tdi_inputs_prepare(tdi_runtime *runtime, const tdi_job *job, tdi_job_step first, tdi_error *error)
{
    int slots = tdi_input_slots(runtime->model, job->mode), sets = job->steps > 1 ? 2 : 1;
    int shards = runtime->division.shards;
    int64_t most = (first.rows + shards - 1) / shards; /* a shard may have more rows of a shorter batch */
    for (int p = runtime->division.own_first; p < tdi_own_end(&runtime->division); p++)
        for (int slot = 0; slot < slots; slot++)
            for (int set = 0; set < sets && is_fed(runtime, job, slot); set++)
                TDI_TRY(grow(runtime, p, &runtime->shards[p].inputs[set][slot],
                             most * tdi_input_bytes_per_row(runtime->model, job->mode, slot), error));
    return TD_OK;
}

int64_t tdi_input_limit(const td_model *model, int slot)
{
    if (slot < model->architecture->n_inputs)
        return model->architecture->indices[slot];
    const td_shape *output = &model->architecture->outputs[slot - model->architecture->n_inputs]->shape;
    return output->dim[output->rank - 1];
}

static tdi_ignore_attrs ignored_of(const td_model *model, int slot)
{
    tdi_ignore_attrs none = {0};
    return slot < model->architecture->n_inputs
               ? none
               : model->compiled.outputs[slot - model->architecture->n_inputs].loss.ignore;
}

/* Says what may be wrong with the class number, which the model does not have. */
static void advise_class(const tdi_feed *feed, int slot, int64_t limit, char *advice, size_t size)
{
    int32_t least, most;
    bool known = feed->class_range && feed->class_range(feed->context, slot, &least, &most);
    if (known && least >= 1 && most == limit)
        snprintf(advice, size,
                 "the labels, %d to %d, count from 1, and classes from 0: subtract 1 from them (of a CSV, name the "
                 "column y=NAME:codes in features)",
                 (int)least, (int)most);
    else if (known && least >= 0)
        snprintf(advice, size,
                 "the labels go from %d to %d: number them from 0 to %lld, or name one that stands for none of the "
                 "classes as ignore_class",
                 (int)least, (int)most, (long long)limit - 1);
    else
        snprintf(advice, size, "if it stands for none of them, name it as ignore_class");
}

/* Names the sample too: the row of a batch that was shuffled says nothing of where it is in the data. */
static td_status out_of_range(const td_model *model, const tdi_feed *feed, int slot, int number, int64_t step,
                              int64_t row, tdi_error *error)
{
    char sample[320] = "", advice[256];
    const char *name;
    int64_t most = tdi_input_limit(model, slot) - 1;
    if (feed->sample) {
        long long sample_number = (long long)feed->sample(feed->context, step, row, &name);
        snprintf(sample, sizeof sample, " (sample %lld of %s)", sample_number, name);
    }
    if (slot >= model->architecture->n_inputs) {
        advise_class(feed, slot, most + 1, advice, sizeof advice);
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "step %lld, row %lld%s: class number %d, but the model has classes 0 to %lld; %s",
                        (long long)step, (long long)row, sample, number, (long long)most, advice);
    }
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "step %lld, row %lld%s: index %d for input \"%s\", but the model's embedding has rows 0 to %lld",
                    (long long)step, (long long)row, sample, number,
                    model->architecture->inputs[slot]->site->layer->name, (long long)most);
}

static td_status check_range(const td_model *model, const tdi_feed *feed, int slot, const int32_t *numbers,
                             int64_t rows, int64_t step, int64_t first, tdi_error *error)
{
    int64_t limit = tdi_input_limit(model, slot), per_row = elements_per_row(model, TDI_PREDICT, slot);
    tdi_ignore_attrs ignore = ignored_of(model, slot);
    for (int64_t i = 0; i < rows * per_row; i++)
        if ((numbers[i] < 0 || numbers[i] >= limit) && !tdi_ignores(&ignore, numbers[i]))
            return out_of_range(model, feed, slot, numbers[i], step, first + i / per_row, error);
    return TD_OK;
}

/* One thread's share of one shard's rows of one input. */
static td_status feed_slot(const tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int shard, int slot,
                           int thread, int threads, tdi_error *error)
{
    int64_t begin, end, first = tdi_shard_first_row(step.rows, shard, runtime->division.shards);
    tdi_range(TDI_ROWS, tdi_shard_rows(runtime, shard, step.rows), thread, threads, &begin, &end);
    int64_t per_row = elements_per_row(runtime->model, job->mode, slot), number = job->first_step + step.index;
    if (begin >= end || !per_row || in_place(runtime, job, step.index, slot, first))
        return TD_OK;
    td_dtype as = tdi_input_type(runtime->model, slot);
    char *to = (char *)runtime->shards[shard].inputs[step.index & 1][slot].data + begin * per_row * 4;
    TDI_TRY(job->feed.rows(job->feed.context, number, slot, first + begin, end - begin, to, as, error));
    if (as != TD_INT32)
        return TD_OK;
    return check_range(runtime->model, &job->feed, slot, (const int32_t *)(const void *)to, end - begin, number,
                       first + begin, error);
}

td_status tdi_inputs_feed(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int thread,
                          int threads, tdi_error *error)
{
    int slots = tdi_input_slots(runtime->model, job->mode), last = tdi_worker_first_shard(runtime, worker + 1);
    if (job->feed.await)
        TDI_TRY(job->feed.await(job->feed.context, job->first_step + step.index, error));
    for (int p = tdi_worker_first_shard(runtime, worker); p < last; p++)
        for (int slot = 0; slot < slots; slot++)
            TDI_TRY(feed_slot(runtime, job, step, p, slot, thread, threads, error));
    return TD_OK;
}

void tdi_inputs_set(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int thread,
                    tdi_plan *const *plans)
{
    int slots = tdi_input_slots(runtime->model, job->mode), last = tdi_worker_first_shard(runtime, worker + 1);
    for (int p = tdi_worker_first_shard(runtime, worker); p < last; p++) {
        int64_t first = tdi_shard_first_row(step.rows, p, runtime->division.shards);
        runtime->shards[p].shard[thread].first_row = first;
        for (int slot = 0; slot < slots; slot++) {
            if (!tdi_input_bytes_per_row(runtime->model, job->mode, slot))
                continue;
            const void *data = in_place(runtime, job, step.index, slot, first);
            tdi_plan_set_input(plans[p], thread, slot,
                               data ? data : runtime->shards[p].inputs[step.index & 1][slot].data);
        }
    }
}
