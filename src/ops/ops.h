/* ops.h - every op: its attributes and the constructor that adds it to a graph.
 *
 * Constructors accept NULL (poison) inputs and return NULL then. Shapes are those of a shard: `batch` is its number of
 * rows, `global batch` that of all shards. Functions said to be for kernels are shared by an op's reference and its
 * kernels, so that both give the same numbers. */
#ifndef TDI_OPS_OPS_H
#define TDI_OPS_OPS_H

#include <tandem/layers.h>

#include "base/rng.h"
#include "base/sum_tree.h"
#include "device/call.h"
#include "graph/op.h"

/* All ops: X(stem) for each tdi_op_<stem>. */
/* clang-format off */
#define TDI_OPS(X)                                                                                                     \
    X(input) X(parameter) X(slot)                                                                                      \
    X(fill) X(extra_output) X(extra_output_of) X(identity) X(cast) X(affine) X(unary) X(unary_grad)                    \
    X(binary) X(bias_add)                                                                                              \
    X(reduce) X(broadcast) X(reshape) X(concat) X(slice) X(pad) X(gather) X(scatter_add)                               \
    X(matmul)                                                                                                          \
    X(conv2d) X(conv2d_grad_input) X(conv2d_grad_filter)                                                               \
    X(max_pool2d) X(max_pool2d_grad) X(average_pool2d) X(average_pool2d_grad)                                          \
    X(upsample2d) X(upsample2d_grad)                                                                                   \
    X(softmax) X(softmax_grad) X(log_softmax) X(log_softmax_grad)                                                      \
    X(sparse_softmax_cross_entropy) X(sparse_softmax_cross_entropy_grad)                                               \
    X(softmax_cross_entropy) X(softmax_cross_entropy_grad)                                                             \
    X(sigmoid_cross_entropy) X(sigmoid_cross_entropy_grad)                                                             \
    X(dropout)                                                                                                         \
    X(lstm) X(lstm_output) X(lstm_grad) X(lstm_grad_recurrent) X(lstm_keep)                                            \
    X(batch_norm_stats) X(batch_norm_merge) X(batch_norm) X(batch_norm_grad_stats) X(batch_norm_grad_merge)            \
    X(batch_norm_grad_input) X(batch_norm_inference) X(batch_norm_moving)                                              \
    X(count_valid) X(valid_weights) X(class_weights) X(batch_mean) X(batch_mean_grad)                                  \
    X(sparse_categorical_accuracy) X(categorical_accuracy) X(binary_accuracy) X(in_top_k)                              \
    X(accumulate) X(class_pairs) X(count_pairs) X(buckets) X(bucket_sums)                                              \
    X(regularization) X(regularize) X(all_gather) X(reduce_scatter) X(all_reduce)                                      \
    X(accumulate_gradient) X(squared_norm) X(clip_factor) X(clip_by_norm)                                              \
    X(sgd) X(adam) X(gather_update) X(matmul_update) X(leave_gradient) X(joint_update) X(moving_average)
/* clang-format on */

#define TDI_DECLARE_OP_(stem) extern const tdi_op tdi_op_##stem;
TDI_OPS(TDI_DECLARE_OP_)
#undef TDI_DECLARE_OP_

extern const tdi_op *const tdi_ops[]; /* all of them, NULL-terminated */

/* ---- making and viewing ---- */

typedef struct tdi_fill_attrs {
    float value;
    td_shape shape;
} tdi_fill_attrs;
tdi_node *tdi_fill(tdi_graph *graph, float value, const td_shape *shape);

/* Memory for a second value of the op that takes it as an input. */
tdi_node *tdi_extra_output(tdi_graph *graph, const td_shape *shape);
/* That second value, once `producer`, which takes `output` as an input, has written it. */
tdi_node *tdi_extra_output_of(tdi_graph *graph, tdi_node *output, tdi_node *producer);

tdi_node *tdi_identity(tdi_graph *graph, tdi_node *x); /* a copy: gives a value a home of its own */

typedef struct tdi_cast_attrs {
    td_dtype dtype;
} tdi_cast_attrs;
tdi_node *tdi_cast(tdi_graph *graph, tdi_node *x, td_dtype dtype); /* to an integer: truncates towards zero */

/* ---- element-wise ---- */

/* scale * x + shift */
typedef struct tdi_affine_attrs {
    float scale, shift;
} tdi_affine_attrs;
tdi_node *tdi_affine(tdi_graph *graph, tdi_node *x, float scale, float shift);

