/* cases_lstm.c - the steps of an LSTM, forwards and back. Leaves: z, R; then as there are: mask [B, 4, u], h and c
 * [global batch, u], or [B, u] when they are passed; for the gradients, last, what arrives. Where z is x [B, T, f], W
 * [f, 4u] and b come last. */
#include "support/op_case.h"

#define BATCH TDI_BATCH
enum { T = 3, U = 3, STATES = 64, WIDE_T = 4, WIDE_U = 37, WHOLE_T = 5, WHOLE_U = 128, F = 2, WIDE_F = 9 };
enum { FEW_T = 3, LONE_T = 9, LONG_T = 15, LONE_U = 256, SHARD_U = 80 /* a panel and some vectors */ };

static bool is_mask(const op_leaf *leaf)
{
    return leaf->shape.rank == 3 && leaf->constant && leaf->shape.dim[1] == 4;
}

static bool is_state(const op_leaf *leaf, const op_case *c)
{
    const tdi_lstm_attrs *attrs = c->attrs;
    return leaf->shape.rank == 2 && leaf->shape.dim[0] == (attrs->passed ? c->leaf[0].shape.dim[0] : STATES);
}

static tdi_lstm_inputs inputs_of(tdi_node *const *leaf, const op_case *c)
{
    tdi_lstm_inputs in = {.z = leaf[0], .recurrent = leaf[1]};
    for (int i = 2; i < c->n_leaves; i++) {
        if (is_mask(&c->leaf[i]))
            in.mask = leaf[i];
        if (is_state(&c->leaf[i], c) && !in.c)
            *(in.h ? &in.c : &in.h) = leaf[i];
    }
    return in;
}

static tdi_node *build_reserve(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_lstm_inputs in = inputs_of(leaf, c);
    return tdi_lstm(graph, &in, c->attrs);
}

static tdi_node *build_from_x(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    int bias = c->leaf[c->n_leaves - 1].shape.rank == 1;
    op_case steps = *c;
    steps.n_leaves -= 1 + bias;
    tdi_lstm_inputs in = inputs_of(leaf, &steps);
    in.kernel = leaf[steps.n_leaves];
    in.bias = bias ? leaf[steps.n_leaves + 1] : NULL;
    return tdi_lstm(graph, &in, c->attrs);
}

static tdi_node *build_output(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_lstm_inputs in = inputs_of(leaf, c);
    return tdi_lstm_output(graph, build_reserve(graph, leaf, c), &in, c->attrs);
}

static tdi_node *build_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_lstm_inputs in = inputs_of(leaf, c);
    return tdi_lstm_grad(graph, build_reserve(graph, leaf, c), leaf[c->n_leaves - 1], &in, c->attrs);
}

/* z itself stands in for the gradient of the steps. */
static tdi_node *build_recurrent(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_lstm_inputs in = inputs_of(leaf, c);
    return tdi_lstm_grad_recurrent(graph, build_reserve(graph, leaf, c), leaf[0], &in, c->attrs);
}

static tdi_node *build_keep(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_lstm_attrs *attrs = c->attrs;
    return tdi_lstm_keep(graph, build_reserve(graph, leaf, c), leaf[2], attrs->backwards);
}

#define ATTRS(activation_, recurrent_, ...) (&(const tdi_lstm_attrs){activation_, recurrent_, __VA_ARGS__})
#define USUAL(...)                          ATTRS(TD_TANH, TD_SIGMOID, __VA_ARGS__)
#define Z(t, u)                                                                                                        \
    {                                                                                                                  \
        .shape = OP_DIMS(BATCH, t, 4, u)                                                                               \
    }
#define X(t, f)                                                                                                        \
    {                                                                                                                  \
        .shape = OP_DIMS(BATCH, t, f)                                                                                  \
    }
#define W(f, u)                                                                                                        \
    {                                                                                                                  \
        .shape = OP_DIMS(f, 4 * (u))                                                                                   \
    }
#define B(u)                                                                                                           \
    {                                                                                                                  \
        .shape = OP_DIMS(4 * (u))                                                                                      \
    }
#define R(u)                                                                                                           \
    {                                                                                                                  \
        .shape = OP_DIMS(u, 4 * (u))                                                                                   \
    }
