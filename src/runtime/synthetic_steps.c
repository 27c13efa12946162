/* synthetic_steps.c - a model's shadow at work, on rows made up. */
#include "runtime/synthetic_steps.h"

#include <string.h>

#include "base/arena.h"
#include "base/machine.h"
#include "base/text.h"
#include "runtime/runtime_struct.h"

static int64_t elements_per_row(const tdi_shadow *shadow, int slot)
{
    return tdi_input_bytes_per_row(&shadow->model, slot) / (int64_t)sizeof(float);
}

static td_status make_inputs(tdi_shadow *shadow, tdi_error *error)
{
    for (int slot = 0; slot < tdi_input_slots(&shadow->model, shadow->mode); slot++) {
        int64_t count = shadow->rows * elements_per_row(shadow, slot);
        size_t bytes = (size_t)count * sizeof(float);
        shadow->inputs[slot] = tdi_buffer_create(bytes);
        if (!shadow->inputs[slot])
            return tdi_memory_short(error, "a batch of synthetic rows", bytes, "try a smaller batch");
        for (int64_t i = 0; i < count; i++)
            shadow->inputs[slot][i] = (float)(i % 17) * 0.0625f;
    }
    return TD_OK;
}

td_status tdi_shadow_create(const td_model *model, tdi_mode mode, int64_t rows, tdi_shadow *shadow, tdi_error *error)
{
    *shadow = (tdi_shadow){.mode = mode, .rows = rows};
    TDI_TRY(tdi_model_shadow(model, tdi_trains(mode), &shadow->model, error));
    shadow->model.state->optimizer.learning_rate = 0;
    shadow->model.state->optimizer.schedule.kind = TD_SCHEDULE_NONE;
    return make_inputs(shadow, error);
}

void tdi_shadow_release(tdi_shadow *shadow)
{
    for (int slot = 0; slot < 2 * TDI_MAX_IO; slot++)
        tdi_buffer_free(shadow->inputs[slot]);
    tdi_model_release_shadow(&shadow->model);
}

double tdi_shadow_bytes(const tdi_shadow *shadow)
{
    double elements = (double)shadow->model.architecture->total;
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        elements += tdi_model_slots(&shadow->model, s) ? (double)shadow->model.architecture->trained : 0;
    for (int slot = 0; slot < tdi_input_slots(&shadow->model, shadow->mode); slot++)
        elements += (double)(shadow->rows * elements_per_row(shadow, slot));
    return elements * sizeof(float);
}

static const void *in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const tdi_shadow *shadow = context;
    (void)step;
    return as == TD_FLOAT32 ? shadow->inputs[slot] + first * elements_per_row(shadow, slot) : NULL;
}

/* Whole numbers are strewn over the classes, or the indices, that the model has. */
static void strew(int32_t *numbers, int64_t count, int64_t limit, int64_t from)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (int32_t)((uint64_t)(from + i) * 2654435761u % (1u << 31) % (uint64_t)limit);
}

static td_status rows_of(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                         tdi_error *error)
{
    const tdi_shadow *shadow = context;
    int64_t each = elements_per_row(shadow, slot);
    (void)error;
    if (as == TD_INT32)
        strew(to, count * each, tdi_input_limit(&shadow->model, slot), (step * shadow->rows + first) * each);
    else
        memcpy(to, shadow->inputs[slot] + first * each, (size_t)(count * each) * sizeof(float));
    return TD_OK;
}

td_status tdi_shadow_run(tdi_shadow *shadow, tdi_runtime *runtime, int64_t steps, double *seconds, tdi_error *error)
{
    tdi_job job = {.mode = shadow->mode,
                   .feed = {.context = shadow, .rows = rows_of, .in_place = shadow->copied ? NULL : in_place},
                   .steps = steps,
                   .batch = shadow->rows,
                   .samples = steps * shadow->rows};
    double begun = tdi_seconds();
    TDI_TRY(tdi_runtime_run(runtime, &job, error));
    *seconds = (tdi_seconds() - begun) / (double)steps;
    return TD_OK;
}