/* The element-wise td_activations keep their numbers (softmax and log-softmax are ops of their own); others follow. */
typedef enum tdi_unary_kind {
    TDI_UNARY_LOG = TD_ACTIVATION_COUNT,
    TDI_UNARY_SQRT,
    TDI_UNARY_RSQRT,
    TDI_UNARY_SQUARE,
    TDI_UNARY_NEGATE,
    TDI_UNARY_ABS,
    TDI_UNARY_SIGN,
    TDI_UNARY_CLIP_PROBABILITY, /* to [1e-7, 1 - 1e-7]; gradient 0 outside */
    TDI_UNARY_COUNT
} tdi_unary_kind;
typedef struct tdi_unary_attrs {
    int kind; /* a td_activation or a tdi_unary_kind */
} tdi_unary_attrs;
tdi_node *tdi_unary(tdi_graph *graph, tdi_node *x, int kind);
const char *tdi_unary_name(int kind); /* "relu", "log" */
/* Is the derivative computed from y = f(x) rather than from x? So for relu, tanh, sigmoid, exponential, ... */
bool tdi_unary_grad_from_output(int kind);
float tdi_unary_value(int kind, float x);          /* the plain reference, one element */
float tdi_unary_derivative(int kind, float value); /* `value` is y or x, as said above */
/* dy * f'(value): `value` is y or x as said above. Attributes: tdi_unary_attrs. The fuse pass may give a relu a second
 * dy, which is added to the first. */
tdi_node *tdi_unary_grad(tdi_graph *graph, tdi_node *value, tdi_node *dy, int kind);

typedef enum tdi_binary_kind {
    TDI_ADD,
    TDI_SUBTRACT,
    TDI_MULTIPLY,
    TDI_DIVIDE,
    TDI_MAXIMUM,
    TDI_MINIMUM
} tdi_binary_kind;
typedef struct tdi_binary_attrs {
    int kind;
} tdi_binary_attrs;
tdi_node *tdi_binary(tdi_graph *graph, tdi_binary_kind kind, tdi_node *a, tdi_node *b); /* broadcasts as NumPy */

tdi_node *tdi_bias_add(tdi_graph *graph, tdi_node *x, tdi_node *bias); /* bias: [last extent of x] */

/* ---- shape ---- */

typedef enum tdi_reduce_kind { TDI_SUM, TDI_MEAN, TDI_MAX } tdi_reduce_kind;
typedef struct tdi_reduce_attrs {
    int kind;
    unsigned axes; /* bit i: axis i */
    bool keepdims;
} tdi_reduce_attrs;
/* Where axis 0 is the batch, the shard's rows are reduced, and the result has no batch. */
tdi_node *tdi_reduce(tdi_graph *graph, tdi_reduce_kind kind, tdi_node *x, unsigned axes, bool keepdims);
/* Sees x as [outer, reduced, inner]; false when kept axes stand between reduced ones. Axes of extent 1 count as either.
 */
typedef struct tdi_reduce_extents {
    int64_t outer, reduced, inner;
} tdi_reduce_extents;
bool tdi_find_reduce_extents(const tdi_call *call, tdi_reduce_extents *extents); /* for kernels */
/* Sums x down to `shape`, the inverse of broadcasting. */
tdi_node *tdi_sum_to(tdi_graph *graph, tdi_node *x, const td_shape *shape);

typedef struct tdi_shape_attrs {
    td_shape shape;
} tdi_shape_attrs;
tdi_node *tdi_broadcast(tdi_graph *graph, tdi_node *x, const td_shape *shape);
tdi_node *tdi_reshape(tdi_graph *graph, tdi_node *x, const td_shape *shape); /* TDI_BATCH stays in front if it was */

typedef struct tdi_concat_attrs {
    int axis; /* >= 0; not the batch */
} tdi_concat_attrs;
tdi_node *tdi_concat(tdi_graph *graph, int count, tdi_node *const *in, int axis);

typedef struct tdi_slice_attrs {
    int axis; /* >= 0; not the batch */
    int64_t begin, size;
} tdi_slice_attrs;
tdi_node *tdi_slice(tdi_graph *graph, tdi_node *x, int axis, int64_t begin, int64_t size);

typedef struct tdi_pad_attrs {
    int axis;
    int64_t before, after; /* zeros added */
} tdi_pad_attrs;
tdi_node *tdi_pad(tdi_graph *graph, tdi_node *x, int axis, int64_t before, int64_t after);

/* table [n, ...], indices (int32, any shape) -> [indices..., ...]. An index outside [0, n) gives NaN. */
tdi_node *tdi_gather(tdi_graph *graph, tdi_node *table, tdi_node *indices);
/* Adds rows of dy into zeros of [n, ...] at indices, in index order; attributes: tdi_shape_attrs. */
tdi_node *tdi_scatter_add(tdi_graph *graph, tdi_node *indices, tdi_node *dy, const td_shape *shape);

/* ---- linear algebra ---- */

/* out = activation(op(a) . op(b) + bias), where op transposes or not. a and b are matrices whose last extent is columns
 * and whose other extents are rows. The shape of out is a's with the last extent replaced, or [columns of a, ...] when
 * a is transposed. With a slope instead of a bias, input 2 is a value y of out's shape: out = op(a) . op(b) * f'(y). */