#define MASK(u)                                                                                                        \
    {                                                                                                                  \
        .shape = OP_DIMS(BATCH, 4, u), .constant = true                                                                \
    }
#define STATE(u)                                                                                                       \
    {                                                                                                                  \
        .shape = OP_DIMS(STATES, u), .constant = true                                                                  \
    }
#define PASSED(u)                                                                                                      \
    {                                                                                                                  \
        .shape = OP_DIMS(BATCH, u)                                                                                     \
    }
#define ARRIVING(...)                                                                                                  \
    {                                                                                                                  \
        .shape = OP_DIMS(__VA_ARGS__)                                                                                  \
    }

/* One row, of so many units that one thread or two share the products by depth and, for LONE_T steps, pack R. */
#define LONE_Z(t, u)                                                                                                   \
    {                                                                                                                  \
        .shape = OP_DIMS(1, t, 4, u)                                                                                   \
    }
/* The weights are small, because large ones would magnify rounding errors over many steps. */
#define LONE_R(u)                                                                                                      \
    {                                                                                                                  \
        .shape = OP_DIMS(u, 4 * (u)), .fill = OP_SPREAD, .step = 0.05 / ((u) * (u))                                    \
    }
#define LONE_X                                                                                                         \
    {                                                                                                                  \
        .shape = OP_DIMS(1, LONE_T, WIDE_F)                                                                            \
    }
#define LONE_PASSED                                                                                                    \
    {                                                                                                                  \
        .shape = OP_DIMS(1, WHOLE_U)                                                                                   \
    }

#define CASE(op_, name_, build_, attrs_, n_, ...)                                                                      \
    {                                                                                                                  \
        .op = &tdi_op_##op_, .name = name_, .attrs = attrs_, .build = build_, .n_leaves = n_, .leaf = { __VA_ARGS__ }  \
    }

/* One row of one panel of units, or of one panel for each of three threads. A panel has 64, 16 or 8 units. */
#define PANELS(u)                                                                                                      \
    CASE(lstm, "one row of " #u " units, from x", build_from_x, USUAL(.gates = true), 4, LONE_X, LONE_R(u),            \
         W(WIDE_F, u), B(u))
#define PANELS_BACK(u)                                                                                                 \
    CASE(lstm_grad, "one row of " #u " units, from a passed state", build_grad,                                        \
         USUAL(.gates = true, .passed = true, .sequences = true), 5, LONE_Z(LONE_T, u), LONE_R(u),                     \
         {.shape = OP_DIMS(1, u)}, {.shape = OP_DIMS(1, u)}, ARRIVING(1, LONE_T, u))

/* Over many units only activations whose values have bounds: others would enlarge what rounding leaves, step by step.
 */
