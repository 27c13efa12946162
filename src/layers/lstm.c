/* lstm.c - LSTM: [batch, time, features] -> [batch, units], or [batch, time, units] with return_sequences.
 *
 * The input's share of the gates is one product over all steps, x W + b. The fuse pass moves it into the recurrence
 * where features are few. */
#include "layers/layer.h"
#include "ops/ops.h"

enum { GATES = 4 };

static const tdi_field fields[] = {
    TDI_FIELD(CHOICE, td_lstm_args, return_sequences, "return_sequences", 0),
    TDI_FIELD(CHOICE, td_lstm_args, return_state, "return_state", 0),
    TDI_FIELD(CHOICE, td_lstm_args, go_backwards, "go_backwards", 0),
    TDI_FIELD(CHOICE, td_lstm_args, stateful, "stateful", 0),
    TDI_FIELD(CHOICE, td_lstm_args, unroll, "unroll", 0),
    TDI_FIXED_FIELD("zero_output_for_mask", "false"),
    TDI_FIELD(INT64, td_lstm_args, units, "units", 0),
    TDI_FIELD(ACTIVATION, td_lstm_args, activation, "activation", TD_TANH),
    TDI_FIELD(ACTIVATION, td_lstm_args, recurrent_activation, "recurrent_activation", TD_SIGMOID),
    TDI_FIELD(CHOICE, td_lstm_args, use_bias, "use_bias", 1),
    TDI_INITIALIZER_FIELD(td_lstm_args, kernel_initializer, "kernel_initializer", "GlorotUniform"),
    TDI_INITIALIZER_FIELD(td_lstm_args, recurrent_initializer, "recurrent_initializer", "Orthogonal"),
    TDI_INITIALIZER_FIELD(td_lstm_args, bias_initializer, "bias_initializer", "Zeros"),
    TDI_FIELD(CHOICE, td_lstm_args, unit_forget_bias, "unit_forget_bias", 1),
    TDI_FIELD(REGULARIZER, td_lstm_args, kernel_regularizer, "kernel_regularizer", 0),
    TDI_FIELD(REGULARIZER, td_lstm_args, recurrent_regularizer, "recurrent_regularizer", 0),
    TDI_FIELD(REGULARIZER, td_lstm_args, bias_regularizer, "bias_regularizer", 0),
    TDI_FIXED_FIELD("activity_regularizer", "null"),
    TDI_FIXED_FIELD("kernel_constraint", "null"),
    TDI_FIXED_FIELD("recurrent_constraint", "null"),
    TDI_FIXED_FIELD("bias_constraint", "null"),
    TDI_FIELD(FLOAT, td_lstm_args, dropout, "dropout", 0),
    TDI_FIELD(FLOAT, td_lstm_args, recurrent_dropout, "recurrent_dropout", 0),
    TDI_FIELD(SEED, td_lstm_args, seed, "seed", 0),
    TDI_IGNORED_FIELD("implementation"), /* Keras 2: how it is computed, not what */
    {0},
};

/* ---- shapes and weights ---- */

static td_status check_rate(float rate, const char *which, tdi_error *error)
{
    if (rate >= 0 && rate < 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is %g: the fraction to drop is at least 0 and below 1", which,
                    (double)rate);
}

static int outputs(const tdi_layer *layer)
{
    const td_lstm_args *args = layer->args;
    return args->return_state == TD_YES ? 3 : 1;
}

