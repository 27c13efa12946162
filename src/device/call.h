/* call.h - what a kernel is called with: shapes and addresses, and this thread's share of the work.
 *
 * The plan makes a call for each thread that shares a step, once; from then on only the numbers in the control block
 * change, and the addresses of the step's inputs. A kernel reads nothing but its call. */
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

/* The control block: what kernels read that changes from step to step, where the host would branch. It is plain
 * numbers, reckoned by the host before the step begins, so that it can be copied to any device. Each thread has its own
 * copy, which all shards of its worker share, and writes it between steps. */
typedef struct tdi_control {
    int64_t rows;       /* of the global batch */
    float inverse_rows; /* 1 / rows; 0 of an empty batch, all of whose sums are 0 */
    int64_t step;       /* keys this step's random draws */
    uint64_t seed;
    uint64_t weights; /* version of the weights: as long as it is the same, constant inputs are; 0: unknown */
    bool skip;        /* the step accumulates its gradients and updates no weights */
    unsigned turn;    /* 0 and 1 alternately, which keeps the failures of neighbouring steps apart (tdi_call_fail) */

    /* What the numbers below are reckoned from by tdi_op's `numbers`; kernels read none of them. */
    float learning_rate;
    float rate_before; /* the learning rate of the step before, for momentum correction; 0: none */
    int64_t iteration; /* updates of the weights before this step */

    tdi_optimizer_numbers optimizer;
    tdi_dropout_numbers dropout[TDI_DROPOUT_NUMBERS]; /* by tdi_dropout_attrs' number */
} tdi_control;

/* 0 of an empty batch. */
static inline float tdi_inverse_rows(int64_t rows)
{
    return rows > 0 ? 1.0f / (float)rows : 0.0f;
}

/* A shard: the slice of the global batch that one plan computes. */
typedef struct tdi_shard {
    int index, shards;            /* this shard, and how many there are */
    int group_first, group_count; /* the shards whose rows share batch statistics with its own, itself included */
    int64_t first_row;            /* the shard's first row in the global batch; keys random draws */
    float *const *gradients;      /* [shards]: every shard's gradient arena */
} tdi_shard;

/* The first row of shard `shard` of `shards` in a batch of `rows`. */
static inline int64_t tdi_shard_first_row(int64_t rows, int64_t shard, int64_t shards)
{
    return rows * shard / shards;
}

typedef struct tdi_value {
    void *data;
    td_shape shape; /* with the number of rows in place of TDI_BATCH */
    td_dtype dtype;
    /* 0: row after row. Otherwise the value is batch-interleaved in blocks of so many samples, [blocks][elements of a
     * row][samples of the block], and what the last block holds beyond the last sample is undefined. */
    int batch_interleaved;
} tdi_value;

/* [begin, end) of the axis that a split divides. */
typedef struct tdi_share {
    int split; /* a tdi_split */
    int64_t begin, end;
} tdi_share;

struct tdi_call {
    void (*run)(const tdi_call *call); /* NULL: this thread has no share of the step */
    const tdi_value *in;               /* [n_in]; data NULL: an optional input that is absent */
    tdi_value out;
    const void *attrs;
    void *state;        /* set by the kernel's prepare */
    void *packed_cache; /* this thread's: TDI_PACKED_CACHE_HEAD and the kernel's packed_cache_bytes; 64-byte aligned */
    void *scratch;      /* this thread's, of the size that prepare asked for; 64-byte aligned; lost between calls */
    float *sums;        /* TDI_DEPTH: [threads][elements of out], shared by the threads */
    tdi_share other_half; /* TDI_DEPTH: in `run` the share of out that `finish` makes on this thread; in `finish` the
                             share of the depth that `run` summed */
    int n_in;
    unsigned constant_inputs; /* bit i: in[i] is a weight that no step of the plan changes: it may be packed once */
    int split;                /* a tdi_split */
    int64_t begin, end;       /* this thread's range of the axis, elements or depth; under TDI_WHOLE the whole extent */
    int thread, threads;      /* this thread, and how many share the step */
    int64_t offset;           /* floats: where out's variable begins in the gradient arenas; 0: out belongs to none */
    const tdi_control *control;
    atomic_bool *failed; /* [2], by control->turn; NULL: nobody asks (tdi_call_fail) */
    const tdi_shard *shard;
    struct tdi_lockstep *lockstep; /* of the threads that share the step, for kernels with run_serially */
};

/* Is any of its values batch-interleaved? */
static inline bool tdi_is_batch_interleaved(const tdi_call *call)
{
    bool interleaved = call->out.batch_interleaved;
    for (int i = 0; i < call->n_in; i++)
        interleaved = interleaved || call->in[i].batch_interleaved;
    return interleaved;
}

/* The row at which group `group` of a shard's `groups` groups begins, of its `rows` rows: where a replica's slice of
 * the global batch begins. */
static inline int64_t tdi_group_first_row(const tdi_call *call, int64_t rows, int64_t group, int64_t groups)
{
    const tdi_shard *shard = call->shard;
    if (group == 0 || group == groups)
        return group ? rows : 0;
    return tdi_shard_first_row(call->control->rows, shard->index * groups + group, shard->shards * groups) -
           shard->first_row;
}

/* Called by a kernel whose library ran out of memory: what the step made must not be used. */
static inline void tdi_call_fail(const tdi_call *call)
{
    if (call->failed)
        atomic_store(&call->failed[call->control->turn], true);
}

static inline const tdi_optimizer_numbers *tdi_optimizer_of(const tdi_call *call)
{
    return &call->control->optimizer;
}

/* ---- the packed-weight cache ----
 *
 * A kernel packs a constant input once and finds it packed at its next run. The cache begins with the version of the
 * weights that it was made of. */

enum { TDI_PACKED_CACHE_HEAD = 64 /* bytes */ };

static inline bool tdi_is_constant_input(const tdi_call *call, int input)
{
    return call->constant_inputs >> input & 1u;
}

/* NULL: the call has no cache, and packs into its scratch each time. */
static inline void *tdi_packed_cache(const tdi_call *call)
{
    return call->packed_cache ? (char *)call->packed_cache + TDI_PACKED_CACHE_HEAD : NULL;
}

/* True when there is no cache or it holds other weights. The caller then packs them before it returns. */
static inline bool tdi_must_pack(const tdi_call *call)
{
    uint64_t *version = call->packed_cache;
    if (!version)
        return true;
    uint64_t now = call->control->weights;
    bool same = now && *version == now;
    *version = now;
    return !same;
}

/* Packing failed: the next run packs again. */
static inline void tdi_forget_packed(const tdi_call *call)
{
    if (call->packed_cache)
        *(uint64_t *)call->packed_cache = 0;
}

#endif