const op_case op_cases_lstm[] = {
    CASE(lstm, "usual", build_reserve, USUAL(.gates = true), 2, Z(T, U), R(U)),
    CASE(lstm, "without gates", build_reserve, USUAL(.gates = false), 2, Z(T, U), R(U)),
    CASE(lstm, "backwards, from a state", build_reserve, USUAL(.gates = true, .backwards = true), 4, Z(T, U), R(U),
         STATE(U), STATE(U)),
    CASE(lstm, "masked", build_reserve, USUAL(.gates = true), 3, Z(T, U), R(U), MASK(U)),
    CASE(lstm, "other activations", build_reserve, ATTRS(TD_RELU, TD_HARD_SIGMOID, .gates = true), 2, Z(T, U), R(U)),
    CASE(lstm, "gates as sums", build_reserve, ATTRS(TD_SILU, TD_SOFTSIGN, .gates = true), 2, Z(T, U), R(U)),
    CASE(lstm, "no gates of other activations", build_reserve, ATTRS(TD_GELU, TD_MISH, .gates = false), 2, Z(T, U),
         R(U)),
    CASE(lstm, "other activations, wide, masked, from a state", build_reserve,
         ATTRS(TD_SOFTSIGN, TD_HARD_SIGMOID, .gates = true, .backwards = true), 5, Z(WIDE_T, WIDE_U), R(WIDE_U),
         MASK(WIDE_U), STATE(WIDE_U), STATE(WIDE_U)),
    CASE(lstm, "other activations, from x, whole vectors", build_from_x, ATTRS(TD_SOFTSIGN, TD_SIGMOID, .gates = true),
         4, X(WHOLE_T, WIDE_F), R(WHOLE_U), W(WIDE_F, WHOLE_U), B(WHOLE_U)),
    CASE(lstm, "other activations, from x, wide", build_from_x, ATTRS(TD_TANH, TD_SOFTSIGN, .gates = true), 4,
         X(WIDE_T, WIDE_F), R(WIDE_U), W(WIDE_F, WIDE_U), B(WIDE_U)),
    CASE(lstm, "softmax", build_reserve, ATTRS(TD_SOFTMAX, TD_SIGMOID, .gates = true), 2, Z(WIDE_T, WIDE_U), R(WIDE_U)),
    CASE(lstm, "softmax and log-softmax, whole vectors", build_reserve,
         ATTRS(TD_LOG_SOFTMAX, TD_SOFTMAX, .gates = false), 2, Z(WHOLE_T, WHOLE_U), R(WHOLE_U)),
    CASE(lstm, "wide", build_reserve, USUAL(.gates = true), 2, Z(WIDE_T, WIDE_U), R(WIDE_U)),
    CASE(lstm, "wide, masked, from a state", build_reserve, USUAL(.gates = true), 5, Z(WIDE_T, WIDE_U), R(WIDE_U),
         MASK(WIDE_U), STATE(WIDE_U), STATE(WIDE_U)),
    CASE(lstm, "whole vectors", build_reserve, USUAL(.gates = true), 2, Z(WHOLE_T, WHOLE_U), R(WHOLE_U)),
    CASE(lstm, "whole vectors, backwards, from a state", build_reserve, USUAL(.gates = false, .backwards = true), 4,
         Z(WHOLE_T, WHOLE_U), R(WHOLE_U), STATE(WHOLE_U), STATE(WHOLE_U)),
    CASE(lstm, "from a passed state", build_reserve, USUAL(.gates = true, .passed = true), 4, Z(T, U), R(U), PASSED(U),
         PASSED(U)),
    CASE(lstm, "from x", build_from_x, USUAL(.gates = true), 4, X(T, F), R(U), W(F, U), B(U)),
    CASE(lstm, "from x, without a bias, backwards, masked", build_from_x, USUAL(.gates = true, .backwards = true), 4,
         X(T, F), R(U), MASK(U), W(F, U)),
    CASE(lstm, "from x, wide, from a state", build_from_x, USUAL(.gates = true), 6, X(WIDE_T, WIDE_F), R(WIDE_U),
         STATE(WIDE_U), STATE(WIDE_U), W(WIDE_F, WIDE_U), B(WIDE_U)),
    CASE(lstm, "from x, whole vectors", build_from_x, USUAL(.gates = true), 4, X(WHOLE_T, WIDE_F), R(WHOLE_U),
         W(WIDE_F, WHOLE_U), B(WHOLE_U)),
    CASE(lstm, "from x, whole vectors, without a bias, backwards, from a passed state", build_from_x,
         USUAL(.gates = false, .backwards = true, .passed = true), 5, X(WHOLE_T, WIDE_F), R(WHOLE_U), PASSED(WHOLE_U),
         PASSED(WHOLE_U), W(WIDE_F, WHOLE_U)),
    CASE(lstm, "whole vectors, many steps, backwards, from a passed state", build_reserve,
         USUAL(.gates = true, .backwards = true, .passed = true), 4, Z(LONE_T, SHARD_U), LONE_R(SHARD_U),
         PASSED(SHARD_U), PASSED(SHARD_U)),
    CASE(lstm, "from x, whole vectors, many steps", build_from_x, USUAL(.gates = true), 4, X(LONE_T, WIDE_F),
         LONE_R(WHOLE_U), W(WIDE_F, WHOLE_U), B(WHOLE_U)),
    CASE(lstm, "other activations, from x, whole vectors, many steps, from a state", build_from_x,
         ATTRS(TD_SOFTSIGN, TD_SIGMOID, .gates = false), 5, X(LONE_T, WIDE_F), LONE_R(SHARD_U), STATE(SHARD_U),
         STATE(SHARD_U), W(WIDE_F, SHARD_U)),
    CASE(lstm, "one row of few steps", build_reserve, USUAL(.gates = true), 2, LONE_Z(FEW_T, WHOLE_U), LONE_R(WHOLE_U)),
    CASE(lstm, "one row of few steps, from x and a passed state", build_from_x, USUAL(.gates = true, .passed = true), 6,
         {.shape = OP_DIMS(1, FEW_T, WIDE_F)}, LONE_R(LONE_U), {.shape = OP_DIMS(1, LONE_U)},
         {.shape = OP_DIMS(1, LONE_U)}, W(WIDE_F, LONE_U), B(LONE_U)),
    CASE(lstm, "one row", build_reserve, USUAL(.gates = true), 2, LONE_Z(LONE_T, WHOLE_U), LONE_R(WHOLE_U)),
    CASE(lstm, "one row of many units", build_reserve, USUAL(.gates = true), 2, LONE_Z(LONE_T, LONE_U), LONE_R(LONE_U)),
    CASE(lstm, "one row, other activations", build_reserve, ATTRS(TD_SOFTSIGN, TD_HARD_SIGMOID, .gates = true), 2,
         LONE_Z(LONE_T, LONE_U), LONE_R(LONE_U)),
    CASE(lstm, "one row, backwards, from a state", build_reserve, USUAL(.gates = false, .backwards = true), 4,
         LONE_Z(LONE_T, WHOLE_U), LONE_R(WHOLE_U), STATE(WHOLE_U), STATE(WHOLE_U)),
    CASE(lstm, "one row, from x and a passed state", build_from_x, USUAL(.gates = true, .passed = true), 6, LONE_X,
         LONE_R(WHOLE_U), LONE_PASSED, LONE_PASSED, W(WIDE_F, WHOLE_U), B(WHOLE_U)),
    CASE(lstm, "one row, from x, backwards, of many steps", build_from_x, USUAL(.gates = true, .backwards = true), 3,
         {.shape = OP_DIMS(1, LONG_T, WIDE_F)}, LONE_R(WHOLE_U), W(WIDE_F, WHOLE_U)),
    PANELS(8),
    PANELS(16),
    PANELS(24),
    PANELS(48),
    PANELS(64),
    PANELS(192),
    CASE(lstm, "one step of one unit", build_reserve, USUAL(.gates = true), 2, Z(1, 1), R(1)),

    CASE(lstm_output, "last", build_output, USUAL(.gates = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "sequences", build_output, USUAL(.gates = true, .sequences = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "sequences backwards", build_output, USUAL(.gates = true, .sequences = true, .backwards = true),
         2, Z(T, U), R(U)),
    CASE(lstm_output, "last and state", build_output, USUAL(.gates = true, .state = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "sequences and state, masked, from a state", build_output,
         USUAL(.gates = true, .state = true, .sequences = true), 5, Z(T, U), R(U), MASK(U), STATE(U), STATE(U)),
    CASE(lstm_output, "from a passed state", build_output, USUAL(.gates = true, .passed = true), 4, Z(T, U), R(U),
         PASSED(U), PASSED(U)),
    CASE(lstm_output, "sequences and state backwards, masked, from a passed state", build_output,
         USUAL(.gates = true, .state = true, .sequences = true, .backwards = true, .passed = true), 5, Z(T, U), R(U),
         MASK(U), PASSED(U), PASSED(U)),
    CASE(lstm_output, "one step from a passed state", build_output, USUAL(.gates = true, .passed = true), 4, Z(1, 2),
         R(2), PASSED(2), PASSED(2)),
    CASE(lstm_output, "linear", build_output, ATTRS(TD_LINEAR, TD_SIGMOID, .gates = true, .sequences = true), 2,
         Z(T, U), R(U)),
    CASE(lstm_output, "silu", build_output, ATTRS(TD_SILU, TD_SIGMOID, .gates = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "gelu and hard silu, sequences and state backwards, masked, from a passed state", build_output,
         ATTRS(TD_GELU, TD_HARD_SILU, .gates = true, .state = true, .sequences = true, .backwards = true,
               .passed = true),
         5, Z(T, U), R(U), MASK(U), PASSED(U), PASSED(U)),
    CASE(lstm_output, "softsign and mish", build_output, ATTRS(TD_SOFTSIGN, TD_MISH, .gates = true, .sequences = true),
         2, Z(T, U), R(U)),
    CASE(lstm_output, "tanh-shrink, from a state", build_output, ATTRS(TD_TANH_SHRINK, TD_SIGMOID, .gates = true), 4,
         Z(T, U), R(U), STATE(U), STATE(U)),
    CASE(lstm_output, "squareplus", build_output, ATTRS(TD_SQUAREPLUS, TD_SIGMOID, .gates = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "softmax", build_output, ATTRS(TD_SOFTMAX, TD_SIGMOID, .gates = true), 2, Z(T, U), R(U)),
    CASE(lstm_output, "softmax and log-softmax, sequences and state, masked, from a passed state", build_output,
         ATTRS(TD_LOG_SOFTMAX, TD_SOFTMAX, .gates = true, .state = true, .sequences = true, .passed = true), 5, Z(T, U),
         R(U), MASK(U), PASSED(U), PASSED(U)),
    CASE(lstm_output, "one step", build_output, USUAL(.gates = true, .sequences = true), 2, Z(1, 2), R(2)),

    CASE(lstm_grad, "last", build_grad, USUAL(.gates = true), 3, Z(T, U), R(U), ARRIVING(BATCH, U)),
    CASE(lstm_grad, "sequences and state, masked, from a state", build_grad,
         USUAL(.gates = true, .sequences = true, .state = true, .backwards = true), 6, Z(T, U), R(U), MASK(U), STATE(U),
         STATE(U), ARRIVING(BATCH, T + 1, U)),
    CASE(lstm_grad, "last and state", build_grad, USUAL(.gates = true, .state = true), 3, Z(T, U), R(U),
         ARRIVING(BATCH, 2, U)),
    CASE(lstm_grad, "other activations", build_grad, ATTRS(TD_RELU, TD_HARD_SIGMOID, .gates = true), 3, Z(T, U), R(U),
         ARRIVING(BATCH, U)),
    CASE(lstm_grad, "gates as sums", build_grad, ATTRS(TD_SILU, TD_SOFTSIGN, .gates = true), 3, Z(T, U), R(U),
         ARRIVING(BATCH, U)),
    CASE(lstm_grad, "gates as sums, wide, masked", build_grad,
         ATTRS(TD_TANH, TD_SOFTSIGN, .gates = true, .sequences = true), 4, Z(WIDE_T, WIDE_U), R(WIDE_U), MASK(WIDE_U),
         ARRIVING(BATCH, WIDE_T, WIDE_U)),
    CASE(lstm_grad, "gates as sums, whole vectors, backwards, from a passed state", build_grad,
         ATTRS(TD_SOFTSIGN, TD_SIGMOID, .gates = true, .passed = true, .backwards = true), 5, Z(WHOLE_T, WHOLE_U),
         R(WHOLE_U), PASSED(WHOLE_U), PASSED(WHOLE_U), ARRIVING(BATCH, WHOLE_U)),
    CASE(lstm_grad, "softmax, wide", build_grad, ATTRS(TD_SOFTMAX, TD_SIGMOID, .gates = true), 3, Z(WIDE_T, WIDE_U),
         R(WIDE_U), ARRIVING(BATCH, WIDE_U)),
    CASE(lstm_grad, "softmax and log-softmax, from a passed state", build_grad,
         ATTRS(TD_LOG_SOFTMAX, TD_SOFTMAX, .gates = true, .passed = true, .sequences = true), 5, Z(T, U), R(U),
         PASSED(U), PASSED(U), ARRIVING(BATCH, T, U)),
    CASE(lstm_grad, "wide", build_grad, USUAL(.gates = true), 3, Z(WIDE_T, WIDE_U), R(WIDE_U), ARRIVING(BATCH, WIDE_U)),
    CASE(lstm_grad, "whole vectors", build_grad, USUAL(.gates = true), 3, Z(WHOLE_T, WHOLE_U), R(WHOLE_U),
         ARRIVING(BATCH, WHOLE_U)),
    CASE(lstm_grad, "from a passed state", build_grad, USUAL(.gates = true, .passed = true, .sequences = true), 5,
         Z(T, U), R(U), PASSED(U), PASSED(U), ARRIVING(BATCH, T, U)),
    CASE(lstm_grad, "whole vectors, backwards, from a passed state", build_grad,
         USUAL(.gates = true, .passed = true, .backwards = true), 5, Z(WHOLE_T, WHOLE_U), R(WHOLE_U), PASSED(WHOLE_U),
         PASSED(WHOLE_U), ARRIVING(BATCH, WHOLE_U)),
    CASE(lstm_grad, "one row", build_grad, USUAL(.gates = true, .sequences = true), 3, LONE_Z(LONE_T, WHOLE_U),
         LONE_R(WHOLE_U), ARRIVING(1, LONE_T, WHOLE_U)),
    CASE(lstm_grad, "one row of few steps, from a passed state", build_grad,
         USUAL(.gates = true, .passed = true, .sequences = true), 5, LONE_Z(FEW_T, WHOLE_U), LONE_R(WHOLE_U),
         LONE_PASSED, LONE_PASSED, ARRIVING(1, FEW_T, WHOLE_U)),
    CASE(lstm_grad, "one row of many units", build_grad, USUAL(.gates = true), 3, LONE_Z(LONE_T, LONE_U),
         LONE_R(LONE_U), ARRIVING(1, LONE_U)),
    CASE(lstm_grad, "one row, backwards, from a passed state", build_grad,
         USUAL(.gates = true, .passed = true, .backwards = true), 5, LONE_Z(LONE_T, WHOLE_U), LONE_R(WHOLE_U),
         LONE_PASSED, LONE_PASSED, ARRIVING(1, WHOLE_U)),
    PANELS_BACK(8),
    PANELS_BACK(16),
    PANELS_BACK(24),
    PANELS_BACK(48),
    PANELS_BACK(64),
    PANELS_BACK(192),
    CASE(lstm_grad, "one step, masked, from a passed state", build_grad, USUAL(.gates = true, .passed = true), 6,
         Z(1, WIDE_U), R(WIDE_U), MASK(WIDE_U), PASSED(WIDE_U), PASSED(WIDE_U), ARRIVING(BATCH, WIDE_U)),
    CASE(lstm_grad, "wide, masked", build_grad, USUAL(.gates = true, .sequences = true), 4, Z(WIDE_T, WIDE_U),
         R(WIDE_U), MASK(WIDE_U), ARRIVING(BATCH, WIDE_T, WIDE_U)),

    CASE(lstm_grad_recurrent, "usual", build_recurrent, USUAL(.gates = true), 2, Z(T, U), R(U)),
    CASE(lstm_grad_recurrent, "backwards, masked, from a state", build_recurrent,
         USUAL(.gates = true, .backwards = true), 5, Z(T, U), R(U), MASK(U), STATE(U), STATE(U)),
    CASE(lstm_grad_recurrent, "from a passed state", build_recurrent, USUAL(.gates = true, .passed = true), 4, Z(T, U),
         R(U), PASSED(U), PASSED(U)),
    CASE(lstm_grad_recurrent, "wide", build_recurrent, USUAL(.gates = true), 2, Z(WIDE_T, WIDE_U), R(WIDE_U)),
    CASE(lstm_grad_recurrent, "whole vectors", build_recurrent, USUAL(.gates = true), 2, Z(WHOLE_T, WHOLE_U),
         R(WHOLE_U)),
    CASE(lstm_grad_recurrent, "whole vectors, many steps", build_recurrent, USUAL(.gates = true), 2, Z(LONG_T, SHARD_U),
         LONE_R(SHARD_U)),
    CASE(lstm_grad_recurrent, "wide, masked", build_recurrent, USUAL(.gates = true), 3, Z(WIDE_T, WIDE_U), R(WIDE_U),
         MASK(WIDE_U)),

    CASE(lstm_keep, "h", build_keep, USUAL(.gates = true), 3, Z(T, U), R(U), STATE(U)),
    CASE(lstm_keep, "c", build_keep, USUAL(.gates = true, .backwards = true), 3, Z(T, U), R(U), STATE(U)),
    {0}};
