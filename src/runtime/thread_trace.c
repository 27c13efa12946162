/* thread_trace.c - a track for each of a runtime's threads, and what the events on it are called. */
#include <stdio.h>

#include "runtime/runtime_struct.h"

static bool make_labels(tdi_traced *traced, tdi_trace *trace)
{
    const struct {
        const tdi_label **label;
        const char *name, *category;
    } labels[] = {
        {&traced->threads, "wait for threads", "wait"},
        {&traced->begin, "gradients ready", "communication"},
        {&traced->finish, "wait for gradients", "communication"},
        {&traced->meet, "wait for the step's end", "wait"},
        {&traced->feed, "bring rows together", "input"},
        {&traced->take, "take outputs", "output"},
        {&traced->step, "step", "step"},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        *labels[i].label = tdi_trace_label(trace, labels[i].name, labels[i].category, "");
        good = good && *labels[i].label;
    }
    return good;
}

static bool make_tracks(tdi_runtime *runtime, tdi_trace *trace)
{
    const tdi_division *d = &runtime->division;
    tdi_traced *traced = &runtime->traced;
    if (!traced->tracks)
        traced->tracks = calloc((size_t)(d->workers * d->threads), sizeof *traced->tracks);
    if (!traced->tracks)
        return false;
    for (int t = 0; t < d->workers * d->threads; t++) {
        char name[96];
        int worker = t / d->threads, shard = tdi_worker_first_shard(runtime, worker);
        snprintf(name, sizeof name, "%s replica %d thread %d", tdi_shard_device(runtime, shard)->name, worker,
                 t % d->threads);
        traced->tracks[t] = tdi_trace_track(trace, name);
        if (!traced->tracks[t])
            return false;
    }
    return true;
}

td_status tdi_runtime_trace(tdi_runtime *runtime, tdi_plan *const *plans, tdi_error *error)
{
    tdi_trace *trace = runtime->model->context->trace;
    if (!trace)
        return TD_OK;
    for (int p = runtime->division.own_first; p < tdi_own_end(&runtime->division); p++)
        TDI_TRY(tdi_plan_label(plans[p], trace, error));
    if (runtime->traced.id == tdi_trace_id(trace))
        return TD_OK;
    if (!make_labels(&runtime->traced, trace) || !make_tracks(runtime, trace))
        return tdi_no_memory(error);
    runtime->traced.id = tdi_trace_id(trace);
    return TD_OK;
}
