/* lstm_grad.c - the gradient of the steps of an LSTM, from the last step to the first, from the reserve.
 *
 * dh and dc are what arrives at a step's h and c, a is the activation:
 *     do = dh a(c)     dc += dh o a'(c)     di = dc g     dg = dc i     df = dc c_before     dc_before = dc f
 * Each of di, df, dg and do times its gate's derivative is that gate's dz; then dh_before = sum dz R' . mask. */
#include "ops/lstm.h"

static td_status lstm_grad_infer(tdi_node *node, tdi_error *error)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    TDI_TRY(tdi_lstm_check_reserve(node, attrs, error));
    const td_shape *reserve = &node->in[TDI_LSTM_GRAD_RESERVE]->shape;
    td_shape dy = tdi_lstm_output_shape(reserve, attrs);
    if (!attrs->gates)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the reserve %s has no gates", TDI_TEXT(reserve));
    TDI_TRY(tdi_want_shape(node, TDI_LSTM_GRAD_DY, &dy, error));
    TDI_TRY(tdi_lstm_check_recurrent(node, TDI_LSTM_GRAD_R, reserve->dim[3], error));
    TDI_TRY(tdi_lstm_check_mask(node, TDI_LSTM_GRAD_MASK, reserve->dim[3], error));
    TDI_TRY(tdi_lstm_check_state(node, TDI_LSTM_GRAD_C, reserve->dim[3], attrs, error));
    node->shape = *reserve;
    node->shape.dim[1] += attrs->passed;
    node->shape.dim[2] = TDI_LSTM_GATES;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* The gradient of one unit of h from the next step: the sum over gates and units of dz R'. */
static double through_recurrence(const tdi_call *call, const float *dz, const float *mask, int64_t units, int64_t unit)
{
    const float *recurrent = (const float *)call->in[TDI_LSTM_GRAD_R].data + unit * TDI_LSTM_GATES * units;
    double sum = 0;
    for (int64_t g = 0; g < TDI_LSTM_GATES; g++) {
        double shard = 0;
        for (int64_t k = g * units; k < (g + 1) * units; k++)
            shard += (double)dz[k] * (double)recurrent[k];
        sum += mask ? shard * (double)mask[g * units + unit] : shard;
    }
    return sum;
}

static float gate_value(const tdi_lstm_attrs *attrs, const tdi_lstm_reserve *reserve, int64_t row, int64_t step,
                        int gate, int64_t unit)
{
    float kept = tdi_lstm_at(reserve, row, step, gate)[unit];
    int activation = tdi_lstm_activation(attrs, gate);
    return tdi_lstm_keeps_output(activation) ? kept : tdi_unary_value(activation, kept);
}

/* Takes what arrives at h, from the last gate's place, on to c, in the first gate's place; the other two places are
 * scratch. What arrives at the output gate is left in the last place. */
static void through_cell(const tdi_lstm_attrs *attrs, const tdi_lstm_reserve *reserve, int64_t row, int64_t step,
                         float *dz)
{
    int64_t units = reserve->units;
    const float *c = tdi_lstm_c(reserve, row, step);
    float *dc = dz + TDI_LSTM_I * units, *dh = dz + TDI_LSTM_O * units;
    float *squashed = dz + TDI_LSTM_G * units, *more = dz + TDI_LSTM_F * units;
    tdi_lstm_activate_row(attrs->activation, units, c, squashed);
    for (int64_t unit = 0; unit < units; unit++)
        more[unit] = dh[unit] * gate_value(attrs, reserve, row, step, TDI_LSTM_O, unit);
    tdi_lstm_slope_row(attrs->activation, units, tdi_lstm_keeps_output(attrs->activation) ? squashed : c, more, more);
    for (int64_t unit = 0; unit < units; unit++) {
        dc[unit] += more[unit];
        dh[unit] *= squashed[unit];
    }
}

/* dz of a step, from what arrives at c and h in the first and the last gate's place. dc_before takes what goes on to
 * the c before; NULL: nobody wants it. */
