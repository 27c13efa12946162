/* op.h - what an op is: its meaning (shape rule, gradient rule, plain-C reference) and what passes need to know of it.
 *
 * One file per op or family in src/ops. Kernels that make an op fast are elsewhere (src/cpu/<op>_*.c). */
#ifndef TDI_GRAPH_OP_H
#define TDI_GRAPH_OP_H

#include "graph/graph.h"

typedef struct tdi_call tdi_call;       /* device/call.h */
typedef struct tdi_control tdi_control; /* device/call.h */

/* How a value is divided among the lanes of a replica: not at all (lane 0 makes it whole), along axis 0, along the last
 * axis, or as a flat run of elements. TDI_DEPTH divides a product's sums instead: each lane adds up its own columns of
 * input 0 times its own rows of input 1, first those sums that other lanes end, and when all have, those that it ends
 * itself, with what the others have. */
typedef enum tdi_split { TDI_WHOLE = 0, TDI_ROWS, TDI_COLUMNS, TDI_FLAT, TDI_DEPTH } tdi_split;

#define TDI_CAN_ROWS    (1u << TDI_ROWS)
#define TDI_CAN_COLUMNS (1u << TDI_COLUMNS)
#define TDI_CAN_FLAT    (1u << TDI_FLAT)
#define TDI_CAN_DEPTH   (1u << TDI_DEPTH)

struct tdi_op {
    const char *name;   /* "conv2d" */
    int min_in, max_in; /* max_in -1: any number */
    size_t attrs_size;

    /* Fills node->shape and node->dtype from node->in and node->attrs, or fails with a sentence that names the shapes.
     */
    td_status (*infer)(tdi_node *node, tdi_error *error);

    /* Emits nodes for the gradient of each input: dx[i] stays NULL where there is none. NULL: the op has no gradient,
     * and `no_gradient` says why. */
    void (*gradient)(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx);
    const char *no_gradient;

    /* The meaning in plain C: correct for every shape, dtype and attribute the shape rule admits. Makes all of
     * call->out, whatever call->split says (the place pass never splits it). Only cast's knows bfloat16: others
     * are called on widened operands (widen.h). */
    void (*reference)(const tdi_call *call);

    /* Writes into the control block the numbers that kernels of the op read there: what the attributes say, reckoned
     * for the block's learning rate, rate_before and iteration. Called by the host before a step, never by a kernel.
     * NULL: the op's kernels read no such numbers. */
    void (*numbers)(const void *attrs, tdi_control *control);

    /* Floating-point operations (a multiply-add is 2) of one call; NULL: one per output element. */
    double (*flops)(const tdi_call *call);

    /* Which part of input i a lane reads to make its part of the output under `split`: the same split of that input's
     * own axes, or TDI_WHOLE. NULL: the op cannot be split. */
    tdi_split (*reads)(const tdi_node *node, int i, tdi_split split);

    /* Bit i (all bits: every input): input i may be bfloat16 instead of float32. The result is bfloat16 then too, but
     * for sums (weight gradients, statistics): `infer` says. */
    unsigned bfloat16;
    bool multiplies; /* a convolution or a matrix product: worth rounding float32 inputs for */

    /* Bit i: the output may take input i's storage when their sizes agree and nothing reads that input later. */
    unsigned in_place;
    bool moves; /* what it makes are elements of its inputs, of which it reads no more than that */
    bool dealt; /* lanes, and parts, that share it read each their own elements of what they read whole */
    bool view;  /* the value is input 0's bytes, under another shape (reshape) or later (filled): never computed */
    /* A few words of attributes for explain ("3x3 same, stride 2"); NULL: none. */
    void (*describe)(const tdi_node *node, char *text, size_t size);
};

static inline bool tdi_may_be_bfloat16(const tdi_op *op, int i)
{
    return i < 32 ? op->bfloat16 >> i & 1u : op->bfloat16 == ~0u;
}

/* The ops without inputs: their values are there before a step begins. */
extern const tdi_op tdi_op_input, tdi_op_parameter, tdi_op_slot;

#endif
