/* place.h - how the threads of a worker share the output of a node: by rows, by columns, or not at all. */
#ifndef TDI_PLAN_THREADS_PLACE_H
#define TDI_PLAN_THREADS_PLACE_H

#include "device/kernel.h"

/* Thread `thread`'s share of `extent`. The cut depends on the extent alone, not on whether rows or columns are meant,
 * since a thread may read as columns what it wrote as rows of the transpose. */
void tdi_range(tdi_split split, int64_t extent, int thread, int threads, int64_t *begin, int64_t *end);
/* The extent that a split divides: axis 0, the last axis, the elements; 1 for TDI_WHOLE. */
int64_t tdi_split_extent(tdi_split split, const td_shape *shape);

/* The first `threads` of the threads share a node by `split`; TDI_WHOLE: thread 0 makes it alone. */
typedef struct tdi_placement {
    tdi_split split; /* never TDI_DEPTH */
    int threads;
    int depth; /* threads that divide a product by TDI_DEPTH; `split` and `threads` then describe its second half; 0:
                  none */
} tdi_placement;

/* What a node's placement follows from. */
typedef struct tdi_placing {
    const tdi_call *call;                                                     /* its shapes and attributes */
    unsigned splits;                                                          /* that its kernel can do */
    int threads;                                                              /* that there are */
    tdi_placement (*placement_of)(const void *context, const tdi_node *node); /* an earlier node's */
    const void *context;
} tdi_placing;

/* As its first input of the same size is shared, so that threads read what they wrote; products and what has no such
 * input by as many threads as make it soonest, by columns where they are wide enough, else by rows; small work is not
 * shared. Of two threads both share whatever can be shared. */
tdi_placement tdi_place(const tdi_node *node, const tdi_placing *placing);

/* The share, of 1, of the node's value and of input 0 that its call touches at most (tdi_op.touches). */
double tdi_share_touched(const tdi_node *node, const tdi_call *call);

/* Nanoseconds that a node takes when the first `threads` share it by `split`, with the meeting before it that sharing
 * it so asks for. `owners`: the number of threads that have rows of its weight in their caches. */
double tdi_price(const tdi_node *node, const tdi_placing *placing, tdi_split split, int threads, int owners);

#endif