typedef struct tdi_matmul_attrs {
    bool transpose_a, transpose_b;
    int activation; /* set by the fuse pass; an element-wise td_activation whose derivative comes from its output */
    int slope;      /* set by the fuse pass, where b is transposed: f, such a function; TD_LINEAR: none */
    /* Set by the fuse pass, of a leave_gradient that other processes take part in. Above 0: always the factors, in a
     * value of so many floats, which an all_gather brings to all; below 0: always the product, for an all_reduce. */
    int64_t factors;
} tdi_matmul_attrs;
tdi_node *tdi_matmul(tdi_graph *graph, tdi_node *a, tdi_node *b, bool transpose_a, bool transpose_b);

/* x [batch, h, w, c], filter [kh, kw, c / groups, f], bias [f] or absent -> [batch, oh, ow, f]. Padding TD_SAME is
 * Keras's: max((ceil(h / s) - 1) * s + (k - 1) * d + 1 - h, 0) in all, the smaller half in front. */
typedef struct tdi_conv2d_attrs {
    int stride_h, stride_w, dilation_h, dilation_w, groups;
    td_padding padding;
    td_sides sides; /* set by the fold pass: zeros around x, besides the padding */
    int activation; /* as for matmul */
    td_shape shape; /* of the result, for the two gradients */
} tdi_conv2d_attrs;
tdi_node *tdi_conv2d(tdi_graph *graph, tdi_node *x, tdi_node *filter, const tdi_conv2d_attrs *attrs);
tdi_node *tdi_conv2d_grad_input(tdi_graph *graph, tdi_node *dy, tdi_node *filter, const tdi_conv2d_attrs *attrs);
tdi_node *tdi_conv2d_grad_filter(tdi_graph *graph, tdi_node *x, tdi_node *dy, const tdi_conv2d_attrs *attrs);

/* Extents and leading padding of a window op along one axis. */
typedef struct tdi_window {
    int64_t out, before; /* output extent; zeros (or skipped cells) in front */
} tdi_window;
tdi_window tdi_window_extent(int64_t in, int64_t size, int64_t stride, int64_t dilation, td_padding padding);

/* The same with `before` and `after` zeros (or skipped cells) put around the axis first. */
tdi_window tdi_window_around(int64_t in, int64_t size, int64_t stride, int64_t dilation, td_padding padding, int before,
                             int after);
/* A convolution's, down and across. */
tdi_window tdi_conv2d_window_h(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter);
tdi_window tdi_conv2d_window_w(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter);

typedef struct tdi_pool2d_attrs {
    int pool_h, pool_w, stride_h, stride_w;
    td_padding padding;
    td_sides sides; /* set by the fold pass, for maxima: skipped cells around x, besides the padding */
    td_shape shape; /* of x, for average_pool2d_grad */
    int activation; /* set by the fuse pass, for gradients: their result is multiplied by its derivative, of its output
                       x, which is the average's input 1. As for matmul */
} tdi_pool2d_attrs;
tdi_node *tdi_max_pool2d(tdi_graph *graph, tdi_node *x, const tdi_pool2d_attrs *attrs);
/* The gradient goes to the first maximum of each window, in row-major order. */
tdi_node *tdi_max_pool2d_grad(tdi_graph *graph, tdi_node *x, tdi_node *y, tdi_node *dy, const tdi_pool2d_attrs *attrs);
tdi_node *tdi_average_pool2d(tdi_graph *graph, tdi_node *x, const tdi_pool2d_attrs *attrs);
tdi_node *tdi_average_pool2d_grad(tdi_graph *graph, tdi_node *dy, const tdi_pool2d_attrs *attrs);

/* x [batch, h, w, c] -> [batch, h * factor_h, w * factor_w, c], and the adjoint. */
typedef struct tdi_upsample2d_attrs {
    int factor_h, factor_w;
    bool bilinear; /* else each pixel is repeated */
} tdi_upsample2d_attrs;
tdi_node *tdi_upsample2d(tdi_graph *graph, tdi_node *x, const tdi_upsample2d_attrs *attrs);
tdi_node *tdi_upsample2d_grad(tdi_graph *graph, tdi_node *dy, const tdi_upsample2d_attrs *attrs);
/* Position `at` of an enlarged axis takes the share `share` of its value from position `high` of the axis of `extent`,
 * and the rest from position `low`. For kernels. */
typedef struct tdi_taps {
    int64_t low, high;
    float share;
} tdi_taps;
tdi_taps tdi_upsample_taps(bool bilinear, int64_t extent, int factor, int64_t at);

/* ---- softmax and losses; over the last axis ---- */

