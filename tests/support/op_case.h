/* op_case.h - examples of every op, each serving several times: gradients by finite differences, kernels against the
 * references, what lanes read, benchmarks. */
#ifndef TEST_SUPPORT_OP_CASE_H
#define TEST_SUPPORT_OP_CASE_H

#include "support/evaluate.h"

typedef enum op_fill {
    OP_NORMAL = 0, /* mean 0, deviation 1 */
    OP_SPREAD,   /* in random order, `step` (0.1) apart and half of it away from 0: for functions with kinks and ties */
    OP_POSITIVE, /* [0.5, 2.5) */
    OP_UNIT,     /* [0.05, 0.95) */
    OP_LABELS,   /* 0 .. limit - 1 */
    OP_BITS,     /* 0 or 1 */
    OP_ZERO,
    OP_BANDED, /* normal; of every `limit` columns the last two in five are zeros, and one more but for its last row */
    OP_SPARSE, /* normal, but nine in ten are zeros */
    OP_FRAMED, /* images, normal but for zeros: the first row, and `limit` columns at either side, or one more left */
    OP_INFINITE, /* normal, but every 4999th is infinite */
    OP_MISSING   /* 0 or 1, but every fifth is not a number */
} op_fill;

/* A leaf of a case's graph. With a batch it is an input, without one a weight; `slot` > 0 makes it optimizer slot
 * number slot - 1 of leaf 0. */
typedef struct op_leaf {
    td_shape shape;
    td_dtype dtype;
    op_fill fill;
    double step;
    int limit;
    int slot;
    bool constant; /* the op has no gradient for it although its value matters */
} op_leaf;

enum { OP_MAX_LEAVES = 6, OP_MAX_PARTS = 4 };

#define OP_DIMS(...)                                                                                                   \
    {                                                                                                                  \
        TD_SHAPE_RANK_(__VA_ARGS__),                                                                                   \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

typedef struct op_case op_case;
struct op_case {
    const tdi_op *op;
    const char *name;
    const void *attrs;
    /* Emits the node under test; NULL: op(leaves...) with attrs. */
    tdi_node *(*build)(tdi_graph *graph, tdi_node *const *leaf, const op_case *c);
    int n_leaves;
    op_leaf leaf[OP_MAX_LEAVES];
    int parts;                  /* 0: one */
    int64_t rows[OP_MAX_PARTS]; /* of the parts; {0}: one part of 3 */
    int group_size;             /* 0: all parts share batch statistics */
    int groups;                 /* that have batch statistics of their own, so many in each part; 0: one */
    bool skip;                  /* a step that updates nothing */
};

/* Builds an update of the variable that leaf 0 is. */
tdi_node *op_case_update(tdi_graph *graph, tdi_node *const *leaf, const op_case *c);

int op_case_count(void);
const op_case *op_case_at(int index);

/* A case made ready: its graph, values from a fixed random sequence, an evaluation that has not run yet. */
typedef struct op_run {
    const op_case *c;
    tdi_graph *graph;
    tdi_node *node; /* under test */
    tdi_node *leaf[OP_MAX_LEAVES];
    tdi_node *gradient[OP_MAX_LEAVES]; /* with `gradients`: of loss = sum of node * weights; NULL: none */
    int parts;
    int64_t rows[OP_MAX_PARTS], all_rows;
    void *inputs[OP_MAX_LEAVES + 1]; /* the last: the weights of the loss, when node has a batch */
    tdi_variable variables[OP_MAX_LEAVES + 1];
    int64_t variable_floats;
    float *values, *slots[3];
    evaluation *evaluation;
} op_run;

typedef struct op_run_options {
    int64_t rows;   /* of every part; -1: the case's */
    bool gradients; /* emits the backward nodes too */
} op_run_options;

/* Aborts with a message when the case does not build. The caller frees it. */
op_run *op_run_create(const op_case *c, op_run_options options);
void op_run_free(op_run *run);

/* A leaf's numbers (float32 only): the whole batch, or the weight. */
float *op_run_leaf(op_run *run, int leaf, int64_t *count);
/* The weights that the loss gives to the node's elements, at part `part`. */
const float *op_run_loss_weights(const op_run *run, int part);

/* The tables, one a file of cases_*.c; each ends with an op of NULL. */
extern const op_case op_cases_elementwise[], op_cases_shape[], op_cases_linear[], op_cases_windows[], op_cases_losses[],
    op_cases_training[], op_cases_lstm[];

#endif
