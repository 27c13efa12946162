/* optimizer_update.h - an optimizer's step for a stretch of one variable; every kernel that updates weights uses it. */
#ifndef TDI_CPU_ELEMENTWISE_OPTIMIZER_UPDATE_H
#define TDI_CPU_ELEMENTWISE_OPTIMIZER_UPDATE_H

#include "ops/ops.h"

/* The numbers of one step, which are the same for all elements. */
typedef struct tdi_update {
    const tdi_op *op; /* adam or sgd */
    float rate;       /* the learning rate; for Adam, alpha */
    float rate_1, rate_2, epsilon;
    float momentum, kept; /* factors of the new velocity and of the old one */
    float clip;           /* the largest size of a gradient's element; INFINITY: no clipping */
    float decay;          /* weight decay times the learning rate */
    bool nesterov, amsgrad;
} tdi_update;

tdi_update tdi_update_of(const tdi_op *op, const tdi_optimizer_attrs *attrs, const tdi_control *control);

/* Where a stretch begins in each of the arrays. */
typedef struct tdi_stretch {
    const float *weight, *gradient;
    float *slot[3]; /* NULL behind those that the optimizer has */
    float *out;     /* the new weights; may be `weight` */
} tdi_stretch;

/* The same stretch `at` elements further on. */
static inline tdi_stretch tdi_stretch_at(tdi_stretch s, int64_t at)
{
    tdi_stretch moved = {.weight = s.weight + at, .gradient = s.gradient ? s.gradient + at : NULL, .out = s.out + at};
    for (int i = 0; i < 3; i++)
        moved.slot[i] = s.slot[i] ? s.slot[i] + at : NULL;
    return moved;
}

typedef void tdi_update_loop(const tdi_update *update, int64_t n, tdi_stretch stretch);

/* The share of a thread that updates rows of a weight, or its columns of all rows (matmul_update, joint_update). */
typedef struct tdi_row_update {
    tdi_update numbers;
    tdi_stretch all; /* at row 0 and the thread's first column */
    int64_t begin, end;
    int64_t columns, stride; /* the thread's columns; floats from row to row */
    tdi_update_loop *loop;
} tdi_row_update;

/* `attrs` are the update's; the slots are the call's inputs from `first_slot` on. */
tdi_row_update tdi_row_update_of(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot,
                                 tdi_update_loop *loop);

/* Updates rows [first, first + rows). `gradient` has the thread's columns alone, row after row. */
void tdi_update_rows(const tdi_row_update *of, int64_t first, int64_t rows, const float *gradient);

/* How many rows of the gradient are made and used at a time: as many as fill `floats`, a multiple of `tile`. */
int64_t tdi_gradient_rows(const tdi_call *call, int64_t floats, int64_t tile);

#endif
