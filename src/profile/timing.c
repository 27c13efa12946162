/* timing.c - steps against the clock, op by op.
 *
 * Why: which op takes a step's time, and how far it is from what the machine can do, shows in no single measurement of
 * the whole.
 *
 * Design: steps of a clone run on made-up rows while each thread notes what it does in a trace of its own
 * (base/trace.h). A thread's step goes from one meeting's end to the next one's; each moment of it belongs to an op, to
 * waiting, to feeding, or lies between them, so the times of all add up to the step. Only the middle half of all steps
 * by their length counts: that leaves out what disturbs the machine now and then, and means still add up.
 *
 * Limits: noting takes some tens of nanoseconds an event, which shows in steps of very small ops. */
#include "profile/timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "runtime/runtime_struct.h"

enum { FEWEST_STEPS = 5, MOST_STEPS = 1000, NOTED_PER_OP = 4 /* two calls, two meetings */, NOTED_BESIDE = 8 };
static const double wanted_seconds = 1.5;

/* ---- running ---- */

static int64_t period_of(const td_model *model)
{
    int each = model->state->optimizer.gradient_accumulation_steps;
    return each > 1 ? each : 1;
}

/* Whole periods, in which each op runs as often as in any other; and one step more, which feeds no other. */
static int64_t steps_for(const td_model *model, double seconds)
{
    double wanted = wanted_seconds / (seconds > 1e-9 ? seconds : 1e-9);
    int64_t period = period_of(model), most = MOST_STEPS / period > FEWEST_STEPS ? MOST_STEPS / period : FEWEST_STEPS;
    int64_t periods = wanted / (double)period < (double)most ? (int64_t)(wanted / (double)period) : most;
    return (periods > FEWEST_STEPS ? periods : FEWEST_STEPS) * period + 1;
}

/* In the configuration that the model's steps would have. */
static td_status make_runtime(const td_model *model, tdi_timing *t, tdi_error *error)
{
    const tdi_synthetic_steps *synthetic = &t->synthetic;
    TDI_TRY(tdi_configure_clone(&t->synthetic.clone, model, error));
    TDI_TRY(tdi_runtime_for_report(&t->synthetic.clone, synthetic->mode, synthetic->rows, &t->runtime, error));
    tdi_fix_threads(t->runtime, synthetic->mode, false);
    return TD_OK;
}

/* The first step makes the plans, the second warms up. */
static td_status warm_up(tdi_timing *t, double *seconds, tdi_error *error)
{
    TDI_TRY(tdi_synthetic_steps_run(&t->synthetic, t->runtime, 1, seconds, error));
    TDI_TRY(tdi_synthetic_steps_run(&t->synthetic, t->runtime, 1, seconds, error));
    return tdi_synthetic_steps_run(&t->synthetic, t->runtime, period_of(&t->synthetic.clone), seconds, error);
}

/* Runs `steps` steps, each thread's events in a track of its own. */
static td_status run_noted(tdi_timing *t, int64_t steps, tdi_trace **trace, tdi_error *error)
{
    const tdi_division *d = &t->runtime->division;
    int64_t shards = (d->shards + d->workers - 1) / d->workers;
    double seconds;
    *trace = tdi_trace_create((steps + 1) * (shards * NOTED_PER_OP * t->count + NOTED_BESIDE));
    if (!*trace)
        return tdi_no_memory(error);
    t->synthetic.clone.context->trace = *trace;
    td_status status = tdi_synthetic_steps_run(&t->synthetic, t->runtime, steps, &seconds, error);
    t->synthetic.clone.context->trace = NULL;
    return status;
}

/* ---- adding up ---- */

typedef struct tally {
    tdi_timing *timing;
    const tdi_trace *trace;
    int64_t steps, period; /* without the last step */
    double *lengths;       /* [steps / period]: of one thread's periods */
    bool *counted;         /* [steps / period] */
} tally;

static bool is_waiting(const tdi_traced *traced, const tdi_label *label)
{
    return label == traced->threads || label == traced->begin || label == traced->finish || label == traced->meet;
}

static void add_event(tdi_timing *timing, const tdi_trace_event *event)
{
    const tdi_traced *traced = &timing->runtime->traced;
    double seconds = event->end - event->begin;
    if (event->label->step >= 0) {
        timing->ops[event->label->step].seconds += seconds;
        timing->ops[event->label->step].calls++;
    } else if (is_waiting(traced, event->label)) {
        timing->waiting += seconds;
    } else if (event->label == traced->feed) {
        timing->feeding += seconds;
    }
}