tdi_node *tdi_softmax(tdi_graph *graph, tdi_node *x);
tdi_node *tdi_softmax_grad(tdi_graph *graph, tdi_node *y, tdi_node *dy);
tdi_node *tdi_log_softmax(tdi_graph *graph, tdi_node *x);
tdi_node *tdi_log_softmax_grad(tdi_graph *graph, tdi_node *y, tdi_node *dy);

/* The class number that a loss leaves out, if any. */
typedef struct tdi_ignore_attrs {
    bool any;
    int32_t number;
} tdi_ignore_attrs;
enum { TDI_MOST_LABEL = 1 << 24 }; /* every integer up to it is exact as a float */
static inline bool tdi_ignores(const tdi_ignore_attrs *ignore, int32_t label)
{
    return ignore->any && label == ignore->number;
}

/* logits [..., c], labels int32 [...] -> loss [...]; a label outside [0, c) gives NaN, the ignored one 0. */
tdi_node *tdi_sparse_softmax_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *labels,
                                           tdi_ignore_attrs ignore);
tdi_node *tdi_sparse_softmax_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *labels, tdi_node *dloss,
                                                tdi_ignore_attrs ignore);
/* logits, targets [..., c] -> loss [...] */
tdi_node *tdi_softmax_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *targets);
tdi_node *tdi_softmax_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *targets, tdi_node *dloss);
/* max(x, 0) - x * t + log(1 + exp(-|x|)), element-wise */
tdi_node *tdi_sigmoid_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *targets);
tdi_node *tdi_sigmoid_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *targets, tdi_node *dloss);
/* The fuse pass may give each of these gradients a fourth input, an extra output, to which it writes the losses. */

/* The number of the shard's labels [batch, ...] that are not `ignored`, as a float. */
tdi_node *tdi_count_valid(tdi_graph *graph, tdi_node *labels, int32_t ignored);
/* labels [batch, ...], the counts of all shards [shards] -> weights [batch, ...]: 0 for ignored labels; for valid ones
 * all labels of the global batch / the valid ones, which turns a mean over all labels into one over the valid. */
tdi_node *tdi_valid_weights(tdi_graph *graph, tdi_node *labels, tdi_node *valid, int32_t ignored);
void tdi_valid_weights_of(const tdi_call *call, int64_t begin, int64_t end); /* labels [begin, end); for kernels */

/* The weight of the class that each target [batch, ...] names: int32 class numbers, or of floats [batch, ..., c] the
 * largest of c, or for c = 1 the number rounded. A class without a weight has 1. */
typedef struct tdi_class_weights_attrs {
    int count;            /* classes 0 .. count - 1 have weights */
    const float *weights; /* outlives the graph */
} tdi_class_weights_attrs;
tdi_node *tdi_class_weights(tdi_graph *graph, tdi_node *target, const tdi_class_weights_attrs *attrs);
void tdi_class_weights_of(const tdi_call *call, int64_t begin, int64_t end); /* positions [begin, end); for kernels */

/* sum(x) / rows of the global batch / (elements per row): the shard's share of the mean over the global batch. Scalar.
 */
tdi_node *tdi_batch_mean(tdi_graph *graph, tdi_node *x);
tdi_node *tdi_batch_mean_grad(tdi_graph *graph, tdi_node *dy, const td_shape *shape);

/* 1 where the prediction is right: the first largest class; for binary, (p > threshold) == target, averaged over the
 * last axis. */
tdi_node *tdi_sparse_categorical_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *labels);
tdi_node *tdi_categorical_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *targets);
typedef struct tdi_binary_accuracy_attrs {
    float threshold;
} tdi_binary_accuracy_attrs;
tdi_node *tdi_binary_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *targets, float threshold);
/* 1 where fewer than k numbers of the prediction [..., c] are above that of the target's class, which is an int32 of
 * [...] or where [..., c] is largest; else 0, and for a class outside [0, c). */
typedef struct tdi_in_top_k_attrs {
    int k;
} tdi_in_top_k_attrs;
tdi_node *tdi_in_top_k(tdi_graph *graph, tdi_node *prediction, tdi_node *target, int k);
float tdi_is_in_top_k(const tdi_call *call, int64_t position); /* one of them; for kernels */
/* The ops that add to metric accumulators take weights [batch, ...], as many for a row as x's extents begin with (one
 * weight for consecutive elements), or NULL: each element counts by its weight instead of once. */
/* Adds sum(x) and the number of elements to metric accumulator `slot`. An effect. */
tdi_node *tdi_accumulate(tdi_graph *graph, tdi_node *x, tdi_node *weights, int slot);

