/* call.h - what a kernel sees: concrete shapes, resolved addresses, its share of the work. */
#ifndef TDI_DEVICE_CALL_H
#define TDI_DEVICE_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tandem/tensor.h>

typedef struct tdi_call tdi_call;

/* Numbers that change from step to step, read by kernels: never a branch of the host. Shared by all parts. */
typedef struct tdi_control {
    float learning_rate;
    float rate_before; /* of the step before, for momentum correction; 0: none */
    int64_t rows;      /* in the global batch */
    int64_t iteration; /* updates of the weights before this step */
    int64_t step;      /* names the random draws of this step */
    uint64_t seed;
    uint64_t weights; /* steady inputs (tdi_call) are the same as long as this is; 0: nobody knows */
    bool skip;        /* the step updates no weights: its gradients are accumulated */
    /* Set by a kernel whose library could not do the work, for lack of memory: what the step made is not to be used.
     * NULL: nobody asks. */
    atomic_bool *failed;
} tdi_control;

/* 0 when there are none, whose sums are 0 too. */
static inline float tdi_inverse_rows(const tdi_control *control)
{
    return control->rows > 0 ? 1.0f / (float)control->rows : 0.0f;
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

struct tdi_call {
    void (*run)(const tdi_call *call);
    const tdi_value *in; /* [n_in]; data NULL for an absent optional input */
    tdi_value out;
    const void *attrs;
    void *state;   /* made by the kernel's prepare */
    void *kept;    /* TDI_KEPT_HEAD and what its `keeps` asked for; 64-byte aligned; this lane's own */
    void *scratch; /* of the size that prepare asked for; 64-byte aligned; this lane's own */
    float *sums;   /* TDI_DEPTH: [lanes][elements of out], shared by the lanes */
    /* TDI_DEPTH: what this lane makes in the second half; and there, its share of the depth. */
    tdi_share other_half;
    int n_in;
    unsigned steady;    /* bit i: in[i] is a weight that no step of the plan changes, and may be kept */
    int split;          /* a tdi_split */
    int64_t begin, end; /* the range of the split axis, elements or depth to make; the whole extent for TDI_WHOLE */
    int lane, lanes;
    int64_t offset; /* floats: where out's variable begins in the gradient arenas, else 0 */
    const tdi_control *control;
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