static void gates_back(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step,
                       float *dc_before)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    int64_t units = reserve->units;
    float *dz = tdi_lstm_z(&call->out, attrs, reserve, row, step);
    const float *before = tdi_lstm_c_before(call, reserve, TDI_LSTM_GRAD_C, row, step);
    through_cell(attrs, reserve, row, step, dz);
    for (int64_t unit = 0; unit < units; unit++) {
        float dc = dz[unit];
        if (dc_before)
            dc_before[unit] = dc * gate_value(attrs, reserve, row, step, TDI_LSTM_F, unit);
        dz[TDI_LSTM_F * units + unit] = dc * (before ? before[unit] : 0.0f);
        dz[TDI_LSTM_G * units + unit] = dc * gate_value(attrs, reserve, row, step, TDI_LSTM_I, unit);
        dz[TDI_LSTM_I * units + unit] = dc * gate_value(attrs, reserve, row, step, TDI_LSTM_G, unit);
    }
    for (int g = 0; g < TDI_LSTM_GATES; g++)
        tdi_lstm_slope_row(tdi_lstm_activation(attrs, g), units, tdi_lstm_at(reserve, row, step, g), dz + g * units,
                           dz + g * units);
}

/* dc goes from step to step in the first gate's place of the step before, whose own dz is computed later. */
static void row_back(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row, int64_t step)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    const tdi_value *dy = &call->in[TDI_LSTM_GRAD_DY];
    bool last = step + 1 == reserve->steps;
    const float *dh_outside = tdi_lstm_dh(dy, attrs, reserve, row, step),
                *dc_outside = tdi_lstm_dc(dy, attrs, reserve, row);
    float *dz = tdi_lstm_z(&call->out, attrs, reserve, row, step);
    for (int64_t unit = 0; unit < reserve->units; unit++) {
        double dh = dh_outside ? (double)dh_outside[unit] : 0;
        if (last)
            dz[unit] = dc_outside ? dc_outside[unit] : 0.0f;
        else
            dh += through_recurrence(call, tdi_lstm_z(&call->out, attrs, reserve, row, step + 1),
                                     tdi_lstm_mask(call, TDI_LSTM_GRAD_MASK, row), reserve->units, unit);
        dz[TDI_LSTM_O * reserve->units + unit] = (float)dh;
    }
    float *passed = attrs->passed ? tdi_lstm_dstate(&call->out, reserve, row) + reserve->units : NULL;
    gates_back(call, reserve, row, step, step ? tdi_lstm_z(&call->out, attrs, reserve, row, step - 1) : passed);
}

/* dc is in its place already. */
static void passed_back(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t row)
{
    const float *mask = tdi_lstm_mask(call, TDI_LSTM_GRAD_MASK, row);
    float *to = tdi_lstm_dstate(&call->out, reserve, row);
    for (int64_t unit = 0; unit < reserve->units; unit++)
        to[unit] = (float)through_recurrence(call, tdi_lstm_z(&call->out, call->attrs, reserve, row, 0), mask,
                                             reserve->units, unit);
    memset(to + 2 * reserve->units, 0, (size_t)(2 * reserve->units) * sizeof *to);
}

static void lstm_grad_reference(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_GRAD_RESERVE]);
    for (int64_t row = 0; row < reserve.rows; row++) {
        for (int64_t step = reserve.steps - 1; step >= 0; step--)
            row_back(call, &reserve, row, step);
        if (((const tdi_lstm_attrs *)call->attrs)->passed)
            passed_back(call, &reserve, row);
    }
}

static double lstm_grad_flops(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_GRAD_RESERVE]);
    double units = (double)reserve.units;
    return (double)(reserve.rows * reserve.steps) * units * (2 * TDI_LSTM_GATES * units + 20);
}

static tdi_split lstm_grad_reads(const tdi_node *node, int i, tdi_split split)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    bool by_row = i == TDI_LSTM_GRAD_C ? attrs->passed : i != TDI_LSTM_GRAD_R;
    return split == TDI_ROWS && by_row ? TDI_ROWS : TDI_WHOLE;
}

const tdi_op tdi_op_lstm_grad = {.name = "lstm_grad",
                                 .min_in = 3,
                                 .max_in = 5,
                                 .attrs_size = sizeof(tdi_lstm_attrs),
                                 .infer = lstm_grad_infer,
                                 .no_gradient = "it is one itself",
                                 .reference = lstm_grad_reference,
                                 .flops = lstm_grad_flops,
                                 .reads = lstm_grad_reads,
                                 .share = TDI_SHARE_STEPS};