static td_status check_initial_state(const tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_lstm_args *args = layer->args;
    char text[TDI_SHAPE_TEXT];
    if (n_in != 1 && n_in != 3)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "initial_state has %d tensor%s: it takes two, h and c", n_in - 1,
                        n_in == 2 ? "" : "s");
    for (int i = 1; i < n_in; i++)
        if (in[i].rank != 1 || in[i].dim[0] != args->units)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "initial_state is %s: h and c are [batch, %lld]",
                            tdi_sample_text(&in[i], text), (long long)args->units);
    return TD_OK;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_lstm_args *args = layer->args;
    char text[TDI_SHAPE_TEXT];
    if (args->units < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "units is %lld: it must be at least 1", (long long)args->units);
    if (in[0].rank != 2)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "it takes [batch, time, features], and was called on %s",
                        tdi_sample_text(&in[0], text));
    TDI_TRY(tdi_activation_check(args->activation, &(td_shape){1, {args->units}}, error));
    TDI_TRY(tdi_activation_check(args->recurrent_activation, &(td_shape){1, {args->units}}, error));
    TDI_TRY(check_rate(args->dropout, "dropout", error));
    TDI_TRY(check_rate(args->recurrent_dropout, "recurrent_dropout", error));
    TDI_TRY(check_initial_state(layer, n_in, in, error));
    if (args->stateful == TD_YES && layer->n_calls)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "it is stateful and called twice, where each call would go on from the other's state; make a "
                        "layer for each");
    td_shape state = {1, {args->units}};
    out[0] = args->return_sequences == TD_YES ? (td_shape){2, {in[0].dim[0], args->units}} : state;
    if (args->return_state == TD_YES)
        out[1] = out[2] = state;
    return TD_OK;
}

static td_status build_states(tdi_layer *layer, tdi_error *error)
{
    const td_lstm_args *args = layer->args;
    if (args->stateful != TD_YES)
        return TD_OK;
    TDI_TRY(tdi_layer_state(layer, "h", args->units, error));
    return tdi_layer_state(layer, "c", args->units, error);
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_lstm_args *args = layer->args;
    (void)n_in;
    int64_t units = args->units;
    TDI_TRY(build_states(layer, error));
    td_shape kernel = {2, {in[0].dim[1], GATES * units}}, recurrent = {2, {units, GATES * units}};
    td_shape bias = {1, {GATES * units}};
    TDI_TRY(
        tdi_layer_weight(layer, "kernel", &kernel, true, &args->kernel_initializer, &args->kernel_regularizer, error));
    TDI_TRY(tdi_layer_weight(layer, "recurrent_kernel", &recurrent, true, &args->recurrent_initializer,
                             &args->recurrent_regularizer, error));
    if (args->use_bias == TD_NO)
        return TD_OK;
    TDI_TRY(tdi_layer_weight(layer, "bias", &bias, true, &args->bias_initializer, &args->bias_regularizer, error));
    if (args->unit_forget_bias == TD_YES) {
        layer->weights.at[2]->ones = units;
        layer->weights.at[2]->ones_end = 2 * units;
    }
    return TD_OK;
}

/* ---- the gates before the recurrence ---- */

/* Ones with dropout applied, [batch, masks, width]: all steps of a sample share one draw. */
static tdi_node *emit_mask(const tdi_emit *emit, const tdi_layer *layer, int64_t masks, int64_t width, float rate)
{
    const td_lstm_args *args = layer->args;
    td_shape shape = {3, {TDI_BATCH, masks, width}};
    return tdi_layer_dropout(emit, layer, tdi_fill(emit->graph, 1.0f, &shape), rate, args->seed);
}

/* Keras draws a mask for each gate when recurrent_dropout is set too. */
static tdi_node *emit_product_per_gate(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x, tdi_node *kernel)
{
    const td_lstm_args *args = layer->args;
    tdi_graph *graph = emit->graph;
    tdi_node *gates[GATES], *masks = emit_mask(emit, layer, GATES, x->shape.dim[2], args->dropout);
    for (int g = 0; g < GATES; g++) {
        tdi_node *kept = tdi_binary(graph, TDI_MULTIPLY, x, tdi_slice(graph, masks, 1, g, 1));
        gates[g] = tdi_matmul(graph, kept, tdi_slice(graph, kernel, 1, g * args->units, args->units), false, false);
    }
    return tdi_concat(graph, GATES, gates, 2);
}

static tdi_node *emit_product(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x)
{
    const td_lstm_args *args = layer->args;
    tdi_node *kernel = tdi_layer_parameter(emit, layer, 0);
    bool drops = emit->training && args->dropout > 0;
    if (!x || !kernel)
        return NULL;
    if (drops && args->recurrent_dropout > 0)
        return emit_product_per_gate(emit, layer, x, kernel);
    if (drops)
        x = tdi_binary(emit->graph, TDI_MULTIPLY, x, emit_mask(emit, layer, 1, x->shape.dim[2], args->dropout));
    return tdi_matmul(emit->graph, x, kernel, false, false);
}

