/* call.h - what a kernel sees: concrete shapes, resolved addresses, its share of the work. */
#ifndef TDI_DEVICE_CALL_H
#define TDI_DEVICE_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tandem/tensor.h>

typedef struct tdi_call tdi_call;

/* What one step of the optimizer multiplies with. */
typedef struct tdi_optimizer_numbers {
    float rate;           /* the learning rate; Adam's alpha = learning rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) */
    float rate_1, rate_2; /* Adam: 1 - beta_1, 1 - beta_2 */
    float epsilon;        /* Adam */
    float momentum;       /* SGD: of the velocity that Nesterov's step looks ahead by */
    float kept;           /* SGD: of the velocity so far; momentum, corrected where the learning rate has changed */
    float decay;          /* weight decay * learning rate */
    float clip;           /* gradients are clipped to [-clip, clip]; INFINITY: they are not */
    float norm;           /* norms of gradients are clipped to this, where the graph does that */
    float average;        /* momentum of the weights' moving averages; 0 in the first update */
    bool overwrite;       /* the weights become their averages in this update */
} tdi_optimizer_numbers;

/* What one dropout draws with. */
typedef struct tdi_dropout_numbers {
    float rate;
    float scale; /* 1 / (1 - rate) */
} tdi_dropout_numbers;

enum { TDI_DROPOUT_NUMBERS = 64 };

/* The control block: what kernels read that changes from step to step. It is plain numbers, reckoned by the host before
 * the step begins, so that it can be copied to any device. All shards read the same ones. */
typedef struct tdi_control {
    int64_t rows;       /* in the global batch */
    float inverse_rows; /* 1 / rows; 0 of no rows, whose sums are 0 too */
    int64_t step;       /* names the random draws of this step */
    uint64_t seed;
    uint64_t weights; /* names the weights' values: constant inputs (tdi_call) are the same while it is; 0: unknown */
    bool skip;        /* the step updates no weights: its gradients are accumulated */
    unsigned turn;    /* 0 and 1 alternately, which keeps the failures of neighbouring steps apart (tdi_call_fail) */

    /* What the numbers below are reckoned from by tdi_op's `numbers`; kernels read none of them. */
    float learning_rate;
    float rate_before; /* the learning rate of the step before, for momentum correction; 0: none */
    int64_t iteration; /* updates of the weights before this step */

    tdi_optimizer_numbers optimizer;
    tdi_dropout_numbers dropout[TDI_DROPOUT_NUMBERS]; /* by tdi_dropout_attrs' number */
} tdi_control;

/* 0 when there are none. */
static inline float tdi_inverse_rows(int64_t rows)
{
    return rows > 0 ? 1.0f / (float)rows : 0.0f;
}

/* A part is the slice of the global batch that one copy of the plan computes. */
typedef struct tdi_part {
    int index, parts;             /* this part, of how many */
    int group_first, group_count; /* the parts that share batch statistics with it, itself included */
    int64_t first_row;            /* of the slice, in the global batch: keys random draws */
    float *const *gradients;      /* every part's gradient arena, [parts] */
} tdi_part;

/* The first row of part `part` of `parts` in a batch of `rows`. */
static inline int64_t tdi_part_first_row(int64_t rows, int64_t part, int64_t parts)
{
    return rows * part / parts;
}

typedef struct tdi_value {
    void *data;
    td_shape shape; /* the batch resolved */
    td_dtype dtype;
    /* 0: row after row. Else samples stand side by side, so many abreast: [blocks of so many][elements of a row]
     * [abreast]. What stands in the last block beyond the last sample is nobody's. */
    int abreast;
} tdi_value;

/* [begin, end) of the axis that a split divides. */
typedef struct tdi_share {
    int split; /* a tdi_split */
    int64_t begin, end;
} tdi_share;

/* Numbers of weights that the step reads later on, and other cores have written. */
typedef struct tdi_soon {
    const float *at;
    int64_t offset, count; /* floats, from the first weight on; so many of them */
} tdi_soon;

enum { TDI_MOST_SOON = 8 };

struct tdi_call {
    void (*run)(const tdi_call *call);
    const tdi_value *in; /* [n_in]; data NULL for an absent optional input */
    tdi_value out;
    const void *attrs;
    void *state;   /* made by the kernel's prepare */
    void *kept;    /* TDI_KEPT_HEAD and what its `keeps` asked for; 64-byte aligned; this lane's own */
    void *scratch; /* of the size that prepare asked for; 64-byte aligned; this lane's own */
    float *sums;   /* TDI_DEPTH: [lanes][elements of out], shared by the lanes */
    /* What is made of out's rows by a kernel that `follows`, as the one that makes out `shows` them; NULL: nothing. */
    const tdi_call *follower;
    tdi_soon *soon; /* [n_soon]: for a kernel that `asks` */
    int n_soon;
    /* TDI_DEPTH: what this lane makes in the second half; and there, its share of the depth. */
    tdi_share other_half;
    int n_in;
    unsigned steady;    /* bit i: in[i] is a weight that no step of the plan changes, and may be kept */
    int split;          /* a tdi_split */
    int64_t begin, end; /* the range of the split axis, elements or depth to make; the whole extent for TDI_WHOLE */
    int lane, lanes;
    int64_t offset; /* floats: where out's variable begins in the gradient arenas, else 0 */
    const tdi_control *control;
    atomic_bool *failed; /* [2], by control->turn; NULL: nobody asks (tdi_call_fail) */
    const tdi_part *part;
    struct tdi_lockstep *lockstep; /* of the lanes, for kernels that say `together` */
};

/* Does any of its values stand abreast? */
static inline bool tdi_is_abreast(const tdi_call *call)
{
    bool abreast = call->out.abreast;
    for (int i = 0; i < call->n_in; i++)
        abreast = abreast || call->in[i].abreast;
    return abreast;
}

/* The row of the part, of `rows`, at which group `group` of its `groups` begins: where a replica's slice of the global
 * batch does. */
static inline int64_t tdi_group_first_row(const tdi_call *call, int64_t rows, int64_t group, int64_t groups)
{
    const tdi_part *part = call->part;
    if (group == 0 || group == groups)
        return group ? rows : 0;
    return tdi_part_first_row(call->control->rows, part->index * groups + group, part->parts * groups) -
           part->first_row;
}

/* ---- what a kernel keeps (tdi_kernel) of a steady input: behind the name of the weights that it was made of ---- */

enum { TDI_KEPT_HEAD = 64 /* bytes */ };

static inline bool tdi_is_steady(const tdi_call *call, int input)
{
    return call->steady >> input & 1u;
}

/* The kernel's library could not do the work for lack of memory: what the step makes is not to be used. */
static inline void tdi_call_fail(const tdi_call *call)
{
    if (call->failed)
        atomic_store(&call->failed[call->control->turn], true);
}

static inline const tdi_optimizer_numbers *tdi_optimizer_of(const tdi_call *call)
{
    return &call->control->optimizer;
}

/* NULL: nothing is kept. */
static inline void *tdi_kept(const tdi_call *call)
{
    return call->kept ? (char *)call->kept + TDI_KEPT_HEAD : NULL;
}

/* Nothing is kept, or what is kept was made of other weights: the caller makes it now. */
static inline bool tdi_must_make(const tdi_call *call)
{
    uint64_t *made_of = call->kept;
    if (!made_of)
        return true;
    uint64_t now = call->control->weights;
    bool same = now && *made_of == now;
    *made_of = now;
    return !same;
}

/* It could not be made. */
static inline void tdi_make_again(const tdi_call *call)
{
    if (call->kept)
        *(uint64_t *)call->kept = 0;
}

#endif
