/* synthetic_steps.c - steps of a model's clone on synthetic rows. */
#include "runtime/synthetic_steps.h"

#include <string.h>

#include "base/arena.h"
#include "base/machine.h"
#include "base/text.h"
#include "runtime/runtime_struct.h"

static int64_t elements_per_row(const tdi_synthetic_steps *synthetic, int slot)
{
    return tdi_input_bytes_per_row(&synthetic->clone, synthetic->mode, slot) / (int64_t)sizeof(float);
}

static td_status make_inputs(tdi_synthetic_steps *synthetic, tdi_error *error)
{
    for (int slot = 0; slot < tdi_input_slots(&synthetic->clone, synthetic->mode); slot++) {
        int64_t count = synthetic->rows * elements_per_row(synthetic, slot);
        size_t bytes = (size_t)count * sizeof(float);
        synthetic->inputs[slot] = tdi_buffer_create(bytes);
        if (!synthetic->inputs[slot])
            return tdi_memory_short(error, "a batch of synthetic rows", bytes, "try a smaller batch");
        for (int64_t i = 0; i < count; i++)
            synthetic->inputs[slot][i] = (float)(i % 17) * 0.0625f;
    }
    return TD_OK;
}

td_status tdi_synthetic_steps_init(const td_model *model, tdi_mode mode, int64_t rows, tdi_synthetic_steps *synthetic,
                                   tdi_error *error)
{
    *synthetic = (tdi_synthetic_steps){.mode = mode, .rows = rows};
    TDI_TRY(tdi_model_clone(model, tdi_trains(mode), &synthetic->clone, error));
    synthetic->clone.state->optimizer.learning_rate = 0;
    synthetic->clone.state->optimizer.schedule.kind = TD_SCHEDULE_NONE;
    return make_inputs(synthetic, error);
}

void tdi_synthetic_steps_release(tdi_synthetic_steps *synthetic)
{
    for (int slot = 0; slot < TDI_MAX_FED; slot++)
        tdi_buffer_free(synthetic->inputs[slot]);
    tdi_model_release_clone(&synthetic->clone);
}

double tdi_synthetic_steps_bytes(const tdi_synthetic_steps *synthetic)
{
    double elements = (double)synthetic->clone.architecture->total;
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        elements += tdi_model_slots(&synthetic->clone, s) ? (double)synthetic->clone.architecture->trained : 0;
    for (int slot = 0; slot < tdi_input_slots(&synthetic->clone, synthetic->mode); slot++)
        elements += (double)(synthetic->rows * elements_per_row(synthetic, slot));
    return elements * sizeof(float);
}

static const void *in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const tdi_synthetic_steps *synthetic = context;
    (void)step;
    return as == TD_FLOAT32 ? synthetic->inputs[slot] + first * elements_per_row(synthetic, slot) : NULL;
}

/* Class numbers and indices are spread over all that the model has. */
static void spread(int32_t *numbers, int64_t count, int64_t limit, int64_t from)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (int32_t)((uint64_t)(from + i) * 2654435761u % (1u << 31) % (uint64_t)limit);
}

static td_status rows_of(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                         tdi_error *error)
{
    const tdi_synthetic_steps *synthetic = context;
    int64_t each = elements_per_row(synthetic, slot);
    (void)error;
    if (as == TD_INT32)
        spread(to, count * each, tdi_input_limit(&synthetic->clone, slot), (step * synthetic->rows + first) * each);
    else
        memcpy(to, synthetic->inputs[slot] + first * each, (size_t)(count * each) * sizeof(float));
    return TD_OK;
}

td_status tdi_synthetic_steps_run(tdi_synthetic_steps *synthetic, tdi_runtime *runtime, int64_t steps, double *seconds,
                                  tdi_error *error)
{
    tdi_job job = {.mode = synthetic->mode,
                   .feed = {.context = synthetic, .rows = rows_of, .in_place = synthetic->copied ? NULL : in_place},
                   .steps = steps,
                   .batch = synthetic->rows,
                   .samples = steps * synthetic->rows};
    double begun = tdi_seconds();
    TDI_TRY(tdi_runtime_run(runtime, &job, error));
    *seconds = (tdi_seconds() - begun) / (double)steps;
    return TD_OK;
}