static tdi_node *emit_gates(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x)
{
    const td_lstm_args *args = layer->args;
    tdi_node *z = emit_product(emit, layer, x);
    if (args->use_bias == TD_YES)
        z = tdi_bias_add(emit->graph, z, tdi_layer_parameter(emit, layer, 2));
    if (!z)
        return NULL;
    td_shape by_gate = {4, {TDI_BATCH, z->shape.dim[1], GATES, args->units}};
    return tdi_reshape(emit->graph, z, &by_gate);
}

/* ---- outputs ---- */

/* y[:, row] of y [batch, n, units], as [batch, units]. */
static tdi_node *pick(tdi_graph *graph, tdi_node *y, int64_t row)
{
    if (!y)
        return NULL;
    td_shape shape = {2, {TDI_BATCH, y->shape.dim[2]}};
    return tdi_reshape(graph, tdi_slice(graph, y, 1, row, 1), &shape);
}

static void emit_states(tdi_graph *graph, tdi_node *y, bool sequences, tdi_node **out)
{
    if (!y)
        return;
    int64_t n = y->shape.dim[1] - 1;
    out[1] = pick(graph, y, n - 1);
    out[2] = pick(graph, y, n);
    out[0] = sequences ? tdi_slice(graph, y, 1, 0, n) : out[1];
}

static void emit_all(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in, tdi_node **out)
{
    const td_lstm_args *args = layer->args;
    bool drops = emit->training && args->recurrent_dropout > 0, stateful = args->stateful == TD_YES, passed = n_in == 3;
    tdi_node *h = stateful ? tdi_parameter(emit->graph, layer->states.at[0]) : NULL;
    tdi_node *c = stateful ? tdi_parameter(emit->graph, layer->states.at[1]) : NULL;
    tdi_lstm_inputs inputs = {
        .z = emit_gates(emit, layer, in[0]),
        .recurrent = tdi_layer_parameter(emit, layer, 1),
        .mask = drops ? emit_mask(emit, layer, GATES, args->units, args->recurrent_dropout) : NULL,
        .h = passed ? in[1] : h,
        .c = passed ? in[2] : c,
    };
    tdi_lstm_attrs attrs = {.activation = (int)args->activation,
                            .recurrent_activation = (int)args->recurrent_activation,
                            .backwards = args->go_backwards == TD_YES,
                            .gates = emit->training,
                            .sequences = args->return_sequences == TD_YES,
                            .state = args->return_state == TD_YES,
                            .passed = passed};
    tdi_node *reserve = tdi_lstm(emit->graph, &inputs, &attrs);
    out[0] = tdi_lstm_output(emit->graph, reserve, &inputs, &attrs);
    if (attrs.state)
        emit_states(emit->graph, out[0], attrs.sequences, out);
    if (stateful) {
        tdi_lstm_keep(emit->graph, reserve, h, false);
        tdi_lstm_keep(emit->graph, reserve, c, true);
    }
}

const tdi_layer_type tdi_layer_type_lstm = {
    TDI_LAYER("LSTM", lstm, 1, -1),
    .argument = "sequences",
    .keyword = "initial_state",
    .cell = "cell",
    .outputs = outputs,
    .infer = infer,
    .build = build,
    .emit_all = emit_all,
};

td_tensor *td_lstm_(const td_lstm_args *args)
{
    int states = tdi_tensor_list_count(args->initial_state);
    td_tensor *in[4] = {args->x};
    for (int i = 0; i < states && i < 3; i++)
        in[1 + i] = args->initial_state[i];
    return tdi_layer_apply(tdi_tensors_context(1, &args->x), &tdi_layer_type_lstm, args,
                           &(tdi_layer_use){"td_lstm", args->at, args->guard, args->name, args->trainable,
                                            1 + (states < 3 ? states : 3), in});
}