tdi_node *tdi_lstm_grad(tdi_graph *graph, tdi_node *reserve, tdi_node *dy, const tdi_lstm_inputs *in,
                        const tdi_lstm_attrs *attrs)
{
    if (!reserve || !dy || !in->recurrent)
        return NULL;
    return tdi_node_create(graph, &tdi_op_lstm_grad, attrs, 5,
                           (tdi_node *[]){reserve, dy, in->recurrent, in->mask, in->c});
}

/* ---- lstm_grad_recurrent ---- */

static td_status lstm_grad_recurrent_infer(tdi_node *node, tdi_error *error)
{
    const tdi_lstm_attrs *attrs = node->attrs;
    TDI_TRY(tdi_lstm_check_reserve(node, attrs, error));
    const td_shape *reserve = &node->in[TDI_LSTM_RECURRENT_RESERVE]->shape;
    td_shape dz = *reserve;
    dz.dim[2] = TDI_LSTM_GATES;
    TDI_TRY(tdi_want_shape(node, TDI_LSTM_RECURRENT_DZ, &dz, error));
    TDI_TRY(tdi_lstm_check_mask(node, TDI_LSTM_RECURRENT_MASK, reserve->dim[3], error));
    TDI_TRY(tdi_lstm_check_state(node, TDI_LSTM_RECURRENT_H, reserve->dim[3], attrs, error));
    node->shape = (td_shape){2, {reserve->dim[3], TDI_LSTM_GATES * reserve->dim[3]}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static double recurrent_element(const tdi_call *call, const tdi_lstm_reserve *reserve, int64_t unit, int64_t column)
{
    double sum = 0;
    for (int64_t row = 0; row < reserve->rows; row++) {
        const float *mask = tdi_lstm_mask(call, TDI_LSTM_RECURRENT_MASK, row);
        double kept = mask ? (double)mask[column / reserve->units * reserve->units + unit] : 1;
        for (int64_t step = 0; step < reserve->steps; step++) {
            const float *h = tdi_lstm_h_before(call, reserve, TDI_LSTM_RECURRENT_H, row, step);
            const float *dz = tdi_lstm_z(&call->in[TDI_LSTM_RECURRENT_DZ], call->attrs, reserve, row, step);
            sum += h ? kept * (double)h[unit] * (double)dz[column] : 0;
        }
    }
    return sum;
}

static void lstm_grad_recurrent_reference(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_RECURRENT_RESERVE]);
    float *out = call->out.data;
    for (int64_t unit = 0; unit < reserve.units; unit++)
        for (int64_t column = 0; column < TDI_LSTM_GATES * reserve.units; column++)
            *out++ = (float)recurrent_element(call, &reserve, unit, column);
}

static double lstm_grad_recurrent_flops(const tdi_call *call)
{
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_RECURRENT_RESERVE]);
    return 2.0 * (double)(reserve.rows * reserve.steps) * (double)tdi_shape_elements(&call->out.shape);
}

static tdi_split lstm_grad_recurrent_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return split == TDI_ROWS && i != TDI_LSTM_RECURRENT_DZ ? TDI_COLUMNS : TDI_WHOLE;
}

const tdi_op tdi_op_lstm_grad_recurrent = {.name = "lstm_grad_recurrent",
                                           .min_in = 2,
                                           .max_in = 4,
                                           .attrs_size = sizeof(tdi_lstm_attrs),
                                           .infer = lstm_grad_recurrent_infer,
                                           .no_gradient = "it is one itself",
                                           .reference = lstm_grad_recurrent_reference,
                                           .flops = lstm_grad_recurrent_flops,
                                           .reads = lstm_grad_recurrent_reads};

tdi_node *tdi_lstm_grad_recurrent(tdi_graph *graph, tdi_node *reserve, tdi_node *dz, const tdi_lstm_inputs *in,
                                  const tdi_lstm_attrs *attrs)
{
    if (!reserve || !dz)
        return NULL;
    return tdi_node_create(graph, &tdi_op_lstm_grad_recurrent, attrs, 4, (tdi_node *[]){reserve, dz, in->mask, in->h});
}
