/* explain.c - how a compiled model runs, in words. */
#include "dist/inside.h"

static void explain_precision(const tdi_runtime *runtime, FILE *out)
{
    const char *why_not = runtime->devices[0]->no_bfloat16;
    if (!tdi_model_wishes_bfloat16(runtime->model))
        fprintf(out, "precision: float32\n");
    else if (why_not)
        fprintf(out, "precision: float32 instead of bfloat16, since %s\n", why_not);
    else
        fprintf(out, "precision: bfloat16 where it is faster; weights, sums and losses float32\n");
}

static void explain_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch, FILE *out)
{
    const tdi_part_state *part = &runtime->parts[0];
    for (int i = 0; i < part->plans[mode].count; i++) {
        const tdi_kept_plan *kept = &part->plans[mode].at[i];
        if (kept->rows != tdi_part_rows(runtime, 0, batch) || !kept->sharing)
            continue;
        fprintf(out, "so short a step is made by %s: ", kept->sharing->candidates[kept->sharing->chosen].name);
        tdi_choice_explain(kept->sharing, out);
    }
}

static void explain_division(const tdi_runtime *runtime, tdi_mode mode, int64_t batch, FILE *out)
{
    const tdi_division *d = &runtime->division;
    fprintf(out, "model %s, global batch %lld\n", runtime->model->name, (long long)batch);
    fprintf(out, "devices:");
    for (int i = 0; i < runtime->n_devices; i++)
        fprintf(out, " %s (%d lane%s)", runtime->devices[i]->name, runtime->devices[i]->lanes,
                runtime->devices[i]->lanes == 1 ? "" : "s");
    fprintf(out, "\n%d replica%s in sync, computed as %d part%s of the batch by %d worker%s of %d lane%s: %s\n",
            d->replicas, d->replicas == 1 ? "" : "s", d->parts, d->parts == 1 ? "" : "s", d->workers,
            d->workers == 1 ? "" : "s", d->lanes, d->lanes == 1 ? "" : "s", d->why);
    explain_precision(runtime, out);
    explain_sharing(runtime, mode, batch, out);
    const tdi_program *program = &runtime->modes[mode].program;
    fprintf(out, "collectives: %d\n", program->collectives);
    fprintf(out, "fused:\n%s", program->notes.chars ? program->notes.chars : "nothing\n");
}

/* Weights, gradients and slots together. */
static double state_bytes(const tdi_runtime *runtime)
{
    const td_model *model = runtime->model;
    return (double)(model->total +
                    model->trained * (runtime->division.parts + tdi_optimizer_slots(&model->optimizer))) *
           4;
}

static bool trains(const td_model *model)
{
    return model->optimizer.kind != TD_OPTIMIZER_NONE && model->compiled;
}

/* The plan of the first part of a batch. NULL: the model's context has the sentence. */
static const tdi_plan *plan_of(tdi_runtime *runtime, int64_t batch)
{
    tdi_plan *plans[TDI_MAX_PARTS];
    tdi_error error = {0};
    tdi_mode mode = trains(runtime->model) ? TDI_TRAIN : TDI_PREDICT;
    if (tdi_runtime_prepare(runtime, mode, batch, plans, &error) == TD_OK)
        return plans[0];
    tdi_fail(&runtime->model->context->error, error.status, "%s", error.message);
    return NULL;
}

/* What a step needs in memory besides the data. */
static void explain_memory(const tdi_runtime *runtime, const tdi_plan *plan, FILE *out)
{
    const tdi_division *d = &runtime->division;
    double activations = (double)tdi_plan_activation_bytes(plan) * d->parts;
    double scratch = (double)tdi_plan_scratch_bytes(plan) * d->workers * d->lanes;
    double exchange = (double)tdi_plan_exchange_bytes(plan), state = state_bytes(runtime);
    fprintf(out, "weights %.2f MB, with their gradients and slots %.2f MB\n", (double)runtime->model->total * 4e-6,
            state * 1e-6);
    fprintf(out,
            "peak memory: %.2f MB: %.2f of activations, %.2f of scratch, %.2f exchanged, %.2f of weights and theirs\n",
            (activations + scratch + exchange + state) * 1e-6, activations * 1e-6, scratch * 1e-6, exchange * 1e-6,
            state * 1e-6);
}

void tdi_runtime_explain(tdi_runtime *runtime, int64_t batch, FILE *out)
{
    bool training = trains(runtime->model);
    const tdi_plan *plan = plan_of(runtime, batch);
    if (!plan)
        return;
    explain_division(runtime, training ? TDI_TRAIN : TDI_PREDICT, batch, out);
    fprintf(out, "\n%s\n", training ? "one training step:" : "one prediction (the model is not compiled to train):");
    tdi_plan_explain(plan, out);
    explain_memory(runtime, plan, out);
}

void tdi_runtime_explain_json(tdi_runtime *runtime, int64_t batch, FILE *out)
{
    const tdi_division *d = &runtime->division;
    const tdi_plan *plan = plan_of(runtime, batch);
    if (!plan)
        return;
    fprintf(
        out,
        "{\n\"training\": %s, \"batch_size\": %lld, \"replicas\": %d, \"parts\": %d, \"workers\": %d, \"lanes\": %d,\n"
        "\"state_bytes\": %.0f,\n",
        trains(runtime->model) ? "true" : "false", (long long)batch, d->replicas, d->parts, d->workers, d->lanes,
        state_bytes(runtime));
    tdi_plan_explain_json(plan, out);
    fprintf(out, "}\n");
}