/* How floats name a class; int32 are class numbers. */
typedef enum tdi_reading {
    TDI_LARGEST = 0, /* a row of the last axis: the position of the largest */
    TDI_NUMBER,      /* each is a class number, truncated */
    TDI_ABOVE,       /* class 1 above the threshold, which for targets is 0.5; else class 0 */
    TDI_AT_LEAST     /* the same, including the threshold */
} tdi_reading;
/* For each prediction actual * classes + predicted, as a float; -1 where either is none of the classes or the actual
 * class is ignored, as keras.metrics.MeanIoU leaves those out. */
typedef struct tdi_class_pairs_attrs {
    int classes;
    tdi_reading predicted, actual;
    float threshold;
    tdi_ignore_attrs ignore;
} tdi_class_pairs_attrs;
enum { TDI_MOST_CLASSES = 4096 }; /* a float counts their pairs exactly */
tdi_node *tdi_class_pairs(tdi_graph *graph, tdi_node *prediction, tdi_node *target, const tdi_class_pairs_attrs *attrs);
int64_t tdi_class_pair(const tdi_call *call, int64_t position); /* one of them; for kernels */
/* Adds how often each pair occurs to a matrix of doubles that begins at metric accumulator `slot`. An effect. */
typedef struct tdi_count_pairs_attrs {
    int classes;
    bool whole; /* the fractions of weights are cut off */
} tdi_count_pairs_attrs;
tdi_node *tdi_count_pairs(tdi_graph *graph, tdi_node *pairs, tdi_node *weights, const tdi_count_pairs_attrs *attrs,
                          int slot);
/* The number of accumulators, of two doubles each, that such a matrix takes. */
static inline int tdi_count_accumulators(int classes)
{
    return (classes * classes + 1) / 2;
}

/* For each number of the prediction how many of its thresholds it is above, as a float. */
typedef struct tdi_buckets_attrs {
    enum {
        TDI_LISTED = 0, /* the thresholds are `list` */
        TDI_EVENLY,     /* they cut 0..1 into equal intervals, and numbers outside are clipped, as in Keras */
        TDI_TOP         /* 1, above one threshold, for the largest of a row of the last axis unless it is 0 */
    } how;
    int thresholds;
    bool ends;         /* the first and the last lie a little outside 0..1, and are not in `list` */
    bool per_label;    /* entry i of the last axis has buckets of its own, from i * (thresholds + 1) on */
    const float *list; /* outlives the graph */
} tdi_buckets_attrs;
tdi_node *tdi_buckets(tdi_graph *graph, tdi_node *prediction, const tdi_buckets_attrs *attrs);
void tdi_fill_buckets(const tdi_call *call, int64_t begin,
                      int64_t end); /* rows [begin, end) of the last axis; for kernels */
/* Adds the sum and the number of each bucket's targets to its metric accumulator, from `slot` on. An effect. */
typedef struct tdi_bucket_sums_attrs {
    int buckets;
    bool truth; /* a target counts as 1 unless it is 0 */
} tdi_bucket_sums_attrs;
tdi_node *tdi_bucket_sums(tdi_graph *graph, tdi_node *buckets, tdi_node *target, tdi_node *weights,
                          const tdi_bucket_sums_attrs *attrs, int slot);
enum { TDI_MOST_BUCKETS = 1 << 24 }; /* a float counts them exactly */

/* ---- dropout ---- */

/* Zeroes elements and scales the rest by 1 / (1 - rate). Draws are Philox's: the key is control->seed mixed with
 * `stream`, the counter (control->step, row in the global batch * elements per row + element). The gradient is the same
 * op on dy with the same stream. */
typedef struct tdi_dropout_attrs {
    float rate; /* where nobody sets another in the control block */
    uint64_t stream;
    int number; /* of the rate in the control block, below TDI_DROPOUT_NUMBERS; -1: it has none, and is never another */
} tdi_dropout_attrs;
tdi_node *tdi_dropout(tdi_graph *graph, tdi_node *x, const tdi_dropout_attrs *attrs);
tdi_dropout_numbers tdi_dropout_numbers_of(float rate);
/* The rate and scale of a dropout's step. */
static inline tdi_dropout_numbers tdi_dropout_of(const tdi_call *call)
{
    const tdi_dropout_attrs *attrs = (const tdi_dropout_attrs *)call->attrs;
    return attrs->number < 0 ? tdi_dropout_numbers_of(attrs->rate) : call->control->dropout[attrs->number];
}
/* The four draws of elements 4 quad .. 4 quad + 3; for kernels. */
tdi_philox tdi_dropout_draw(const tdi_control *control, uint64_t stream, uint64_t quad);
/* The key of a stream's draws: tdi_dropout_draw is tdi_philox_block(key, control->step, quad). */
uint64_t tdi_dropout_key(const tdi_control *control, uint64_t stream);

/* ---- LSTM, u units ---- */

/* The steps of an LSTM compute for each row, gates in Keras's order i, f, g (the candidate), o:
 *     i, f, o = recurrent_activation(z + h R),  g = activation(z + h R),  c = f c + i g,  h = o activation(c)
 * Softmax and log-softmax are over the units. */
