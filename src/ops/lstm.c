/* lstm.c - a long short-term memory over a sequence (Hochreiter & Schmidhuber 1997), as in Keras: the steps, which
 * leave the reserve; the layer's output, read from the reserve; the state that is kept from batch to batch. */
#include "ops/lstm.h"

#include "ops/softmax.h"

/* ---- activations ---- */

/* The logarithm of the sum of exponentials, by which softmax and log-softmax divide. */
static double divisor_of(int activation, int64_t units, const float *x)
{
    double top = 0, log_sum = tdi_lstm_over_units(activation) ? tdi_log_sum_exp(x, units, &top) : 0;
    return top + log_sum;
}

static float value_of(int activation, float x, double divisor)
{
    if (activation == TD_SOFTMAX)
        return (float)exp((double)x - divisor);
    return activation == TD_LOG_SOFTMAX ? (float)((double)x - divisor) : tdi_unary_value(activation, x);
}

void tdi_lstm_activate_row(int activation, int64_t units, const float *x, float *y)
{
    double divisor = divisor_of(activation, units, x);
    for (int64_t i = 0; i < units; i++)
        y[i] = value_of(activation, x[i], divisor);
}

void tdi_lstm_multiply_row(int activation, int64_t units, const float *x, float *to)
{
    double divisor = divisor_of(activation, units, x);
    for (int64_t i = 0; i < units; i++)
        to[i] *= value_of(activation, x[i], divisor);
}

void tdi_lstm_slope_row(int activation, int64_t units, const float *kept, const float *dy, float *dx)
{
    double sum = 0;
    for (int64_t i = 0; i < units && tdi_lstm_over_units(activation); i++)
        sum += activation == TD_SOFTMAX ? (double)kept[i] * (double)dy[i] : (double)dy[i];
    for (int64_t i = 0; i < units; i++)
        if (activation == TD_SOFTMAX)
            dx[i] = (float)((double)kept[i] * ((double)dy[i] - sum));
        else if (activation == TD_LOG_SOFTMAX)
            dx[i] = (float)((double)dy[i] - exp((double)kept[i]) * sum);
        else
            dx[i] = dy[i] * tdi_unary_derivative(activation, kept[i]);
}

/* ---- checks ---- */

static td_status check_activation(int activation, const char *which, tdi_error *error)
{
    if (activation >= 0 && activation < TD_ACTIVATION_COUNT)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s %s is no activation", which, tdi_unary_name(activation));
}

static td_status check_attrs(const tdi_lstm_attrs *attrs, tdi_error *error)
{
    TDI_TRY(check_activation(attrs->activation, "activation", error));
    return check_activation(attrs->recurrent_activation, "recurrent activation", error);
}

static bool is_there(const tdi_node *node, int i)
{
    return i < node->n_in && node->in[i];
}

td_status tdi_lstm_check_recurrent(const tdi_node *node, int i, int64_t units, tdi_error *error)
{
    return tdi_want_shape(node, i, &(td_shape){2, {units, TDI_LSTM_GATES * units}}, error);
}

td_status tdi_lstm_check_mask(const tdi_node *node, int i, int64_t units, tdi_error *error)
{
    td_shape shape = {3, {node->in[0]->shape.dim[0], TDI_LSTM_GATES, units}};
    return is_there(node, i) ? tdi_want_shape(node, i, &shape, error) : TD_OK;
}

td_status tdi_lstm_check_state(const tdi_node *node, int i, int64_t units, const tdi_lstm_attrs *attrs,
                               tdi_error *error)
{
    if (!is_there(node, i))
        return TD_OK;
    int64_t rows = node->in[attrs->passed ? 0 : i]->shape.dim[0];
    return tdi_want_shape(node, i, &(td_shape){2, {rows, units}}, error);
}

static int64_t sections_of(const tdi_lstm_attrs *attrs)
{
    return attrs->gates ? TDI_LSTM_GATES + 2 : 2;
}

td_status tdi_lstm_check_reserve(const tdi_node *node, const tdi_lstm_attrs *attrs, tdi_error *error)
{
    const td_shape *reserve = &node->in[0]->shape;
    TDI_TRY(check_attrs(attrs, error));
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, 0, 4, error));
    if (reserve->dim[2] == sections_of(attrs))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "the reserve is %s: it has %lld sections, not %lld", TDI_TEXT(reserve),
                    (long long)reserve->dim[2], (long long)sections_of(attrs));
}

/* ---- lstm ---- */

