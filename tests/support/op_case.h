/* op_case.h - examples of every op. Each example serves several tests: gradients by finite differences, kernels against
 * the references, what a thread's share of an output reads, benchmarks. */
#ifndef TEST_SUPPORT_OP_CASE_H
#define TEST_SUPPORT_OP_CASE_H

#include "support/evaluate.h"

typedef enum op_fill {
    OP_NORMAL = 0, /* mean 0, deviation 1 */
    OP_SPREAD,     /* multiples of `step` (0.1) plus half a step, in random order: for functions with kinks and ties */
    OP_POSITIVE,   /* [0.5, 2.5) */
    OP_UNIT,       /* [0.05, 0.95) */
    OP_LABELS,     /* 0 .. limit - 1 */
    OP_BITS,       /* 0 or 1 */
    OP_ZERO,
    OP_BANDED,   /* normal; of every `limit` columns the last two fifths are zeros, and so is one more but for its last
                    row */
    OP_SPARSE,   /* normal, but nine numbers in ten are zeros */
    OP_FRAMED,   /* normal images with a frame of zeros: the first row, and `limit` columns on each side, or one more on
                    the left */
    OP_INFINITE, /* normal, but every 4999th number is infinite */
    OP_MISSING   /* 0 or 1, but every fifth is NaN */
} op_fill;

/* A leaf of a case's graph. A leaf with a batch is an input, one without is a weight. `slot` > 0 makes it the
 * optimizer's slot number slot - 1 of leaf 0. */
typedef struct op_leaf {
    td_shape shape;
    td_dtype dtype;
    op_fill fill;
    double step;
    int limit;
    int slot;
    bool constant; /* the op has no gradient for it although its value matters */
} op_leaf;

enum { OP_MAX_LEAVES = 6, OP_MAX_SHARDS = 4 };

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
    /* Emits the node under test; NULL means op(leaves...) with attrs. */
    tdi_node *(*build)(tdi_graph *graph, tdi_node *const *leaf, const op_case *c);
    int n_leaves;
    op_leaf leaf[OP_MAX_LEAVES];
    int shards;                  /* shards of the batch; 0 means one */
    int64_t rows[OP_MAX_SHARDS]; /* of each shard; {0} means one shard of 3 rows */
    int group_size;              /* consecutive shards that share batch statistics; 0 means all of them */
    int groups;                  /* groups within a shard that have batch statistics of their own; 0 means one */
    bool skip;                   /* this step updates nothing */
};

/* Builds an update of the variable that leaf 0 is. */
tdi_node *op_case_update(tdi_graph *graph, tdi_node *const *leaf, const op_case *c);

int op_case_count(void);
const op_case *op_case_at(int index);

/* A case that is ready to run: its graph, values from a fixed random sequence, and an evaluation that has not run yet.
 */
typedef struct op_run {
    const op_case *c;
    tdi_graph *graph;
    tdi_node *node; /* under test */
    tdi_node *leaf[OP_MAX_LEAVES];
    tdi_node *gradient[OP_MAX_LEAVES]; /* with `gradients`: of loss = sum of node * weights; NULL: none */
    int shards;
    int64_t rows[OP_MAX_SHARDS], all_rows;
    void *inputs[OP_MAX_LEAVES + 1]; /* the last: the weights of the loss, when node has a batch */
    tdi_variable variables[OP_MAX_LEAVES + 1];
    int64_t variable_floats;
    float *values, *slots[3];
    evaluation *evaluation;
} op_run;

typedef struct op_run_options {
    int64_t rows;   /* of every shard; -1 means the case's own */
    bool gradients; /* emit the backward nodes too */
} op_run_options;

/* Makes a case ready, or aborts with a message when it does not build. The caller frees the result by op_run_free. */
op_run *op_run_create(const op_case *c, op_run_options options);
void op_run_free(op_run *run);

/* The numbers of a float32 leaf: those of the whole batch, or the weight's. */
float *op_run_leaf(op_run *run, int leaf, int64_t *count);
/* The weights that the loss gives to the node's elements in one shard. */
const float *op_run_loss_weights(const op_run *run, int shard);

/* Each file cases_*.c has one table, which ends with an op of NULL. */
extern const op_case op_cases_elementwise[], op_cases_shape[], op_cases_linear[], op_cases_windows[], op_cases_losses[],
    op_cases_training[], op_cases_lstm[];

#endif
