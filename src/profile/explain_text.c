/* explain_text.c - how a compiled model runs, in words: the division, each op of the plan, the memory. */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "profile/explain.h"
#include "runtime/runtime_struct.h"

/* ---- the division ---- */

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

/* Remarks name layers. */
static void print_lines(const char *title, const char *lines, FILE *out)
{
    char *text = strdup(lines);
    if (text)
        fprintf(out, "%s%s", title, tdi_printable_lines(text));
    free(text);
}

static void explain_division(const tdi_runtime *runtime, tdi_mode mode, int64_t batch, FILE *out)
{
    const tdi_division *d = &runtime->division;
    char name[256];
    snprintf(name, sizeof name, "%s", runtime->model->architecture->name);
    fprintf(out, "model %s, global batch %lld\n", td_printable(name), (long long)batch);
    fprintf(out, "devices:");
    for (int i = 0; i < runtime->n_devices; i++)
        fprintf(out, " %s (%d thread%s)", runtime->devices[i]->name, runtime->devices[i]->threads,
                runtime->devices[i]->threads == 1 ? "" : "s");
    fprintf(out, "\n%d replica%s in sync, computed as %d shard%s of the batch by %d worker%s of %d thread%s: %s\n",
            d->replicas, d->replicas == 1 ? "" : "s", d->shards, d->shards == 1 ? "" : "s", d->workers,
            d->workers == 1 ? "" : "s", d->threads, d->threads == 1 ? "" : "s", d->why);
    explain_precision(runtime, out);
    if (runtime->tuned) {
        fprintf(out, "whole steps were compared: ");
        tdi_tuned_print(runtime->tuned, out);
    }
    explain_sharing(runtime, mode, batch, out);
    explain_epoch(runtime, out);
    const tdi_program *program = &runtime->modes[mode].program;
    fprintf(out, "collectives: %d\n", program->collectives.count);
    print_lines("fused:\n", program->remarks.chars ? program->remarks.chars : "nothing\n", out);
}

/* ---- ops ---- */

/* Says how many threads share the op, unless it is one or all. */
static void explain_threads(const tdi_plan *plan, const tdi_plan_op *op, FILE *out)
{
    int all = tdi_plan_sharing(plan);
    if ((op->threads == 1 || op->threads == all) && !op->ended_by)
        return;
    fprintf(out, "%-22s   %s over %d of %d threads", "", op->share, op->threads, all);
    if (op->ended_by)
        fprintf(out, ", ended by %d", op->ended_by);
    fprintf(out, "\n");
}

static void explain_op(const tdi_plan *plan, const tdi_plan_op *op, FILE *out)
{
    char shape[TDI_SHAPE_TEXT], layer[96];
    if (op->barrier)
        fprintf(out, "- the threads meet -\n");
    fprintf(out, "%s %-24.24s %-20.20s %-24.24s %-8s %9.1f %11.1f\n", td_pad(op->layer, 22, layer, sizeof layer),
            op->op, tdi_shape_text(&op->shape, shape), op->kernel, op->share, op->bytes / 1e3, op->flops / 1e3);
    if (*op->details)
        fprintf(out, "%-22s   %s\n", "", op->details);
    if (op->batch_interleaved)
        fprintf(out, "%-22s   %d batch-interleaved samples\n", "", op->batch_interleaved);
    explain_threads(plan, op, out);
    if (op->tuned) {
        fprintf(out, "%-22s   ", "");
        tdi_tuned_print(op->tuned, out);
    }
    if (op->remarks)
        fprintf(out, "%-22s   declined: %s\n", "", op->remarks);
}

void tdi_explain_plan(const tdi_plan *plan, FILE *out)
{
    int barriers = 0;
    fprintf(out, "%-22s %-24s %-20s %-24s %-8s %9s %11s\n", "layer", "op", "shape", "kernel", "share", "kB", "kFLOP");
    for (int s = 0; s < tdi_plan_steps(plan); s++) {
        tdi_plan_op op;
        if (!tdi_plan_op_at(plan, s, &op))
            continue;
        explain_op(plan, &op, out);
        barriers += op.barrier + op.by_depth;
    }
    fprintf(
        out,
        "one shard: %.1f MFLOP, %.1f MB read and written, activations %.2f MB, scratch %.2f MB, %d thread barriers\n",
        tdi_plan_flops(plan) / 1e6, tdi_plan_bytes(plan) / 1e6, (double)tdi_plan_activation_bytes(plan) / 1e6,
        (double)tdi_plan_scratch_bytes(plan) / 1e6, barriers);
}

/* ---- memory ---- */

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

td_status tdi_explain_text(const tdi_explained *e, FILE *out, tdi_error *error)
{
    explain_division(e->runtime, e->mode, e->batch, out);
    fprintf(out, "\n%s\n", title(e));
    tdi_explain_plan(e->plan, out);
    explain_memory(e, out);
    (void)error;
    return TD_OK;
}
