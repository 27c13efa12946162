/* lone_plan.h - a graph's plan for one shard on one replica, without a model around it. */
#ifndef TEST_SUPPORT_LONE_PLAN_H
#define TEST_SUPPORT_LONE_PLAN_H

#include "plan/plan.h"

typedef struct lone_plan {
    const tdi_graph *graph;
    tdi_device *device;
    tdi_schedule schedule;
    tdi_plan *plan;
    int64_t rows;
    int threads; /* at most LONE_PLAN_LANES */
} lone_plan;

enum { LONE_PLAN_THREADS = 4 };

/* Makes a plan, or fails the test. The caller frees it by lone_plan_free, before the graph. */
lone_plan lone_plan_create(tdi_graph *graph, int64_t rows, int threads);
/* The same, but only the first `sharing` threads share ops. */
lone_plan lone_plan_create_shared(tdi_graph *graph, int64_t rows, int threads, int sharing);
void lone_plan_free(lone_plan *p);

/* The plan in words; the caller frees the text. */
char *lone_plan_explain(const lone_plan *p);

/* Runs one step, one thread's work after the other's. The first `count` numbers of the first output go to `values`. */
void lone_plan_run(const lone_plan *p, const float *const *inputs, int n_inputs, float *values, size_t count);

/* Makes a node's value the graph's output, and returns it. */
tdi_node *lone_plan_output(tdi_graph *graph, tdi_node *node);

#endif
