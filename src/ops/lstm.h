/* lstm.h - where things are in the values of the LSTM ops: for their references and kernels. */
#ifndef TDI_OPS_LSTM_H
#define TDI_OPS_LSTM_H

#include "ops/common.h"

/* Positions of an op's inputs. */
enum { TDI_LSTM_Z, TDI_LSTM_R, TDI_LSTM_MASK, TDI_LSTM_H, TDI_LSTM_C, TDI_LSTM_W, TDI_LSTM_B }; /* lstm */
enum { TDI_LSTM_OUTPUT_RESERVE, TDI_LSTM_OUTPUT_REST };                                         /* lstm_output */
enum { TDI_LSTM_GRAD_RESERVE, TDI_LSTM_GRAD_DY, TDI_LSTM_GRAD_R, TDI_LSTM_GRAD_MASK, TDI_LSTM_GRAD_C }; /* lstm_grad */
enum { TDI_LSTM_RECURRENT_RESERVE, TDI_LSTM_RECURRENT_DZ, TDI_LSTM_RECURRENT_MASK, TDI_LSTM_RECURRENT_H };

enum { TDI_LSTM_GATES = 4, TDI_LSTM_I = 0, TDI_LSTM_F, TDI_LSTM_G, TDI_LSTM_O };

/* A reserve [rows, steps, sections, units]; the last two sections are c and h. */
typedef struct tdi_lstm_reserve {
    float *data;
    int64_t rows, steps, sections, units;
} tdi_lstm_reserve;

static inline tdi_lstm_reserve tdi_lstm_reserve_of(const tdi_value *value)
{
    const int64_t *dim = value->shape.dim;
    return (tdi_lstm_reserve){value->data, dim[0], dim[1], dim[2], dim[3]};
}

/* [units] of one row, step and section. */
static inline float *tdi_lstm_at(const tdi_lstm_reserve *reserve, int64_t row, int64_t step, int64_t section)
{
    return reserve->data + ((row * reserve->steps + step) * reserve->sections + section) * reserve->units;
}

static inline float *tdi_lstm_c(const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    return tdi_lstm_at(reserve, row, step, reserve->sections - 2);
}

static inline float *tdi_lstm_h(const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    return tdi_lstm_at(reserve, row, step, reserve->sections - 1);
}

/* ---- activations ---- */

static inline int tdi_lstm_activation(const tdi_lstm_attrs *attrs, int gate)
{
    return gate == TDI_LSTM_G ? attrs->activation : attrs->recurrent_activation;
}

/* Softmax and log-softmax, which need all units. */
static inline bool tdi_lstm_over_units(int activation)
{
    return activation == TD_SOFTMAX || activation == TD_LOG_SOFTMAX;
}

/* Does the derivative follow from the output? Then the reserve keeps that of a gate, else what it was taken of. */
static inline bool tdi_lstm_keeps_output(int activation)
{
    return tdi_lstm_over_units(activation) || tdi_unary_grad_from_output(activation);
}

/* y = activation(x) and dx = dy by its derivative, which `kept` tells, of one row's units; in place or not. */
void tdi_lstm_activate_row(int activation, int64_t units, const float *x, float *y);
void tdi_lstm_slope_row(int activation, int64_t units, const float *kept, const float *dy, float *dx);
/* to *= activation(x) */
void tdi_lstm_multiply_row(int activation, int64_t units, const float *x, float *to);

/* ---- states, masks and sequences ---- */

/* The row's state before the first step, in a value [global batch, units], or [rows, units] when it was passed; NULL:
 * zeros. */
static inline const float *tdi_lstm_state(const tdi_call *call, int i, int64_t row)
{
    const float *state = i < call->n_in ? call->in[i].data : NULL;
    int64_t first = ((const tdi_lstm_attrs *)call->attrs)->passed ? 0 : call->part->first_row;
    return state ? state + (first + row) * tdi_last_extent(&call->in[i].shape) : NULL;
}

/* c, or h, before a step; NULL: zeros. `first` is the position of the state that was passed in. */
static inline const float *tdi_lstm_c_before(const tdi_call *call, const tdi_lstm_reserve *reserve, int first,
                                             int64_t row, int64_t step)
{
    return step ? tdi_lstm_c(reserve, row, step - 1) : tdi_lstm_state(call, first, row);
}

