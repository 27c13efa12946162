/* evaluate.h - computes a graph node by node with the references: what a plan must give.
 *
 * All parts advance together, so collectives need no waiting. Once nodes run once, whole. Failing to allocate aborts:
 * this is for tests. */
#ifndef TEST_SUPPORT_EVALUATE_H
#define TEST_SUPPORT_EVALUATE_H

#include "ops/ops.h"

typedef struct evaluation evaluation;

typedef struct evaluation_spec {
    const tdi_graph *graph;
    int parts;                 /* as graph->parts */
    const int64_t *rows;       /* of each part; one may be 0 */
    int group_size;            /* consecutive parts that share batch statistics; 0: all of them */
    tdi_control control;       /* rows 0: all */
    const void *const *inputs; /* by slot: the whole global batch, or a value without a batch. Read at each run */
    int64_t variable_floats;   /* extent of the layout that variable->offset points into */
    float *values;             /* variables, updated in place */
    float *const *slots;       /* optimizer state, in the same layout */
    int metrics;               /* accumulators, zeroed at each run */
} evaluation_spec;

evaluation *evaluation_create(const evaluation_spec *spec);
void evaluation_free(evaluation *evaluation);

void evaluation_run(evaluation *evaluation);                              /* every node */
void evaluation_run_before(evaluation *evaluation, const tdi_node *node); /* those made before `node` */
/* The call of one node for one part: shapes, addresses, control. Borrowed. */
const tdi_call *evaluation_call(const evaluation *evaluation, const tdi_node *node, int part);
/* A node's value for a part, after a run. */
const void *evaluation_value(const evaluation *evaluation, const tdi_node *node, int part);
const double *evaluation_metric(const evaluation *evaluation, int slot, int part); /* [total, count] */

#endif
