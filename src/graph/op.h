/* op.h - what an op is: its meaning (shape rule, gradient rule, plain-C reference) and what passes and planners need to
 * know of it.
 *
 * Each op stands in a file of src/ops. Kernels that make an op fast are a device's (src/cpu). A pass or planner asks an
 * op for its properties here; only a rule that rewrites one op into another names ops. */
#ifndef TDI_GRAPH_OP_H
#define TDI_GRAPH_OP_H

#include "graph/graph.h"

typedef struct tdi_call tdi_call;       /* device/call.h */
typedef struct tdi_control tdi_control; /* device/call.h */

/* How threads divide a value: not at all (thread 0 computes the whole), along axis 0, along the last axis, or as a flat
 * run of elements. TDI_DEPTH divides a product's sums instead: each thread adds up its own columns of input 0 times its
 * own rows of input 1. It begins with the sums that other threads complete, synchronizes, and then completes its own
 * with what the others have. */
typedef enum tdi_split { TDI_WHOLE = 0, TDI_ROWS, TDI_COLUMNS, TDI_FLAT, TDI_DEPTH } tdi_split;

#define TDI_CAN_ROWS    (1u << TDI_ROWS)
#define TDI_CAN_COLUMNS (1u << TDI_COLUMNS)
#define TDI_CAN_FLAT    (1u << TDI_FLAT)
#define TDI_CAN_DEPTH   (1u << TDI_DEPTH)

/* Which split an op wants, where its kernel can do several. The first two continue the division of an input; the others
 * begin a division of their own. */
typedef enum tdi_share_rule {
    TDI_SHARE_AS_INPUT = 0,   /* as the first input that can be divided alike; else by rows or columns, if large */
    TDI_SHARE_SUMS,           /* the same; by columns although the result is small, if its input is divided */
    TDI_SHARE_PRODUCT,        /* a matrix product (attributes: tdi_matmul_attrs), whose threads own rows of a weight */
    TDI_SHARE_PRODUCT_UPDATE, /* a weight's update by a product: rows, which its threads own from then on */
    TDI_SHARE_STEPS,          /* a recurrence along axis 1: columns where rows are few, synchronized at each step */
    TDI_SHARE_ROWS,           /* rows, however the inputs are divided: few numbers made of many */
    TDI_SHARE_SCATTER,        /* sums at indices: rows where indices are few and all rows are written, else columns */
    TDI_SHARE_RULES
} tdi_share_rule;

struct tdi_op {
    const char *name;   /* "conv2d" */
    int min_in, max_in; /* max_in -1: any number */
    size_t attrs_size;

    /* ---- meaning: called on the thread that builds the graph, but for `reference`; none blocks ---- */

    /* Fills node->shape and node->dtype from node->in and node->attrs. Called when a node is created, and again by the
     * verifier and by passes that changed inputs. Fails with TD_INVALID_ARGUMENT and a sentence that names the shapes.
     * Never NULL. */
    td_status (*infer)(tdi_node *node, tdi_error *error);

    /* Emits nodes for the gradient of each input: dx[i] stays NULL where there is none. Called once a node, while
     * tdi_gradients walks backwards; failures poison the graph. NULL: the op has no gradient, and `no_gradient` says
     * why. */
    void (*gradient)(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx);
    const char *no_gradient;

    /* The meaning in plain C: correct for every shape, dtype and attribute that the shape rule admits. Computes all of
     * call->out, whatever call->split says: the planner never splits it. Called by one thread of a plan, in each step.
     * Only cast's knows bfloat16: others are called on widened operands (widen.h). Never NULL. */
    void (*reference)(const tdi_call *call);

    /* Writes into the control block the numbers that kernels of the op read there: what the attributes say, reckoned
     * for the block's learning rate, rate_before and iteration. Called by the host before a step, never by a kernel.
     * NULL: the op's kernels read no such numbers. */
    void (*numbers)(const void *attrs, tdi_control *control);

    /* Floating-point operations of one call (a multiply-add is 2), for prices and reports. NULL: one per output
     * element. */
    double (*flops)(const tdi_call *call);

    /* A few words of attributes for explain ("3x3 same, stride 2") into `text`. NULL: none. */
    void (*describe)(const tdi_node *node, char *text, size_t size);

    /* ---- where the value comes from: at most one is set; none: the op is computed each step ---- */

    bool leaf;         /* it is there before a step begins: an input, a parameter, a slot */
    bool constant;     /* it is the same in each step: computed once when it lives in the activations */
    bool view;         /* it is input 0's bytes, under another shape (reshape) or later (extra_output_of) */
    bool extra_output; /* it is written by the op that takes it as an input, beside that op's own value */
    bool gathers;      /* a collective: each shard's input was written into its slot of the value */

    /* ---- bytes ---- */

    /* Bit i (all bits: every input): input i may be bfloat16 instead of float32. The result is bfloat16 then too, but
     * for sums (weight gradients, statistics): `infer` says. */
    unsigned bfloat16;
    bool multiplies;   /* a convolution or a matrix product: worth rounding float32 inputs for */
    unsigned in_place; /* bit i: the output may take input i's storage, if sizes agree and nothing reads it later */
    bool moves;        /* the elements computed are elements of the inputs, of which it reads no more than that */
    int touches;       /* the input whose size bounds what is read and written of input 0, a weight; 0: it is all */
    bool cheap;        /* rematerialization computes the value anew rather than keeps it (views are free anyway) */

    /* ---- division among threads and replicas ---- */

    /* How a thread reads input i when it computes its range of the output under `split`: by the same split of that
     * input's own axes, or TDI_WHOLE. Called by the planner. NULL: the op cannot be split. */
    tdi_split (*reads)(const tdi_node *node, int i, tdi_split split);
    tdi_share_rule share;
    bool dealt;       /* threads, and shards, that share it read each their own elements of what they read whole */
    bool update_rows; /* update phase: replicas and threads divide it by rows; else as a flat run, if they can */
    bool reduces;     /* update phase: it reads the gradients of its variable of all shards, or their sum */
    bool read_by_all; /* update phase: every replica reads the whole value, so all meet between it and its readers */

    /* ---- fusion: what the op can compute besides; set up in its attributes by fuse.c and fold.c ---- */

    /* Offset in the attributes of an int, the activation that is applied to the result after the bias, input 2, has
     * been added; TD_LINEAR: none. 0: the op takes no epilogue. */
    size_t epilogue;
    int residual;            /* the input that is added to the result before it is rectified (a batch_norm); 0: none */
    const tdi_op *made_with; /* the op that can write this one's value as an extra output; NULL: none */
};

static inline bool tdi_may_be_bfloat16(const tdi_op *op, int i)
{
    return i < 32 ? op->bfloat16 >> i & 1u : op->bfloat16 == ~0u;
}

/* The ops without inputs: their values are there before a step begins. */
extern const tdi_op tdi_op_input, tdi_op_parameter, tdi_op_slot;

#endif
