/* lstm.h - how the values of the LSTM ops are laid out; for their references and kernels.
 *
 * The steps of an LSTM are one op. Its value is the reserve (as cuDNN calls it): the gates, c and h of every step.
 * lstm_output takes from it what the layer returns, and has the gradient rule of the whole layer. With few features the
 * op computes z = x W + b itself; else z comes for all steps from a product before them. Threads share the steps by
 * rows of the batch, or, when rows are few, by units; softmax and log-softmax need all units, and allow rows alone.
 *
 * A stateful layer's h and c are variables [global batch, units]. They are read in place, by rows of the global batch,
 * so that each shard and thread finds its own; lstm_keep writes the new ones. */
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

/* Is it a function of all units: softmax, log-softmax? */
static inline bool tdi_lstm_over_units(int activation)
{
    return activation == TD_SOFTMAX || activation == TD_LOG_SOFTMAX;
}

/* Does the derivative follow from the output? Then the reserve keeps a gate's output; else its argument. */
static inline bool tdi_lstm_keeps_output(int activation)
{
    return tdi_lstm_over_units(activation) || tdi_unary_grad_from_output(activation);
}

/* y = activation(x), and dx = dy times its derivative at `kept`, for one row's units; in place or not. */
void tdi_lstm_activate_row(int activation, int64_t units, const float *x, float *y);
void tdi_lstm_slope_row(int activation, int64_t units, const float *kept, const float *dy, float *dx);
/* to *= activation(x) */
void tdi_lstm_multiply_row(int activation, int64_t units, const float *x, float *to);

/* ---- states, masks and sequences ---- */

/* The row's state before the first step, from a value [global batch, units], or [rows, units] when it was passed. NULL:
 * the state is zeros. */
static inline const float *tdi_lstm_state(const tdi_call *call, int i, int64_t row)
{
    const float *state = i < call->n_in ? call->in[i].data : NULL;
    int64_t first = ((const tdi_lstm_attrs *)call->attrs)->passed ? 0 : call->shard->first_row;
    return state ? state + (first + row) * tdi_last_extent(&call->in[i].shape) : NULL;
}

/* c, or h, before a step; NULL: zeros. `first` is the input that holds the first state. */
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

/* Is input i present? Its shape tells: calls that are only described have no addresses. */
static inline bool tdi_lstm_has(const tdi_call *call, int i)
{
    return i < call->n_in && call->in[i].shape.rank > 0;
}

/* The features of x; 0 where the op reads z. */
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

/* [4, units]: what a step reads of z, or writes of dz. */
static inline float *tdi_lstm_z(const tdi_value *z, const tdi_lstm_attrs *attrs, const tdi_lstm_reserve *reserve,
                                int64_t row, int64_t step)
{
    const int64_t *dim = z->shape.dim;
    return (float *)z->data + (row * dim[1] + tdi_lstm_time(attrs, reserve, step)) * dim[2] * dim[3];
}

/* [features]: what a step reads of x, where the op has W. */
static inline const float *tdi_lstm_x(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    const tdi_value *x = &call->in[TDI_LSTM_Z];
    return (const float *)x->data +
           (row * x->shape.dim[1] + tdi_lstm_time(call->attrs, reserve, step)) * x->shape.dim[2];
}

/* [4, units], behind dz: the gradients of a passed h and c, then zeros. */
static inline float *tdi_lstm_dstate(const tdi_value *dz, const tdi_lstm_reserve *reserve, int64_t row)
{
    const int64_t *dim = dz->shape.dim;
    return (float *)dz->data + (row * dim[1] + reserve->steps) * dim[2] * dim[3];
}

/* [units] of lstm_output's gradient: what arrives from outside at a step's h, or at the last c; NULL: nothing. */
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

/* Checks that input i, if present, is the recurrent matrix, a mask, or a state of so many units. */
td_status tdi_lstm_check_recurrent(const tdi_node *node, int i, int64_t units, tdi_error *error);
td_status tdi_lstm_check_mask(const tdi_node *node, int i, int64_t units, tdi_error *error);
td_status tdi_lstm_check_state(const tdi_node *node, int i, int64_t units, const tdi_lstm_attrs *attrs,
                               tdi_error *error);
td_status tdi_lstm_check_reserve(const tdi_node *node, const tdi_lstm_attrs *attrs, tdi_error *error);
/* lstm_output's shape, for a reserve's. */
td_shape tdi_lstm_output_shape(const td_shape *reserve, const tdi_lstm_attrs *attrs);

#endif