static td_status check_z(const tdi_node *node, int64_t units, tdi_error *error)
{
    TDI_TRY(tdi_want_rank(node, TDI_LSTM_Z, 4, error));
    const td_shape *z = &node->in[TDI_LSTM_Z]->shape;
    if (z->dim[2] == TDI_LSTM_GATES && z->dim[3] == units)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: [batch, time, 4, %lld] is needed", TDI_TEXT(z), (long long)units);
}

static td_status check_x(const tdi_node *node, int64_t units, tdi_error *error)
{
    TDI_TRY(tdi_want_rank(node, TDI_LSTM_Z, 3, error));
    int64_t features = node->in[TDI_LSTM_Z]->shape.dim[2], columns = TDI_LSTM_GATES * units;
    TDI_TRY(tdi_want_shape(node, TDI_LSTM_W, &(td_shape){2, {features, columns}}, error));
    return is_there(node, TDI_LSTM_B) ? tdi_want_shape(node, TDI_LSTM_B, &(td_shape){1, {columns}}, error) : TD_OK;
}

static td_status lstm_infer(tdi_node *node, tdi_error *error)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    TDI_TRY(check_attrs(attrs, error));
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, TDI_LSTM_R, 2, error));
    int64_t units = node->in[TDI_LSTM_R]->shape.dim[0];
    TDI_TRY((is_there(node, TDI_LSTM_W) ? check_x : check_z)(node, units, error));
    TDI_TRY(tdi_lstm_check_recurrent(node, TDI_LSTM_R, units, error));
    TDI_TRY(tdi_lstm_check_mask(node, TDI_LSTM_MASK, units, error));
    TDI_TRY(tdi_lstm_check_state(node, TDI_LSTM_H, units, attrs, error));
    TDI_TRY(tdi_lstm_check_state(node, TDI_LSTM_C, units, attrs, error));
    const int64_t *dim = node->in[TDI_LSTM_Z]->shape.dim;
    node->shape = (td_shape){4, {dim[0], dim[1], sections_of(attrs), units}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* z, or x W + b, at one column. */
static double outside_sum(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step,
                          int64_t column)
{
    int64_t features = tdi_lstm_features(call), columns = TDI_LSTM_GATES * reserve->units;
    if (!features)
        return (double)tdi_lstm_z(&call->in[TDI_LSTM_Z], call->attrs, reserve, row, step)[column];
    const float *x = tdi_lstm_x(call, reserve, row, step), *weights = call->in[TDI_LSTM_W].data;
    double sum = tdi_lstm_has(call, TDI_LSTM_B) ? (double)((const float *)call->in[TDI_LSTM_B].data)[column] : 0;
    for (int64_t k = 0; k < features; k++)
        sum += (double)x[k] * (double)weights[k * columns + column];
    return sum;
}

/* sum + (h * mask) R for one gate of one unit. */
static float sum_of(const tdi_call *call, double sum, const float *h, const float *mask, int64_t units, int gate,
                    int64_t unit)
{
    const float *recurrent = (const float *)call->in[TDI_LSTM_R].data + gate * units + unit;
    for (int64_t k = 0; h && k < units; k++) {
        double factor = mask ? (double)h[k] * (double)mask[gate * units + k] : (double)h[k];
        sum += factor * (double)recurrent[k * TDI_LSTM_GATES * units];
    }
    return (float)sum;
}

/* Computes a gate's values, and writes to the reserve what it keeps of the gate. */
static void make_gate(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step, int gate,
                      float *to)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    const float *h = tdi_lstm_h_before(call, reserve, TDI_LSTM_H, row, step);
    const float *mask = tdi_lstm_mask(call, TDI_LSTM_MASK, row);
    int activation = tdi_lstm_activation(attrs, gate);
    size_t size = (size_t)reserve->units * sizeof *to;
    for (int64_t unit = 0; unit < reserve->units; unit++) {
        double outside = outside_sum(call, reserve, row, step, gate * reserve->units + unit);
        to[unit] = sum_of(call, outside, h, mask, reserve->units, gate, unit);
    }
    if (attrs->gates && !tdi_lstm_keeps_output(activation))
        memcpy(tdi_lstm_at(reserve, row, step, gate), to, size);
    tdi_lstm_activate_row(activation, reserve->units, to, to);
    if (attrs->gates && tdi_lstm_keeps_output(activation))
        memcpy(tdi_lstm_at(reserve, row, step, gate), to, size);
}

