/* update.h - an optimizer's step for a stretch of one variable, as the kernels that update share it. */
#ifndef TDI_CPU_ELEMENTWISE_UPDATE_H
#define TDI_CPU_ELEMENTWISE_UPDATE_H

#include "ops/ops.h"

/* One step's numbers, the same for all elements. */
typedef struct tdi_update {
    const tdi_op *op; /* adam or sgd */
    float rate;       /* Adam: alpha */
    float rate_1, rate_2, epsilon;
    float momentum, kept; /* of the velocity ahead, and of the one so far */
    float clip;           /* INFINITY: none */
    float decay;          /* of the weight, times the learning rate */
    bool nesterov, amsgrad;
} tdi_update;

tdi_update tdi_update_of(const tdi_op *op, const tdi_optimizer_attrs *attrs, const tdi_control *control);

/* Where n elements and what belongs to them begin. */
typedef struct tdi_stretch {
    const float *weight, *gradient;
    float *slot[3]; /* as many as the optimizer has */
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

/* matmul_update: the rows that a lane updates, or its columns of all rows. */
typedef struct tdi_row_update {
    tdi_update numbers;
    tdi_stretch all; /* from row 0 on, the lane's first column */
    int64_t begin, end;
    int64_t columns, stride; /* its own; from row to row */
    tdi_update_loop *loop;
} tdi_row_update;

/* `attrs`: of the update; slots begin at input `first_slot`. */
tdi_row_update tdi_row_update_of(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot,
                                 tdi_update_loop *loop);

/* Rows [first, first + rows), whose gradient has the own columns of each row behind those of the one before. */
void tdi_update_rows(const tdi_row_update *of, int64_t first, int64_t rows, const float *gradient);

/* The gradient is made, and used, some rows at a time: as many as fill `floats`, in whole `tile`s. */
int64_t tdi_gradient_rows(const tdi_call *call, int64_t floats, int64_t tile);

#endif
