/* graph.h - a graph of ops: forward, backward, gradient reduction and update alike.
 *
 * A node is one op applied to nodes that stand before it; it has one value. tdi_node_create makes nodes, lets the op's
 * shape rule check them, and allocates them in the graph's arena. A failure poisons the graph: constructors return
 * NULL, as they do for NULL inputs, and graph->error holds the first sentence. So whoever emits a graph checks once, at
 * the end. */
#ifndef TDI_GRAPH_GRAPH_H
#define TDI_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "graph/shape.h"

typedef struct tdi_op tdi_op;
typedef struct tdi_node tdi_node;
typedef struct tdi_variable tdi_variable;
typedef struct tdi_graph tdi_graph;
typedef struct tdi_def_use tdi_def_use; /* graph/def_use.h */

/* Where a node's value lives. */
typedef enum tdi_home {
    TDI_HOME_ACTIVATIONS = 0, /* the planner places it, per shard */
    TDI_HOME_INPUT,           /* a batch buffer, per shard; `slot` is the input's number */
    TDI_HOME_VARIABLE,        /* `variable`'s own storage: a weight, updated in place */
    TDI_HOME_SLOT,            /* optimizer slot number `slot` of `variable` */
    TDI_HOME_GRADIENT,        /* `variable`'s slice of the shard's gradient arena */
    TDI_HOME_EXCHANGE,        /* shared by all shards: [shards, n] */
    TDI_HOME_METRIC,          /* accumulator number `slot`, per shard: doubles [total, count] */
    TDI_HOME_OUTPUT           /* kept for the caller: `slot` is the output's number */
} tdi_home;

struct tdi_node {
    int id; /* position in graph->nodes */
    const tdi_op *op;
    tdi_graph *graph;
    tdi_node **in; /* an entry is NULL where an optional input is absent */
    int n_in;
    const void *attrs; /* of op->attrs_size bytes, in the graph's arena */
    td_shape shape;
    td_dtype dtype;
    tdi_home home;
    int slot;
    tdi_variable *variable;
    const char *scope; /* the layer's name, or "loss", "adam", ...: for messages and explain */
    bool bfloat16;     /* the layer's policy asks for it: the precision pass decides */
    bool update_phase; /* of the update phase: runs once per replica (reduction, update), not once per shard */
    bool effect;       /* live although nothing reads it: an update, a metric */
};

struct tdi_graph {
    tdi_arena *arena;
    tdi_vec(tdi_node *) nodes;      /* in an order that respects edges */
    tdi_vec(tdi_node *) parameters; /* one node per variable */
    tdi_vec(tdi_node *) outputs;    /* roots besides the nodes marked `effect` */
    const char *scope;              /* new nodes get it, and `bfloat16`: whoever emits sets them */
    bool bfloat16;
    const tdi_node *backward;   /* the first node of backpropagation; NULL: there is none */
    int shards;                 /* shards of the global batch: the first extent of an all_gather */
    bool norms;                 /* updates need gradients' norms: replicas cut updates between the blocks of these */
    const tdi_def_use *def_use; /* of the finished graph: set by tdi_schedule_make; NULL before */
    bool effects_last;          /* the schedule puts every effect behind the last collective, which may break */
    int64_t rows;               /* of the largest global batch, where `exchanged`; 0: it is not known */
    bool gathers_factors;       /* set by the fuse pass: the graph is for batches of at most `rows` */
    bool exchanged;             /* shards of other processes: REDUCEs bring the sums of gradients (tdi_all_reduce) */
    tdi_error error;
};

tdi_graph *tdi_graph_create(void); /* NULL when memory is out */
void tdi_graph_free(tdi_graph *graph);

/* Appends op(in...), its attributes copied (NULL: zeros). NULL after a failure. */
tdi_node *tdi_node_create(tdi_graph *graph, const tdi_op *op, const void *attrs, int n_in, tdi_node *const *in);

/* Per-op constructors are declared in ops/ops.h; these three have no inputs. */
tdi_node *tdi_input(tdi_graph *graph, int slot, const td_shape *shape, td_dtype dtype);
tdi_node *tdi_parameter(tdi_graph *graph, tdi_variable *variable); /* the same node each time */
tdi_node *tdi_slot(tdi_graph *graph, tdi_variable *variable, int slot);

bool tdi_is_leaf(const tdi_node *node); /* one of these three */
/* The node whose bytes a view refers to; the node itself when it is no view. */
const tdi_node *tdi_root(const tdi_node *node);
/* How many shards divide among themselves what the op reads (tdi_op.dealt); 1: each reads it all. */
int tdi_dealt_among(const tdi_node *node);

/* Checks that every edge points back, every shape is what the op's rule gives, homes and variables agree, and
 * attributes are present: TD_INTERNAL naming the node otherwise. Called between passes. */
td_status tdi_graph_verify(const tdi_graph *graph, tdi_error *error);

/* A weight or a statistic: what a model trains, saves and shares between replicas. */
struct tdi_variable {
    const char *layer, *name; /* "dense_1", "kernel" */
    td_shape shape;
    bool trainable;
    float l1, l2; /* regularizer */
    int index;    /* in the model's list, Keras's order */
    int64_t elements;
    int64_t offset; /* floats, in the weight arena; trained weights in the order in which gradients become ready */
};

#endif