/* c's place, then h's, holds one gate after the other meanwhile. */
static void make_step(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    const float *before = tdi_lstm_c_before(call, reserve, TDI_LSTM_C, row, step);
    float *c = tdi_lstm_c(reserve, row, step), *h = tdi_lstm_h(reserve, row, step);
    make_gate(call, reserve, row, step, TDI_LSTM_I, h);
    make_gate(call, reserve, row, step, TDI_LSTM_G, c);
    for (int64_t unit = 0; unit < reserve->units; unit++)
        c[unit] *= h[unit];
    make_gate(call, reserve, row, step, TDI_LSTM_F, h);
    for (int64_t unit = 0; before && unit < reserve->units; unit++)
        c[unit] += h[unit] * before[unit];
    make_gate(call, reserve, row, step, TDI_LSTM_O, h);
    tdi_lstm_multiply_row(((const tdi_lstm_attrs *)call->attrs)->activation, reserve->units, c, h);
}

static void lstm_reference(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->out);
    for (int64_t row = 0; row < reserve.rows; row++)
        for (int64_t step = 0; step < reserve.steps; step++)
            make_step(call, &reserve, row, step);
}

static double lstm_flops(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->out);
    double units = (double)reserve.units, depth = units + (double)tdi_lstm_features(call);
    return (double)(reserve.rows * reserve.steps) * units * (TDI_LSTM_GATES * (2 * depth + 1) + 5);
}

/* A unit needs all of h: only rows are independent of each other. */
static tdi_split lstm_reads(const tdi_node *node, int i, tdi_split split)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    bool state = i == TDI_LSTM_H || i == TDI_LSTM_C, weight = i == TDI_LSTM_R || i >= TDI_LSTM_W;
    bool by_row = state ? attrs->passed : !weight;
    return split == TDI_ROWS && by_row ? TDI_ROWS : TDI_WHOLE;
}

static void lstm_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    snprintf(text, size, "%s, %s%s%s%s", tdi_unary_name(attrs->activation), tdi_unary_name(attrs->recurrent_activation),
             attrs->backwards ? ", backwards" : "", attrs->gates ? "" : ", no gates kept",
             is_there(node, TDI_LSTM_W) ? ", makes x W + b" : "");
}

const tdi_op tdi_op_lstm = {.name = "lstm",
                            .min_in = 2,
                            .max_in = 7,
                            .attrs_size = sizeof(tdi_lstm_attrs),
                            .infer = lstm_infer,
                            .no_gradient = "lstm_output's rule is that of the whole layer",
                            .reference = lstm_reference,
                            .flops = lstm_flops,
                            .reads = lstm_reads,
                            .describe = lstm_describe,
                            .share = TDI_SHARE_STEPS};

tdi_node *tdi_lstm(tdi_graph *graph, const tdi_lstm_inputs *in, const tdi_lstm_attrs *attrs)
{
    if (!in->z || !in->recurrent)
        return NULL;
    return tdi_node_create(graph, &tdi_op_lstm, attrs, 7,
                           (tdi_node *[]){in->z, in->recurrent, in->mask, in->h, in->c, in->kernel, in->bias});
}

/* ---- lstm_output ---- */

td_shape tdi_lstm_output_shape(const td_shape *reserve, const tdi_lstm_attrs *attrs)
{
    int64_t given = attrs->sequences ? reserve->dim[1] : 1, units = reserve->dim[3];
    if (attrs->sequences || attrs->state)
        return (td_shape){3, {reserve->dim[0], given + attrs->state, units}};
    return (td_shape){2, {reserve->dim[0], units}};
}

static td_status lstm_output_infer(tdi_node *node, tdi_error *error)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    TDI_TRY(tdi_lstm_check_reserve(node, attrs, error));
    node->shape = tdi_lstm_output_shape(&node->in[0]->shape, attrs);
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* One of the two gradients behind the last time, [batch, u]. */
static tdi_node *state_gradient(tdi_graph *graph, tdi_node *full, int64_t which)
{
    if (!full)
        return NULL;
    const int64_t *dim = full->shape.dim;
    tdi_node *behind = tdi_slice(graph, tdi_slice(graph, full, 1, dim[1] - 1, 1), 2, which, 1);
    return tdi_reshape(graph, behind, &(td_shape){2, {dim[0], dim[3]}});
}

