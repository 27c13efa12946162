/* explain.c - the entry of reports, and the report in words.
 *
 * A report is of the runtime that would run such steps. It goes through the same steps in all its forms: the runtime is
 * found, its plan made, and one of three prints it: this file in words, explain_json.c as JSON, explain_time.c as a
 * table of times, for which timing.c has run steps of a clone. */
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

static void explain_precision(const tdi_runtime *runtime, FILE *out)
{
    const char *why = tdi_why_float32(runtime);
    if (why)
        fprintf(out, "precision: float32%s, since %s\n",
                tdi_model_wishes_bfloat16(runtime->model) ? " instead of bfloat16" : "", why);
    else
        fprintf(out, "precision: bfloat16 for products, convolutions and what stands between them; weights, sums and "
                     "losses float32\n");
}

const tdi_tuned *tdi_tuned_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch)
{
    int last = tdi_last_part(runtime);
    const tdi_part_state *part = &runtime->parts[last];
    for (int i = 0; i < part->plans[mode].count; i++)
        if (part->plans[mode].at[i].rows == tdi_part_rows(runtime, last, batch))
            return part->plans[mode].at[i].sharing;
    return NULL;
}

static void explain_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch, FILE *out)
{
    const tdi_tuned *sharing = tdi_tuned_sharing(runtime, mode, batch);
    if (!sharing)
        return;
    fprintf(out, "so short a step is made by %s: ", sharing->candidates[sharing->chosen].name);
    tdi_tuned_print(sharing, out);
    bool fastest = true;
    for (int i = 0; i < sharing->count; i++)
        fastest = fastest && sharing->candidates[i].us >= sharing->candidates[sharing->chosen].us;
    if (!fastest)
        fprintf(out, "(fewer threads are used where they are a tenth faster)\n");
}

static void explain_epoch(const tdi_runtime *runtime, FILE *out)
{
    long long steps = (long long)runtime->model->compiled.steps_per_execution;
    if (steps)
        fprintf(out, "an epoch: %lld step%s a run, as steps_per_execution says", steps, steps == 1 ? "" : "s");
    else
        fprintf(out, "an epoch: one run of all its steps (for a terminal's progress line, runs of 0.05 s)");
    fprintf(out, "; each thread gathers its share of a step's rows while the step before ends: bytes are converted "
                 "on the way, float32 in order is read in place\n");
}

static void explain_division(const tdi_runtime *runtime, tdi_mode mode, int64_t batch, FILE *out)
{
    const tdi_division *d = &runtime->division;
    fprintf(out, "model %s, global batch %lld\n", runtime->model->architecture->name, (long long)batch);
    fprintf(out, "devices:");
    for (int i = 0; i < runtime->n_devices; i++)
        fprintf(out, " %s (%d thread%s)", runtime->devices[i]->name, runtime->devices[i]->lanes,
                runtime->devices[i]->lanes == 1 ? "" : "s");
    fprintf(out, "\n%d replica%s in sync, computed as %d shard%s of the batch by %d worker%s of %d thread%s: %s\n",
            d->replicas, d->replicas == 1 ? "" : "s", d->parts, d->parts == 1 ? "" : "s", d->workers,
            d->workers == 1 ? "" : "s", d->lanes, d->lanes == 1 ? "" : "s", d->why);
    explain_precision(runtime, out);
    if (runtime->tuned) {
        fprintf(out, "whole steps were compared: ");
        tdi_tuned_print(runtime->tuned, out);
    }
    explain_sharing(runtime, mode, batch, out);
    explain_epoch(runtime, out);
    const tdi_program *program = &runtime->modes[mode].program;
    fprintf(out, "collectives: %d\n", program->collectives.count);
    fprintf(out, "fused:\n%s", program->remarks.chars ? program->remarks.chars : "nothing\n");
}

double tdi_state_bytes(const tdi_runtime *runtime, tdi_mode mode)
{
    const td_model *model = runtime->model;
    int slots = mode == TDI_TRAIN ? runtime->division.parts + tdi_optimizer_slots(&model->state->optimizer) : 0;
    return (double)(model->architecture->total + model->architecture->trained * slots) * 4;
}