/* Goes through a thread's steps: to see how long periods are, and, where they are `counted`, to add up. */
static void walk(tally *t, int thread)
{
    int64_t lost, count = tdi_trace_count(t->trace, thread, &lost), step = -1;
    double begun = 0;
    for (int64_t i = 0; i < count && step < t->steps; i++) {
        const tdi_trace_event *event = tdi_trace_event_at(t->trace, thread, i);
        bool meets = event->label == t->timing->runtime->traced.meet;
        bool counted = step >= 0 && t->counted[step / t->period];
        if (counted)
            add_event(t->timing, event);
        if (counted && meets)
            t->timing->seconds += event->end - begun;
        else if (step >= 0 && meets)
            t->lengths[step / t->period] += event->end - begun;
        begun = meets ? event->end : begun;
        step += meets;
    }
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The periods between the first and the third quartile. */
static bool choose_periods(tally *t)
{
    int64_t count = t->steps / t->period;
    double *sorted = malloc((size_t)count * sizeof *sorted);
    if (!sorted)
        return false;
    memcpy(sorted, t->lengths, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_length);
    double least = sorted[count / 4], most = sorted[(3 * count - 1) / 4];
    free(sorted);
    for (int64_t i = 0; i < count; i++) {
        t->counted[i] = t->lengths[i] >= least && t->lengths[i] <= most;
        t->timing->steps += t->counted[i] ? t->period : 0;
    }
    return true;
}

static void take_means(tdi_timing *t)
{
    double each = 1 / ((double)t->steps * t->threads);
    t->seconds *= each;
    t->waiting *= each;
    t->feeding *= each;
    t->rest = t->seconds - t->waiting - t->feeding;
    for (int s = 0; s < t->count; s++) {
        t->ops[s].seconds *= each;
        t->ops[s].calls /= t->steps;
        t->rest -= t->ops[s].seconds;
    }
}

/* The tracks of a trace that nobody else writes into are the runtime's threads, in order. */
static td_status add_up(tdi_timing *t, const tdi_trace *trace, int64_t steps, tdi_error *error)
{
    tally all = {.timing = t, .trace = trace, .steps = steps - 1, .period = period_of(&t->synthetic.clone)};
    const tdi_division *d = &t->runtime->division;
    size_t periods = (size_t)(all.steps / all.period);
    all.lengths = calloc(periods, sizeof *all.lengths);
    all.counted = calloc(periods, sizeof *all.counted);
    bool good = all.lengths && all.counted;
    if (good)
        walk(&all, 0);
    good = good && choose_periods(&all);
    for (int thread = 0; good && thread < d->workers * d->threads; thread++)
        if (thread % d->threads < tdi_plan_sharing(t->plan))
            walk(&all, thread);
    if (good)
        take_means(t);
    free(all.lengths);
    free(all.counted);
    return good ? TD_OK : tdi_no_memory(error);
}

/* ---- floors ---- */

static td_status find_floors(tdi_timing *t, tdi_error *error)
{
    bool bfloat16 = false;
    for (int s = 0; s < t->count; s++)
        bfloat16 = bfloat16 || t->ops[s].op.bfloat16;
    TDI_TRY(tdi_roofline_measure(t->runtime->devices[0], t->runtime->team, t->threads, bfloat16, t->in_use / t->threads,
                                 &t->roofline, error));
    for (int s = 0; s < t->count; s++) {
        const tdi_plan_op *op = &t->ops[s].op;
        double times = op->update_phase ? 1 : t->runtime->division.shards;
        tdi_demand demand = {op->flops * times, op->bytes * times, op->kept_bytes * times, op->bfloat16};
        t->ops[s].floor = tdi_floor_of(&t->roofline, &demand, t->in_use);
        t->floor += t->ops[s].floor.seconds;
    }
    return TD_OK;
}

/* ---- all of it ---- */

static td_status list_ops(tdi_timing *t, tdi_error *error)
{
    t->count = tdi_plan_steps(t->plan);
    t->ops = calloc((size_t)t->count + 1, sizeof *t->ops);
    if (!t->ops)
        return tdi_no_memory(error);
    for (int s = 0; s < t->count; s++)
        if (!tdi_plan_op_at(t->plan, s, &t->ops[s].op) || t->ops[s].op.constant)
            t->ops[s].op = (tdi_plan_op){0};
    t->threads = t->runtime->division.workers * tdi_plan_sharing(t->plan);
    t->in_use = tdi_state_bytes(t->runtime, t->synthetic.mode) +
                (double)tdi_plan_activation_bytes(t->plan) * t->runtime->division.shards;
    return TD_OK;
}

static td_status time_steps(tdi_timing *t, tdi_error *error)
{
    tdi_plan *plans[TDI_MAX_SHARDS];
    tdi_trace *trace = NULL;
    double seconds;
    TDI_TRY(warm_up(t, &seconds, error));
    TDI_TRY(tdi_runtime_prepare(t->runtime, t->synthetic.mode, t->synthetic.rows, plans, error));
    t->plan = plans[tdi_last_shard(t->runtime)];
    TDI_TRY(list_ops(t, error));
    int64_t steps = steps_for(&t->synthetic.clone, seconds);
    td_status status = run_noted(t, steps, &trace, error);
    if (status == TD_OK)
        status = add_up(t, trace, steps, error);
    tdi_trace_free(trace);
    return status == TD_OK ? find_floors(t, error) : status;
}

/* A trace of the user's does not show these steps. */
td_status tdi_time_steps(const td_model *model, tdi_mode mode, int64_t batch, tdi_timing *timing, tdi_error *error)
{
    td_context *context = model->context;
    tdi_trace *users = context->trace;
    context->trace = NULL;
    *timing = (tdi_timing){0};
    td_status status = tdi_synthetic_steps_init(model, mode, batch, &timing->synthetic, error);
    timing->synthetic.copied = true;
    if (status == TD_OK)
        status = make_runtime(model, timing, error);
    if (status == TD_OK)
        status = time_steps(timing, error);
    if (status == TD_NOT_FINITE)
        tdi_error_prefix(error, "steps on synthetic rows cannot be timed");
    context->trace = users;
    return status;
}

void tdi_timing_release(tdi_timing *timing)
{
    tdi_synthetic_steps_release(&timing->synthetic);
    free(timing->ops);
}