/* The inputs behind the reserve are there for this rule alone: the fuse pass drops them afterwards. */
static void lstm_output_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    tdi_node **rest = node->in + TDI_LSTM_OUTPUT_REST;
    tdi_lstm_inputs in = {.z = rest[TDI_LSTM_Z],
                          .recurrent = rest[TDI_LSTM_R],
                          .mask = rest[TDI_LSTM_MASK],
                          .h = rest[TDI_LSTM_H],
                          .c = rest[TDI_LSTM_C]};
    tdi_node *dz = tdi_lstm_grad(graph, node->in[0], dy, &in, node->attrs);
    if (dz && ((const tdi_lstm_attrs *)node->attrs)->passed) {
        dx[TDI_LSTM_OUTPUT_REST + TDI_LSTM_H] = state_gradient(graph, dz, 0);
        dx[TDI_LSTM_OUTPUT_REST + TDI_LSTM_C] = state_gradient(graph, dz, 1);
        dz = tdi_slice(graph, dz, 1, 0, dz->shape.dim[1] - 1);
    }
    dx[TDI_LSTM_OUTPUT_REST + TDI_LSTM_Z] = dz;
    dx[TDI_LSTM_OUTPUT_REST + TDI_LSTM_R] = tdi_lstm_grad_recurrent(graph, node->in[0], dz, &in, node->attrs);
}

static void lstm_output_reference(const tdi_call *call)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[0]);
    size_t size = (size_t)reserve.units * sizeof(float);
    float *out = call->out.data;
    for (int64_t row = 0; row < reserve.rows; row++) {
        for (int64_t step = attrs->sequences ? 0 : reserve.steps - 1; step < reserve.steps;
             step++, out += reserve.units)
            memcpy(out, tdi_lstm_h(&reserve, row, step), size);
        if (attrs->state) {
            memcpy(out, tdi_lstm_c(&reserve, row, reserve.steps - 1), size);
            out += reserve.units;
        }
    }
}

static tdi_split lstm_output_reads(const tdi_node *node, int i, tdi_split split)
{
    if (i == TDI_LSTM_OUTPUT_RESERVE)
        return split == TDI_ROWS || split == TDI_COLUMNS ? split : TDI_WHOLE;
    return lstm_reads(node, i - TDI_LSTM_OUTPUT_REST, split);
}

const tdi_op tdi_op_lstm_output = {.name = "lstm_output",
                                   .min_in = 1,
                                   .max_in = 6,
                                   .attrs_size = sizeof(tdi_lstm_attrs),
                                   .infer = lstm_output_infer,
                                   .gradient = lstm_output_gradient,
                                   .reference = lstm_output_reference,
                                   .flops = tdi_flops_none,
                                   .reads = lstm_output_reads,
                                   .moves = true};

tdi_node *tdi_lstm_output(tdi_graph *graph, tdi_node *reserve, const tdi_lstm_inputs *in, const tdi_lstm_attrs *attrs)
{
    if (!reserve)
        return NULL;
    return tdi_node_create(graph, &tdi_op_lstm_output, attrs, 6,
                           (tdi_node *[]){reserve, in->z, in->recurrent, in->mask, in->h, in->c});
}

/* ---- lstm_keep ---- */

static td_status lstm_keep_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, 0, 4, error));
    TDI_TRY(tdi_want_rank(node, 1, 2, error));
    TDI_TRY(tdi_want_shape(node, 1, &(td_shape){2, {node->in[1]->shape.dim[0], node->in[0]->shape.dim[3]}}, error));
    node->shape = node->in[1]->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void lstm_keep_reference(const tdi_call *call)
{
    const tdi_lstm_keep_attrs *attrs = call->attrs;
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[0]);
    float *state = (float *)call->out.data + call->shard->first_row * reserve.units;
    for (int64_t row = 0; row < reserve.rows; row++, state += reserve.units)
        memcpy(state,
               attrs->c ? tdi_lstm_c(&reserve, row, reserve.steps - 1) : tdi_lstm_h(&reserve, row, reserve.steps - 1),
               (size_t)reserve.units * sizeof(float));
}

const tdi_op tdi_op_lstm_keep = {.name = "lstm_keep",
                                 .min_in = 2,
                                 .max_in = 2,
                                 .attrs_size = sizeof(tdi_lstm_keep_attrs),
                                 .infer = lstm_keep_infer,
                                 .no_gradient = "Keras lets none go from a batch to the one before",
                                 .reference = lstm_keep_reference,
                                 .flops = tdi_flops_none,
                                 .moves = true};

tdi_node *tdi_lstm_keep(tdi_graph *graph, tdi_node *reserve, tdi_node *state, bool c)
{
    tdi_lstm_keep_attrs attrs = {c};
    tdi_node *node = tdi_node_create(graph, &tdi_op_lstm_keep, &attrs, 2, (tdi_node *[]){reserve, state});
    if (!node)
        return NULL;
    node->home = TDI_HOME_VARIABLE;
    node->variable = state->variable;
    node->effect = true;
    return node;
}
