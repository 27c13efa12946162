/* explain.c - how a compiled model runs, in words. */
#include "dist/inside.h"

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
    const tdi_program *program = &runtime->modes[mode].program;
    fprintf(out, "collectives: %d\n", program->collectives);
    fprintf(out, "fused:\n%s", program->notes.chars ? program->notes.chars : "nothing\n");
}

void tdi_runtime_explain(tdi_runtime *runtime, int64_t batch, FILE *out)
{
    tdi_plan *plans[TDI_MAX_PARTS];
    tdi_error error = {0};
    bool trains = runtime->model->optimizer.kind != TD_OPTIMIZER_NONE && runtime->model->compiled;
    tdi_mode mode = trains ? TDI_TRAIN : TDI_PREDICT;
    if (tdi_runtime_prepare(runtime, mode, batch, plans, &error) != TD_OK) {
        tdi_fail(&runtime->model->context->error, error.status, "%s", error.message);
        return;
    }
    explain_division(runtime, mode, batch, out);
    fprintf(out, "\n%s\n", trains ? "one training step:" : "one prediction (the model is not compiled to train):");
    tdi_plan_explain(plans[0], out);
    fprintf(out, "weights %.2f MB, with their gradients and slots %.2f MB\n", (double)runtime->model->total * 4e-6,
            (double)(runtime->model->total +
                     runtime->model->trained *
                         (runtime->division.parts + tdi_optimizer_slots(&runtime->model->optimizer))) *
                4e-6);
}