static inline const float *tdi_lstm_h_before(const tdi_call *call, const tdi_lstm_reserve *reserve, int first,
                                             int64_t row, int64_t step)
{
    return step ? tdi_lstm_h(reserve, row, step - 1) : tdi_lstm_state(call, first, row);
}

/* Is input i there? Its shape tells it: a query has no addresses. */
static inline bool tdi_lstm_has(const tdi_call *call, int i)
{
    return i < call->n_in && call->in[i].shape.rank > 0;
}

/* The features of x; 0 where the op has z. */
static inline int64_t tdi_lstm_features(const tdi_call *call)
{
    return tdi_lstm_has(call, TDI_LSTM_W) ? call->in[TDI_LSTM_Z].shape.dim[2] : 0;
}

/* The mask of a row, [4, units], or NULL. */
static inline const float *tdi_lstm_mask(const tdi_call *call, int i, int64_t row)
{
    const float *mask = i < call->n_in ? call->in[i].data : NULL;
    return mask ? mask + row * tdi_shape_elements(&call->in[i].shape) / call->in[i].shape.dim[0] : NULL;
}

static inline int64_t tdi_lstm_time(const tdi_lstm_attrs *attrs, const tdi_lstm_reserve *reserve, int64_t step)
{
    return attrs->backwards ? reserve->steps - 1 - step : step;
}

/* [4, units] of z, or of dz, that a step takes. */
static inline float *tdi_lstm_z(const tdi_value *z, const tdi_lstm_attrs *attrs, const tdi_lstm_reserve *reserve,
                                int64_t row, int64_t step)
{
    const int64_t *dim = z->shape.dim;
    return (float *)z->data + (row * dim[1] + tdi_lstm_time(attrs, reserve, step)) * dim[2] * dim[3];
}

/* [features] of x that a step takes, where the op has W. */
static inline const float *tdi_lstm_x(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    const tdi_value *x = &call->in[TDI_LSTM_Z];
    return (const float *)x->data +
           (row * x->shape.dim[1] + tdi_lstm_time(call->attrs, reserve, step)) * x->shape.dim[2];
}

/* Where, behind dz, the gradients of a passed h and c are, [4, units]: h, c, zeros. */
static inline float *tdi_lstm_dstate(const tdi_value *dz, const tdi_lstm_reserve *reserve, int64_t row)
{
    const int64_t *dim = dz->shape.dim;
    return (float *)dz->data + (row * dim[1] + reserve->steps) * dim[2] * dim[3];
}

/* What arrives from outside at a step's h, or at the last c: [units] of lstm_output's gradient, or NULL. */
static inline const float *tdi_lstm_dh(const tdi_value *dy, const tdi_lstm_attrs *attrs,
                                       const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    int64_t given = attrs->sequences ? reserve->steps : 1, first = reserve->steps - given;
    if (step < first)
        return NULL;
    return (const float *)dy->data + (row * (given + attrs->state) + step - first) * reserve->units;
}

static inline const float *tdi_lstm_dc(const tdi_value *dy, const tdi_lstm_attrs *attrs,
                                       const tdi_lstm_reserve *reserve, int64_t row)
{
    int64_t given = attrs->sequences ? reserve->steps : 1;
    return attrs->state ? (const float *)dy->data + (row * (given + 1) + given) * reserve->units : NULL;
}

/* ---- checks and rules that the two files of ops share ---- */

/* Input i, when it is there, is the units' matrix, mask, or state. */
td_status tdi_lstm_check_recurrent(const tdi_node *node, int i, int64_t units, tdi_error *error);
td_status tdi_lstm_check_mask(const tdi_node *node, int i, int64_t units, tdi_error *error);
td_status tdi_lstm_check_state(const tdi_node *node, int i, int64_t units, const tdi_lstm_attrs *attrs,
                               tdi_error *error);
td_status tdi_lstm_check_reserve(const tdi_node *node, const tdi_lstm_attrs *attrs, tdi_error *error);
/* lstm_output's shape for a reserve's. */
td_shape tdi_lstm_output_shape(const td_shape *reserve, const tdi_lstm_attrs *attrs);

#endif
