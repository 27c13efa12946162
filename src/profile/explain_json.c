/* explain_json.c - how a compiled model runs, as JSON: the plan's kernels, with those that they were chosen from by
 * timing, its operations and bytes, and times where they were taken. */
#include <jansson.h>

#include "profile/explain.h"
#include "runtime/runtime_struct.h"

static const char *const modes[TDI_MODES] = {
    [TDI_TRAIN] = "train", [TDI_EVALUATE] = "evaluate", [TDI_PREDICT] = "predict"};

static json_t *shape_to_json(const td_shape *shape)
{
    json_t *dims = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer(shape->dim[i]));
    return dims;
}

/* null: nothing was asked. */
static json_t *tuned_to_json(const tdi_tuned *tuned)
{
    json_t *times = tuned ? json_object() : NULL;
    for (int i = 0; times && i < tuned->count; i++)
        json_object_set_new(times, tuned->candidates[i].name, json_real(tuned->candidates[i].us));
    if (!tuned)
        return json_null();
    return json_pack("{s:s, s:o, s:b}", "taken", tuned->candidates[tuned->chosen].name, "us", times, "unsure",
                     tuned->unsure > 0);
}

static json_t *op_to_json(const tdi_plan_op *op)
{
    return json_pack("{s:s, s:s*, s:s, s:s, s:s, s:o, s:s, s:i, s:o, s:I, s:I, s:I, s:b, s:b, s:b}", "layer", op->layer,
                     "variable", op->variable, "op", op->op, "pass", op->pass, "kernel", op->kernel, "choice",
                     tuned_to_json(op->tuned), "share", op->share, "lanes", op->threads, "shape",
                     shape_to_json(&op->shape), "flops", (json_int_t)op->flops, "bytes", (json_int_t)op->bytes,
                     "kept_bytes", (json_int_t)op->kept_bytes, "bfloat16", op->bfloat16, "once", op->update_phase,
                     "barrier", op->barrier);
}

static json_t *timed_to_json(const tdi_op_time *time)
{
    json_t *op = op_to_json(&time->op);
    json_t *times = json_pack("{s:I, s:f, s:f, s:s}", "calls", (json_int_t)time->calls, "us", time->seconds * 1e6,
                              "floor_us", time->floor.seconds * 1e6, "bound", tdi_bound_name(&time->floor));
    if (json_object_update(op, times) != 0) {
        json_decref(op);
        op = NULL;
    }
    json_decref(times);
    return op;
}

static json_t *steps_to_json(const tdi_plan *plan, const tdi_timing *timing)
{
    json_t *steps = json_array();
    bool good = steps;
    for (int s = 0; good && s < tdi_plan_steps(plan); s++) {
        tdi_plan_op op;
        if (tdi_plan_op_at(plan, s, &op) && !op.constant)
            good = json_array_append_new(steps, timing ? timed_to_json(&timing->ops[s]) : op_to_json(&op)) == 0;
    }
    if (good)
        return steps;
    json_decref(steps);
    return NULL;
}

static json_t *speeds_to_json(const tdi_roofline *roofline, const double *speeds)
{
    json_t *points = json_array();
    for (int i = 0; i < roofline->sizes; i++)
        json_array_append_new(points, json_pack("[I, f]", (json_int_t)TDI_LEAST_ROOFLINE_SIZE << i, speeds[i]));
    return points;
}

/* As bench_roofline writes them: of one thread, or of all. */
static json_t *roofline_to_json(const tdi_roofline *roofline)
{
    bool one = roofline->threads == 1;
    json_t *json = json_pack("{s:i, s:{s:f}, s:o, s:o}", "threads", roofline->threads, "fp32_flops", "all",
                             roofline->flops, one ? "read_one" : "read_all", speeds_to_json(roofline, roofline->read),
                             one ? "update_one" : "update_all", speeds_to_json(roofline, roofline->update));
    if (json && roofline->bfloat16_flops > 0)
        json_object_set_new(json, "bf16_flops", json_pack("{s:f}", "all", roofline->bfloat16_flops));
    return json;
}

static json_t *time_to_json(const tdi_timing *t)
{
    return json_pack("{s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "threads", t->threads, "steps", (json_int_t)t->steps,
                     "us", t->seconds * 1e6, "waiting_us", t->waiting * 1e6, "feeding_us", t->feeding * 1e6, "rest_us",
                     t->rest * 1e6, "floor_us", t->floor * 1e6, "roofs", roofline_to_json(&t->roofline));
}

static json_t *trials_to_json(const tdi_explained *e)
{
    const tdi_tuned *sharing = tdi_tuned_sharing(e->runtime, e->mode, e->batch);
    return json_pack("{s:o, s:o}", "way", tuned_to_json(e->runtime->tuned), "lanes", tuned_to_json(sharing));
}

td_status tdi_explain_json(const tdi_explained *e, FILE *out, tdi_error *error)
{
    const tdi_division *d = &e->runtime->division;
    json_t *steps = steps_to_json(e->plan, e->timing);
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:s, s:s, s:s?, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "model",
        e->runtime->model->architecture->name, "mode", modes[e->mode], "batch_size", (json_int_t)e->batch, "replicas",
        d->replicas, "parts", d->shards, "workers", d->workers, "lanes", d->threads, "why", d->why, "precision",
        tdi_computes_bfloat16(e->runtime) ? "bfloat16" : "float32", "why_float32", tdi_why_float32(e->runtime),
        "choices", trials_to_json(e), "peak_bytes", (json_int_t)tdi_memory_of_step(e).peak, "state_bytes",
        (json_int_t)tdi_state_bytes(e->runtime, e->mode), "activation_bytes",
        (json_int_t)tdi_plan_activation_bytes(e->plan), "scratch_bytes", (json_int_t)tdi_plan_scratch_bytes(e->plan),
        "packed_bytes", (json_int_t)tdi_plan_packed_bytes(e->plan), "steps", steps);
    bool good = root && (!e->timing || json_object_set_new(root, "time", time_to_json(e->timing)) == 0);
    if (good && json_dumpf(root, out, JSON_INDENT(1)) == 0)
        putc('\n', out);
    json_decref(root);
    return good ? TD_OK : tdi_no_memory(error);
}