/* Two batches of them: one is brought together while the other is computed with. */
static double row_bytes(const tdi_explained *e)
{
    double bytes = 0;
    for (int slot = 0; slot < tdi_input_slots(e->runtime->model, e->mode); slot++)
        bytes += 2 * (double)(e->batch * tdi_input_bytes_per_row(e->runtime->model, slot));
    return bytes;
}

tdi_step_memory tdi_memory_of_step(const tdi_explained *e)
{
    const tdi_division *d = &e->runtime->division;
    tdi_step_memory m = {.activations = (double)tdi_plan_activation_bytes(e->plan) * d->parts,
                         .scratch = (double)tdi_plan_scratch_bytes(e->plan) * d->workers * d->lanes,
                         .packed = (double)tdi_plan_packed_bytes(e->plan) * d->parts,
                         .exchange = (double)tdi_plan_exchange_bytes(e->plan),
                         .rows = row_bytes(e),
                         .state = tdi_state_bytes(e->runtime, e->mode)};
    m.peak = m.activations + m.scratch + m.packed + m.exchange + m.rows + m.state;
    return m;
}

static void explain_memory(const tdi_explained *e, FILE *out)
{
    tdi_step_memory m = tdi_memory_of_step(e);
    fprintf(out, "weights %.2f MB", (double)e->runtime->model->architecture->total * 4e-6);
    if (e->mode == TDI_TRAIN)
        fprintf(out, ", with their gradients and slots %.2f MB", m.state * 1e-6);
    fprintf(
        out,
        "\npeak memory: %.2f MB: %.2f of activations, %.2f of scratch, %.2f of packed weights, %.2f exchanged, %.2f of "
        "rows brought together, %.2f of weights%s; besides, the library and the data\n",
        m.peak * 1e-6, m.activations * 1e-6, m.scratch * 1e-6, m.packed * 1e-6, m.exchange * 1e-6, m.rows * 1e-6,
        m.state * 1e-6, e->mode == TDI_TRAIN ? " and theirs" : "");
    if (e->runtime->trial_bytes > 0)
        fprintf(out, "comparing whole steps, which is remembered, took %.2f MB beside the weights and slots\n",
                e->runtime->trial_bytes * 1e-6);
}

static const char *title(const tdi_explained *e)
{
    const td_model *model = e->runtime->model;
    bool trains = model->compiled.is_set && model->state->optimizer.kind != TD_OPTIMIZER_NONE;
    if (e->mode == TDI_PREDICT)
        return trains ? "one prediction:" : "one prediction (the model is not compiled to train):";
    return e->mode == TDI_TRAIN ? "one training step:" : "one step of evaluation:";
}

static td_status explain_plan(const tdi_explained *e, FILE *out, tdi_error *error)
{
    explain_division(e->runtime, e->mode, e->batch, out);
    fprintf(out, "\n%s\n", title(e));
    tdi_plan_explain(e->plan, out);
    explain_memory(e, out);
    (void)error;
    return TD_OK;
}

/* What is looked at before the first step does not choose for it, since steps to come may have other rows. */
static td_status explain_steps(td_model *model, tdi_explained *e, bool json, FILE *out, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_plan *plans[TDI_MAX_PARTS];
    bool chosen = tdi_configuration_of(model, e->mode);
    td_status status = tdi_runtime_for_report(model, e->mode, e->batch, &runtime, error);
    if (status == TD_OK)
        status = tdi_runtime_prepare(runtime, e->mode, e->batch, plans, error);
    if (status == TD_OK) {
        tdi_runtime_bind(runtime, e->mode,
                         plans); /* what a collective costs depends on the shards, which bound calls know */
        e->runtime = runtime;
        e->plan = plans[tdi_last_part(runtime)];
        status = (json ? tdi_explain_json : explain_plan)(e, out, error);
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
