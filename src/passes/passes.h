/* passes.h - from a graph to a frozen order, a division among lanes, and a layout in memory. */
#ifndef TDI_PASSES_PASSES_H
#define TDI_PASSES_PASSES_H

#include "base/text.h"
#include "graph/kernel.h"
#include "ops/ops.h"

/* Gradients of a scalar-per-part `loss` for the given nodes: emits the backward nodes; result[i] is NULL where the loss
 * does not depend on of[i]. TD_UNSUPPORTED naming the op when one on the way has no gradient. */
td_status tdi_gradients(tdi_graph *graph, tdi_node *loss, int count, tdi_node *const *of, tdi_node **result);

/* Makes values bfloat16 where their layer's policy wishes it and one of the device's `kernels` (NULL-terminated)
 * computes so; casts stand between them and float32. Before tdi_fuse. */
td_status tdi_precision(tdi_graph *graph, const tdi_kernel *const *kernels);

/* Lets convolutions and pools do the padding before them, and batch normalizations the addition and rectifier after
 * them. Before gradients are emitted. Notes as for tdi_fuse. */
td_status tdi_fold(tdi_graph *graph, tdi_text *notes);

/* How many inputs and outputs of the graph each node is, by id, in the graph's arena; NULL when memory is out. */
int *tdi_count_readers(const tdi_graph *graph);

/* Puts ops that another one can do on its way, and that nothing else reads, into that op (fuse.c says which). One line
 * per fusion is added to `notes` (may be NULL). */
td_status tdi_fuse(tdi_graph *graph, tdi_text *notes);
td_status tdi_fuse_losses(tdi_graph *graph, tdi_text *notes); /* a part of it */

/* Lets the nodes behind the first `forward_nodes` read copies of what is cheap to compute anew, made right before they
 * are first read, so that the originals need not be kept. After the passes that change nodes. */
td_status tdi_rematerialize(tdi_graph *graph, int forward_nodes, tdi_text *notes);

/* Gives a node a home outside the activations, by way of a copy where the node cannot move. Returns the node at home.
 */
tdi_node *tdi_settle(tdi_graph *graph, tdi_node *node, tdi_home home, tdi_variable *variable, int slot);

/* ---- schedule ---- */

typedef enum tdi_step_kind { TDI_STEP_KERNEL, TDI_STEP_BEGIN, TDI_STEP_FINISH } tdi_step_kind;

typedef struct tdi_scheduled {
    tdi_step_kind kind;
    tdi_node *node; /* KERNEL */
    int collective; /* BEGIN, FINISH */
} tdi_scheduled;

typedef tdi_vec(tdi_scheduled) tdi_schedule;

/* The order of one step: live nodes only, in creation order; `once` nodes as soon as their variables' gradients are
 * ready and nobody reads the old weights any more. With several parts that happens bucket by bucket: a bucket's
 * reduction is begun when it is ready, and finished when the next one is (so that backpropagation goes on in between).
 * Updates that need norms of gradients come after all of backpropagation. */
td_status tdi_schedule_make(const tdi_graph *graph, tdi_schedule *schedule, int *collectives, tdi_error *error);

/* ---- place: who makes what ---- */

/* Lane `lane`'s share of `extent`. The cut depends on the extent alone, not on whether rows or columns are meant, since
 * a lane may read as columns what it wrote as rows of the transpose. */
void tdi_range(tdi_split split, int64_t extent, int lane, int lanes, int64_t *begin, int64_t *end);
/* The extent that a split divides: axis 0, the last axis, the elements; 1 for TDI_WHOLE. */
int64_t tdi_split_extent(tdi_split split, const td_shape *shape);

/* The first `lanes` of the lanes share a node by `split`; TDI_WHOLE: lane 0 makes it alone. */
typedef struct tdi_placement {
    tdi_split split; /* never TDI_DEPTH */
    int lanes;
    int depth; /* so many divide a product by TDI_DEPTH, whose ending the other two are about; 0: it is not */
} tdi_placement;

/* What a node's placement follows from. */
typedef struct tdi_placing {
    const tdi_call *call;                                                     /* its shapes and attributes */
    unsigned splits;                                                          /* that its kernel can do */
    int lanes;                                                                /* that there are */
    tdi_placement (*placement_of)(const void *context, const tdi_node *node); /* an earlier node's */
    const void *context;
} tdi_placing;

/* As its first input of the same size is shared, so that lanes read what they wrote; products and what has no such
 * input by as many lanes as make it soonest, by columns where they are wide enough, else by rows; small work is not
 * shared. Of two lanes both share whatever can be shared. */
tdi_placement tdi_place(const tdi_node *node, const tdi_placing *placing);

/* Nanoseconds that a node takes when the first `lanes` share it by `split`, with the meeting before it that sharing it
 * so asks for. `owners`: so many lanes have parts of its weight in their caches; 0: none has. */
double tdi_price(const tdi_node *node, const tdi_placing *placing, tdi_split split, int lanes, int owners);

/* ---- layout ---- */

/* Which values, by node id, have their samples abreast (tdi_value): those between kernels that take them so, in chains
 * that a leader is part of. takes(context, node) is the best that a kernel says of the node, every value of it row
 * after row. */
td_status tdi_layout_choose(const tdi_graph *graph, const tdi_schedule *schedule,
                            tdi_abreast (*takes)(void *context, const tdi_node *node), void *context, bool *abreast,
                            tdi_error *error);

/* ---- memory ---- */

/* A stretch of the activation arena, in use from step `first` to step `last` inclusive. */
typedef struct tdi_storage {
    int64_t bytes;
    int first, last;
    int64_t offset; /* the result: a multiple of 64 */
} tdi_storage;

/* Places storages so that those alive at the same time do not overlap (greedy by size, Pisarchyk & Lee 2020); returns
 * the bytes needed, or -1 when memory is out. */
int64_t tdi_memory_place(tdi_storage *storages, int count);

#endif