typedef struct tdi_lstm_attrs {
    int activation, recurrent_activation; /* td_activations */
    bool backwards;                       /* step s of `steps` reads z at time steps - 1 - s */
    bool gates;                           /* the reserve has the gates, for lstm_grad */
    bool sequences, state;                /* what lstm_output returns */
    bool passed;                          /* h and c are [batch, u] values of the graph, and gradients go to them */
} tdi_lstm_attrs;
/* An LSTM's inputs; NULL where there is none. */
typedef struct tdi_lstm_inputs {
    tdi_node *z;         /* [batch, steps, 4, u]: x W + b */
    tdi_node *recurrent; /* R, [u, 4u] */
    tdi_node *mask;      /* [batch, 4, u]: h is multiplied by it on its way into each gate */
    tdi_node *h, *c;     /* the state before the first step, [global batch, u]; zeros when NULL */
    /* lstm alone, set by the fuse pass: W [f, 4u], and b [4u] or NULL. `z` is x [batch, steps, f] then, and each
     * step computes its own z */
    tdi_node *kernel, *bias;
} tdi_lstm_inputs;
/* The reserve: what the steps leave for lstm_output and the gradients. [batch, steps, 6, u], i f g o c h; without gates
 * [batch, steps, 2, u], c h. A gate whose activation's derivative does not come from its output is kept as what stands
 * in the brackets above. */
tdi_node *tdi_lstm(tdi_graph *graph, const tdi_lstm_inputs *in, const tdi_lstm_attrs *attrs);
/* From the reserve: h of the last step, [batch, u]; with `sequences` of all steps, [batch, steps, u]. With `state`
 * [batch, n + 1, u]: n = 1 or `steps` of these, then the last c. Its gradient rule is the whole layer's; h and c get
 * gradients when they were `passed`. */
tdi_node *tdi_lstm_output(tdi_graph *graph, tdi_node *reserve, const tdi_lstm_inputs *in, const tdi_lstm_attrs *attrs);
/* The gradients of z, in the order of z's times, and of R; dy is that of lstm_output. With `passed` the first is
 * [batch, steps + 1, 4, u]: behind the last time stand the gradients of h and of c, then zeros. */
tdi_node *tdi_lstm_grad(tdi_graph *graph, tdi_node *reserve, tdi_node *dy, const tdi_lstm_inputs *in,
                        const tdi_lstm_attrs *attrs);
tdi_node *tdi_lstm_grad_recurrent(tdi_graph *graph, tdi_node *reserve, tdi_node *dz, const tdi_lstm_inputs *in,
                                  const tdi_lstm_attrs *attrs);
/* Writes the reserve's last h, or c, into the shard's rows of `state`, [global batch, u]. An effect. */
typedef struct tdi_lstm_keep_attrs {
    bool c;
} tdi_lstm_keep_attrs;
tdi_node *tdi_lstm_keep(tdi_graph *graph, tdi_node *reserve, tdi_node *state, bool c);

/* ---- batch normalization, per channel (last axis), c channels ---- */

typedef struct tdi_batch_norm_stats_attrs {
    int groups; /* of the shard's rows, each with statistics of its own: replicas that one shard computes */
} tdi_batch_norm_stats_attrs;
/* [3 * groups, c]: count, mean and M2 = sum (x - mean)^2 of one group after the other */
tdi_node *tdi_batch_norm_stats(tdi_graph *graph, tdi_node *x, int groups);
/* The row of x, seen as [rows, channels], at which group `group` of the shard's `groups` begins. */
int64_t tdi_group_begin(const tdi_call *call, const td_shape *x, int64_t group, int64_t groups);
/* [3, c]: the statistics of the shard's group (with `all`, for a synchronized layer, of all shards), merged from
 * `gathered` [shards, 3, c] in a fixed tree (Chan et al. 1979) */
tdi_node *tdi_batch_norm_merge(tdi_graph *graph, tdi_node *gathered, bool all);
typedef struct tdi_batch_norm_attrs {
    float epsilon, momentum;
    bool relu;     /* batch_norm, its gradients, batch_norm_inference: the result is rectified; set by the fold pass */
    bool variance; /* batch_norm_moving: the variance rather than the mean */
    bool all;      /* the merges, and batch_norm_moving: all shards are one group */
} tdi_batch_norm_attrs;
/* Inputs that the fold pass adds: of x's shape, added to the result before it is rectified. */
enum { TDI_BATCH_NORM_RESIDUAL = 4, TDI_BATCH_NORM_INFERENCE_RESIDUAL = 5 };
/* stats [3 * groups, c]; gamma, beta: [c] or NULL. With `relu`, two of the gradients need gamma and beta to find out
 * what was rectified. The gradient rule gives x's whole gradient, including that through the statistics; it merges its
 * two sums over the group if `stats` is a batch_norm_merge. */
