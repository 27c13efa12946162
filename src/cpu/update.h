/* update.h - an optimizer's step for a stretch of one variable, as the kernels that update share it. */
#ifndef TDI_CPU_UPDATE_H
#define TDI_CPU_UPDATE_H

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

/* matmul_update: its gradient is made, and used, some rows at a time. As many as fill `floats`, in whole `tile`s. */
int64_t tdi_gradient_rows(const tdi_call *call, int64_t floats, int64_t tile);

/* The lane's rows of the update, or its columns of all rows, `step` rows at a time: `multiply` writes these of rows
 * [first, first + rows) of a' . b into `gradient`, which is the call's scratch. */
void tdi_update_by_product(const tdi_call *call, int64_t step,
                           void (*multiply)(const tdi_call *call, int64_t first, int64_t rows, float *gradient),
                           void (*update)(const tdi_update *update, int64_t n, tdi_stretch stretch));

#endif
