/* evaluate.h - computes a graph node by node with the references: what a plan must give.
 *
 * All shards advance together, so that a collective needs no waiting. Nodes of the update phase run once for all
 * shards. When memory cannot be allocated the process aborts, as befits a test. */
#ifndef TEST_SUPPORT_EVALUATE_H
#define TEST_SUPPORT_EVALUATE_H

#include "ops/ops.h"

typedef struct evaluation evaluation;

typedef struct evaluation_spec {
    const tdi_graph *graph;
    int shards;                /* as graph->shards */
    const int64_t *rows;       /* of each shard; may be 0 */
    int group_size;            /* consecutive shards that share batch statistics; 0 means all of them */
    tdi_control control;       /* rows of 0 mean all of them */
    const void *const *inputs; /* by slot: the whole global batch, or a value without a batch; read at each run */
    int64_t variable_floats;   /* length of the array that variable->offset counts in */
    float *values;             /* variables, updated in place */
    float *const *slots;       /* optimizer state, in the same layout */
    int metrics;               /* accumulators, zeroed at each run */
} evaluation_spec;

evaluation *evaluation_create(const evaluation_spec *spec);
void evaluation_free(evaluation *evaluation);

void evaluation_run(evaluation *evaluation);                              /* every node */
void evaluation_run_before(evaluation *evaluation, const tdi_node *node); /* the nodes made before `node` */
/* The call of one node for one shard: shapes, addresses, control. It belongs to the evaluation. */
const tdi_call *evaluation_call(const evaluation *evaluation, const tdi_node *node, int shard);
/* A node's value in one shard, after a run. */
const void *evaluation_value(const evaluation *evaluation, const tdi_node *node, int shard);
const double *evaluation_metric(const evaluation *evaluation, int slot, int shard); /* [total, count] */

#endif