tdi_node *tdi_batch_norm(tdi_graph *graph, tdi_node *x, tdi_node *stats, tdi_node *gamma, tdi_node *beta,
                         float epsilon);
/* [2 * groups, c]: sum dy and sum dy * xhat of each group */
tdi_node *tdi_batch_norm_grad_stats(tdi_graph *graph, tdi_node *x, tdi_node *dy, tdi_node *stats, tdi_node *gamma,
                                    tdi_node *beta, float epsilon, bool relu);
tdi_node *tdi_batch_norm_grad_merge(tdi_graph *graph, tdi_node *gathered, bool all); /* [shards, 2, c] -> [2, c] */
tdi_node *tdi_batch_norm_grad_input(tdi_graph *graph, tdi_node *x, tdi_node *dy, tdi_node *stats, tdi_node *sums,
                                    tdi_node *gamma, tdi_node *beta, float epsilon, bool relu);
/* Normalizes by statistics that are constants. */
tdi_node *tdi_batch_norm_inference(tdi_graph *graph, tdi_node *x, tdi_node *mean, tdi_node *variance, tdi_node *gamma,
                                   tdi_node *beta, float epsilon);
/* moving = moving * momentum + batch * (1 - momentum), in place; batch = the means (biased variances) of the groups in
 * `gathered` [shards, 3 * groups, c], averaged by their counts. In the update phase; an effect. */
tdi_node *tdi_batch_norm_moving(tdi_graph *graph, tdi_node *moving, tdi_node *gathered, float momentum, bool variance,
                                bool all);

/* ---- replicas ---- */

/* [...] -> [shards, ...]: x's home becomes its shard's slot of the exchange arena, so that nothing is copied within a
 * process. */
tdi_node *tdi_all_gather(tdi_graph *graph, tdi_node *x);
/* The sum of values[i][offset] in the fixed tree (base/sum_tree.h): its bits depend on the count alone. */
float tdi_tree_sum(float *const *values, int count, int64_t offset);
typedef struct tdi_reduce_scatter_attrs {
    int shards; /* set by the constructor, from the graph */
} tdi_reduce_scatter_attrs;
/* The sum over shards of a variable's gradient by tdi_tree_sum, among the reduced gradients, which are in shard 0's
 * arena; each replica computes its own range. In the update phase. */
tdi_node *tdi_reduce_scatter(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable);
/* The same sum where other processes compute some of the shards: a REDUCE has brought it to the reduced gradients, so
 * that nothing is left to compute. */
tdi_node *tdi_all_reduce(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable);

/* ---- regularizers ---- */

typedef struct tdi_regularize_attrs {
    float l1, l2;
} tdi_regularize_attrs;
/* [batch]: its mean over the rows of the global batch is l1 sum|w| + l2 sum w^2. Each row has the sum over a stretch of
 * the weight of its own, times the number of rows. */
tdi_node *tdi_regularization(tdi_graph *graph, tdi_node *weight, float l1, float l2);

/* The elements [begin, end) of the weight that belong to a row, of `rows` in the global batch; for kernels. */
typedef struct tdi_penalty_range {
    int64_t begin, end, rows;
} tdi_penalty_range;
enum { TDI_PENALTY_UNIT = 256 /* elements: long enough that a row's stretch is worth a loop */ };
static inline tdi_penalty_range tdi_penalty_range_of(const tdi_call *call, int64_t row)
{
    int64_t elements = tdi_shape_elements(&call->in[0].shape), rows = call->control->rows;
    int64_t units = (elements + TDI_PENALTY_UNIT - 1) / TDI_PENALTY_UNIT, r = call->shard->first_row + row;
    int64_t begin = units * r / rows * TDI_PENALTY_UNIT, end = units * (r + 1) / rows * TDI_PENALTY_UNIT;
    return (tdi_penalty_range){begin, end < elements ? end : elements, rows};
}

/* ---- the update phase: in place, each replica on its own range ---- */

tdi_node *tdi_regularize(tdi_graph *graph, tdi_node *gradient, tdi_node *weight, float l1, float l2);
/* Moves `node` into the update phase, in the gradient's place: a step from the variable's reduced gradient to its
 * update. */
tdi_node *tdi_reduced_gradient(tdi_node *node, tdi_variable *variable);

/* With control->skip adds the gradient to the accumulator; else gives the mean of `steps` gradients, those in the
 * accumulator included, and clears it. */
typedef struct tdi_accumulate_gradient_attrs {
    int steps;
} tdi_accumulate_gradient_attrs;
tdi_node *tdi_accumulate_gradient(tdi_graph *graph, tdi_node *gradient, tdi_node *accumulator, int steps,
                                  tdi_variable *variable);

