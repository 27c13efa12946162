/* explain.c - the entry of reports, and the facts that all their forms have.
 *
 * A report is of the runtime that would run such steps. In all its forms the runtime is found and its plan made, and
 * one of three files prints it: explain_text.c in words, explain_json.c as JSON, explain_time.c as a table of times,
 * for which timing.c has run steps of a clone. */
#include "profile/explain.h"

#include "runtime/runtime_struct.h"

bool tdi_computes_bfloat16(const tdi_runtime *runtime)
{
    return tdi_model_wishes_bfloat16(runtime->model) && !runtime->devices[0]->no_bfloat16 && !runtime->float32;
}

const char *tdi_why_float32(const tdi_runtime *runtime)
{
    td_precision asked = runtime->model->compiled.precision;
    if (!tdi_model_wishes_bfloat16(runtime->model))
        return asked == TD_PRECISION_FLOAT32    ? "it was asked for"
               : asked == TD_PRECISION_BFLOAT16 ? "the last layers stay in it, and there are no others"
                                                : "no layer asks for bfloat16";
    if (runtime->devices[0]->no_bfloat16)
        return runtime->devices[0]->no_bfloat16;
    return runtime->float32 ? "bfloat16 is not faster here" : NULL;
}

const tdi_tuned *tdi_tuned_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch)
{
    int last = tdi_last_shard(runtime);
    const tdi_shard_state *shard = &runtime->shards[last];
    for (int i = 0; i < shard->plans[mode].count; i++)
        if (shard->plans[mode].at[i].rows == tdi_shard_rows(runtime, last, batch))
            return shard->plans[mode].at[i].sharing;
    return NULL;
}

double tdi_state_bytes(const tdi_runtime *runtime, tdi_mode mode)
{
    const td_model *model = runtime->model;
    int slots = mode == TDI_TRAIN ? runtime->division.shards + tdi_optimizer_slots(&model->state->optimizer) : 0;
    return (double)(model->architecture->total + model->architecture->trained * slots) * 4;
}

/* Two batches of them: one is brought together while the other is computed with. */
static double row_bytes(const tdi_explained *e)
{
    double bytes = 0;
    for (int slot = 0; slot < tdi_input_slots(e->runtime->model, e->mode); slot++)
        bytes += 2 * (double)(e->batch * tdi_input_bytes_per_row(e->runtime->model, e->mode, slot));
    return bytes;
}

tdi_step_memory tdi_memory_of_step(const tdi_explained *e)
{
    const tdi_division *d = &e->runtime->division;
    tdi_step_memory m = {.activations = (double)tdi_plan_activation_bytes(e->plan) * d->shards,
                         .scratch = (double)tdi_plan_scratch_bytes(e->plan) * d->workers * d->threads,
                         .packed = (double)tdi_plan_packed_bytes(e->plan) * d->shards,
                         .exchange = (double)tdi_plan_exchange_bytes(e->plan),
                         .rows = row_bytes(e),
                         .state = tdi_state_bytes(e->runtime, e->mode)};
    m.peak = m.activations + m.scratch + m.packed + m.exchange + m.rows + m.state;
    return m;
}

/* What is looked at before the first step does not choose for it, since steps to come may have other rows. */
static td_status explain_steps(td_model *model, tdi_explained *e, bool json, FILE *out, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_plan *plans[TDI_MAX_SHARDS];
    bool chosen = tdi_configuration_of(model, e->mode);
    td_status status = tdi_runtime_for_report(model, e->mode, e->batch, &runtime, error);
    if (status == TD_OK)
        status = tdi_runtime_prepare(runtime, e->mode, e->batch, plans, error);
    if (status == TD_OK) {
        tdi_runtime_bind(runtime, e->mode,
                         plans); /* what a collective costs depends on the shards, which bound calls know */
        e->runtime = runtime;
        e->plan = plans[tdi_last_shard(runtime)];
        status = (json ? tdi_explain_json : tdi_explain_text)(e, out, error);
    }
    if (!chosen)
        tdi_model_drop_runtimes(model);
    return status;
}

static td_status explain_times(const td_model *model, tdi_explained *e, bool json, FILE *out, tdi_error *error)
{
    tdi_timing timing;
    td_status status = tdi_time_steps(model, e->mode, e->batch, &timing, error);
    if (status == TD_OK) {
        e->runtime = timing.runtime;
        e->plan = timing.plan;
        e->timing = &timing;
        status = (json ? tdi_explain_json : tdi_explain_times)(e, out, error);
    }
    tdi_timing_release(&timing);
    return status;
}

td_status tdi_explain(td_model *model, const tdi_explain_spec *spec, FILE *out, tdi_error *error)
{
    tdi_explained e = {.mode = spec->mode, .batch = spec->batch};
    return spec->time ? explain_times(model, &e, spec->json, out, error)
                      : explain_steps(model, &e, spec->json, out, error);
}