/* [blocks]: the sum of squares of each block of so many elements of a variable's gradient, the last one shorter. */
enum { TDI_NORM_BLOCK = 4096 };
static inline int64_t tdi_norm_blocks(int64_t elements)
{
    return (elements + TDI_NORM_BLOCK - 1) / TDI_NORM_BLOCK;
}
tdi_node *tdi_squared_norm(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable);
/* A scalar: what a gradient is multiplied by so that the norm over all of `squared_norms` is at most `limit`. */
typedef struct tdi_clip_factor_attrs {
    float limit;
    bool global;
} tdi_clip_factor_attrs;
tdi_node *tdi_clip_factor(tdi_graph *graph, int count, tdi_node *const *squared_norms, float limit, bool global);
tdi_node *tdi_clip_by_norm(tdi_graph *graph, tdi_node *gradient, tdi_node *factor, tdi_variable *variable);

/* Keras's update of a weight and its slots, in place. With control->skip nothing is done. The numbers of a step come
 * from control->optimizer; the attributes say which they are where nobody sets others. */
typedef struct tdi_optimizer_attrs {
    float momentum, beta_1, beta_2, epsilon, weight_decay, clipvalue;
    bool nesterov, amsgrad;
} tdi_optimizer_attrs;
/* slots: SGD with momentum: velocity; Adam: m, v, and with amsgrad v_hat. */
tdi_node *tdi_sgd(tdi_graph *graph, tdi_node *weight, tdi_node *gradient, int n_slots, tdi_node *const *slots,
                  const tdi_optimizer_attrs *attrs);
tdi_node *tdi_adam(tdi_graph *graph, tdi_node *weight, tdi_node *gradient, int n_slots, tdi_node *const *slots,
                   const tdi_optimizer_attrs *attrs);

/* gather_update, SGD's step without momentum and decay for the rows of a weight that a gather read: inputs weight,
 * indices, the gradient of what was gathered. Attributes are the optimizer's. Only the fuse pass makes it. */

/* Attributes of matmul_update, the update of a weight [columns of a, columns of b] whose gradient is a' . b: inputs
 * weight, a, b, slots. Only the fuse pass makes it. */
typedef struct tdi_matmul_update_attrs {
    const tdi_op *update; /* adam or sgd */
    tdi_optimizer_attrs optimizer;
} tdi_matmul_update_attrs;

/* Products of more rows and columns than this are left to a library that packs, where there is one; it adds up in an
 * order of its own. */
enum { TDI_LARGE_PRODUCT = 256 };

/* leave_gradient, what a shard leaves of a gradient a' . b to a joint update, in the gradient's place (float32). The
 * factors, a and then b, where they are much smaller than the product, because rows are few; else the product; unless
 * the attributes, which are a matmul's, say which. Only the fuse pass makes it. Both functions are for kernels: whether
 * it leaves factors, and leaving them. */
bool tdi_leaves_factors(const tdi_call *call);
/* Of a graph that other processes take part in: had the shards of a batch of graph->rows better send each other the
 * factors of a weight's gradient, of `positions` rows each row of the batch? *factors: the floats of the shard that has
 * the most. They are at most half of what would travel, and the update multiplies all rows in each process. */
bool tdi_gathers_factors(const tdi_graph *graph, const td_shape *weight, int64_t positions, int64_t *factors);
void tdi_leave_factors(const tdi_call *call);

/* Attributes of joint_update, the update of a weight by all replicas together from what the shards left: inputs weight,
 * what this shard left, or with `factors` what all have left, gathered, [shards, factors]; slots. Only the fuse pass
 * makes it. */
typedef struct tdi_joint_update_attrs {
    tdi_matmul_update_attrs of;
    int shards;
    int64_t positions; /* rows of a and b for each row of the batch */
    int64_t factors;   /* 0: in the gradient's place */
} tdi_joint_update_attrs;
typedef struct tdi_left_gradient {
    const float *gradient; /* NULL: the factors were left */
    const float *a, *b;    /* [depth, rows of the weight], [depth, columns of the weight] */
    int64_t depth;
} tdi_left_gradient;
tdi_left_gradient tdi_left_by(const tdi_call *call, int shard);

/* The exponential moving average of an updated weight, which takes the average's value now and then. An effect. */
typedef struct tdi_moving_average_attrs {
    float momentum;
    int overwrite_frequency; /* in updates; 0: never */
} tdi_moving_average_attrs;
tdi_node *tdi_moving_average(tdi_graph *graph, tdi_node *weight, tdi_node *average,
                             const tdi_moving_average_attrs *attrs);

/* ---- the control block ---- */

/* Reckons what follows from rows, learning rate and iteration: inverse_rows, and for each node of the graph the numbers
 * that its attributes give. */
void tdi_control_reckon(tdi_control *control, const tdi_graph *graph);

#endif
