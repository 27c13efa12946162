/* The references against numbers that Keras computed (keras_golden.py): to 1e-5 of the largest, most to far less. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ops/keras_golden.h"
#include "passes/passes.h"
#include "support/evaluate.h"

enum { MOST = 4, ROOM = 1024 };

/* A small graph and its numbers: one shard. */
typedef struct bench {
    tdi_graph *graph;
    int64_t rows;
    int n_inputs, n_variables;
    const void *inputs[MOST];
    tdi_variable variables[MOST];
    float values[MOST * ROOM], slots[3][MOST * ROOM];
    tdi_control control;
    evaluation *evaluation;
} bench;

static bench *bench_create(int64_t rows)
{
    static bench b;
    memset(&b, 0, sizeof b);
    b.graph = tdi_graph_create();
    assert_non_null(b.graph);
    b.rows = rows;
    return &b;
}

static tdi_node *input(bench *b, const void *data, td_dtype dtype, td_shape shape)
{
    b->inputs[b->n_inputs] = data;
    return tdi_input(b->graph, b->n_inputs++, &shape, dtype);
}

static tdi_node *weight(bench *b, const float *data, td_shape shape)
{
    tdi_variable *variable = &b->variables[b->n_variables];
    int64_t offset = (int64_t)b->n_variables++ * ROOM;
    *variable =
        (tdi_variable){.shape = shape, .trainable = true, .elements = tdi_shape_elements(&shape), .offset = offset};
    memcpy(b->values + offset, data, (size_t)variable->elements * sizeof *data);
    return tdi_parameter(b->graph, variable);
}

static void run(bench *b)
{
    if (b->graph->error.status != TD_OK)
        fail_msg("%s", b->graph->error.message);
    float *slots[3] = {b->slots[0], b->slots[1], b->slots[2]};
    evaluation_spec spec = {.graph = b->graph,
                            .shards = 1,
                            .rows = &b->rows,
                            .control = b->control,
                            .inputs = b->inputs,
                            .variable_floats = MOST * ROOM,
                            .values = b->values,
                            .slots = slots};
    b->evaluation = evaluation_create(&spec);
    evaluation_run(b->evaluation);
}

static void bench_free(bench *b)
{
    evaluation_free(b->evaluation);
    tdi_graph_free(b->graph);
}

static void compare(const char *what, const float *given, const float *expected, size_t count)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs((double)given[i] - (double)expected[i]);
        largest = fmax(largest, fabs((double)expected[i]));
        worst = difference > worst || isnan(difference) ? difference : worst;
    }
    if (!(worst <= 1e-5 * largest))
        fail_msg("%s: off by %g of %g", what, worst, largest);
}

static void check(const bench *b, const char *what, const tdi_node *node, const float *expected, size_t bytes)
{
    const tdi_call *call = evaluation_call(b->evaluation, node, 0);
    assert_int_equal(tdi_shape_elements(&call->out.shape), bytes / sizeof(float));
    compare(what, call->out.data, expected, bytes / sizeof(float));
}

#define CHECK(b, node, golden) check(b, #golden, node, golden, sizeof golden)

/* Gradients of sum(y * dy) for up to three nodes. */
static void differentiate(bench *b, tdi_node *y, tdi_node *dy, tdi_node *const of[3], tdi_node *result[3])
{
    tdi_node *product = tdi_binary(b->graph, TDI_MULTIPLY, y, dy);
    tdi_node *loss = tdi_reduce(b->graph, TDI_SUM, product, (1u << product->shape.rank) - 1, false);
    if (tdi_gradients(b->graph, loss, 3, of, result) != TD_OK)
        fail_msg("%s", b->graph->error.message);
}

/* ---- activations ---- */

typedef struct activation_golden {
    int kind;
    const float *value, *derivative;
} activation_golden;

#define ACTIVATION(kind, name)                                                                                         \
    {                                                                                                                  \
        kind, activation_##name, activation_##name##_grad                                                              \
    }

static void activations(void **state)
{
    (void)state;
    static const activation_golden all[] = {ACTIVATION(TD_LINEAR, linear),
                                            ACTIVATION(TD_RELU, relu),
                                            ACTIVATION(TD_TANH, tanh),
                                            ACTIVATION(TD_SIGMOID, sigmoid),
                                            ACTIVATION(TD_LEAKY_RELU, leaky_relu),
                                            ACTIVATION(TD_RELU6, relu6),
                                            ACTIVATION(TD_ELU, elu),
                                            ACTIVATION(TD_SELU, selu),
                                            ACTIVATION(TD_CELU, celu),
                                            ACTIVATION(TD_GELU, gelu),
                                            ACTIVATION(TD_SILU, silu),
                                            ACTIVATION(TD_SOFTPLUS, softplus),
                                            ACTIVATION(TD_SOFTSIGN, softsign),
                                            ACTIVATION(TD_EXPONENTIAL, exponential),
                                            ACTIVATION(TD_HARD_SIGMOID, hard_sigmoid),
                                            ACTIVATION(TD_HARD_SILU, hard_silu),
                                            ACTIVATION(TD_HARD_TANH, hard_tanh),
                                            ACTIVATION(TD_MISH, mish),
                                            ACTIVATION(TD_LOG_SIGMOID, log_sigmoid),
                                            ACTIVATION(TD_TANH_SHRINK, tanh_shrink),
                                            ACTIVATION(TD_SQUAREPLUS, squareplus)};
    enum { POINTS = sizeof activation_x / sizeof *activation_x };
    for (size_t a = 0; a < sizeof all / sizeof *all; a++) {
        float value[POINTS], derivative[POINTS];
        bool from_output = tdi_unary_grad_from_output(all[a].kind);
        for (int i = 0; i < POINTS; i++) {
            value[i] = tdi_unary_value(all[a].kind, activation_x[i]);
            derivative[i] = tdi_unary_derivative(all[a].kind, from_output ? value[i] : activation_x[i]);
        }
        compare(tdi_unary_name(all[a].kind), value, all[a].value, POINTS);
        compare(tdi_unary_name(all[a].kind), derivative, all[a].derivative, POINTS);
    }
}

/* ---- windows ---- */

typedef struct window_golden {
    const char *name;
    td_shape x, w, y;
    const float *x_data, *w_data, *y_data, *dy_data, *dx_data, *dw_data;
    tdi_conv2d_attrs conv;
    tdi_pool2d_attrs pool;
} window_golden;

static size_t bytes_of(const td_shape *shape, int64_t rows)
{
    td_shape at = tdi_shape_at(shape, rows);
    return (size_t)tdi_shape_elements(&at) * sizeof(float);
}

static void check_convolution(const window_golden *g, int64_t rows)
{
    bench *b = bench_create(rows);
    tdi_node *x = input(b, g->x_data, TD_FLOAT32, g->x), *w = weight(b, g->w_data, g->w), *d[3];
    tdi_node *y = tdi_conv2d(b->graph, x, w, &g->conv);
    differentiate(b, y, input(b, g->dy_data, TD_FLOAT32, g->y), (tdi_node *[]){x, w, NULL}, d);
    assert_true(tdi_shape_equal(&y->shape, &g->y));
    run(b);
    check(b, g->name, y, g->y_data, bytes_of(&g->y, rows));
    check(b, g->name, d[0], g->dx_data, bytes_of(&g->x, rows));
    check(b, g->name, d[1], g->dw_data, bytes_of(&g->w, rows));
    bench_free(b);
}

#define CONV_ATTRS(sh, sw, dh, dw, groups_, padding_)                                                                  \
    .stride_h = sh, .stride_w = sw, .dilation_h = dh, .dilation_w = dw, .groups = groups_, .padding = padding_
#define CONVOLUTION(name_, x_, w_, y_, ...)                                                                            \
    {                                                                                                                  \
        .name = "conv " #name_, .x = x_, .w = w_, .y = y_, .x_data = conv_##name_##_x, .w_data = conv_##name_##_w,     \
        .y_data = conv_##name_##_y, .dy_data = conv_##name_##_dy, .dx_data = conv_##name_##_dx,                        \
        .dw_data = conv_##name_##_dw, .conv = {                                                                        \
            CONV_ATTRS(__VA_ARGS__)                                                                                    \
        }                                                                                                              \
    }

#define DIMS(...)                                                                                                      \
    {                                                                                                                  \
        TD_SHAPE_RANK_(__VA_ARGS__),                                                                                   \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static void convolutions(void **state)
{
    (void)state;
    static const window_golden all[] = {
        CONVOLUTION(valid, DIMS(-1, 4, 5, 2), DIMS(3, 2, 2, 3), DIMS(-1, 2, 4, 3), 1, 1, 1, 1, 1, TD_VALID),
        CONVOLUTION(even_same, DIMS(-1, 5, 4, 2), DIMS(2, 4, 2, 2), DIMS(-1, 5, 4, 2), 1, 1, 1, 1, 1, TD_SAME),
        CONVOLUTION(same_stride, DIMS(-1, 6, 5, 2), DIMS(3, 3, 2, 2), DIMS(-1, 3, 3, 2), 2, 2, 1, 1, 1, TD_SAME),
        CONVOLUTION(same_stride_3, DIMS(-1, 7, 5, 1), DIMS(2, 3, 1, 2), DIMS(-1, 3, 3, 2), 3, 2, 1, 1, 1, TD_SAME),
        CONVOLUTION(dilation, DIMS(-1, 6, 7, 1), DIMS(3, 2, 1, 2), DIMS(-1, 6, 7, 2), 1, 1, 2, 3, 1, TD_SAME),
        CONVOLUTION(groups, DIMS(-1, 4, 3, 4), DIMS(3, 3, 2, 4), DIMS(-1, 4, 3, 4), 1, 1, 1, 1, 2, TD_SAME)};
    check_convolution(&all[0], 2);
    for (size_t i = 1; i < sizeof all / sizeof *all; i++)
        check_convolution(&all[i], 1);
}

#define POOL_ATTRS(ph, pw, sh, sw, padding_)                                                                           \
    .pool_h = ph, .pool_w = pw, .stride_h = sh, .stride_w = sw, .padding = padding_
#define POOL(kind_, name_, x_, y_, ...)                                                                                \
    {                                                                                                                  \
        .name = #kind_ " pool " #name_, .x = x_, .y = y_, .x_data = pool_##kind_##_##name_##_x,                        \
        .y_data = pool_##kind_##_##name_##_y, .dy_data = pool_##kind_##_##name_##_dy,                                  \
        .dx_data = pool_##kind_##_##name_##_dx, .pool = {                                                              \
            __VA_ARGS__,                                                                                               \
            .sides = {0}                                                                                               \
        }                                                                                                              \
    }

static void check_pool(const window_golden *g, bool max)
{
    bench *b = bench_create(1);
    tdi_node *x = input(b, g->x_data, TD_FLOAT32, g->x), *d[3];
    tdi_node *y = max ? tdi_max_pool2d(b->graph, x, &g->pool) : tdi_average_pool2d(b->graph, x, &g->pool);
    differentiate(b, y, input(b, g->dy_data, TD_FLOAT32, g->y), (tdi_node *[]){x, NULL, NULL}, d);
    assert_true(tdi_shape_equal(&y->shape, &g->y));
    run(b);
    check(b, g->name, y, g->y_data, bytes_of(&g->y, 1));
    check(b, g->name, d[0], g->dx_data, bytes_of(&g->x, 1));
    bench_free(b);
}

static void pools(void **state)
{
    (void)state;
    static const window_golden all[] = {
        POOL(max, valid, DIMS(-1, 5, 6, 2), DIMS(-1, 2, 2, 2), 2, 3, 2, 2, TD_VALID),
        POOL(max, same, DIMS(-1, 5, 4, 2), DIMS(-1, 3, 2, 2), 2, 2, 2, 2, TD_SAME),
        POOL(max, same_overlap, DIMS(-1, 4, 5, 1), DIMS(-1, 2, 5, 1), 3, 3, 2, 1, TD_SAME),
        POOL(average, valid, DIMS(-1, 5, 6, 2), DIMS(-1, 2, 2, 2), 2, 3, 2, 2, TD_VALID),
        POOL(average, same, DIMS(-1, 5, 4, 2), DIMS(-1, 3, 2, 2), 2, 2, 2, 2, TD_SAME),
        POOL(average, same_overlap, DIMS(-1, 4, 5, 1), DIMS(-1, 2, 5, 1), 3, 3, 2, 1, TD_SAME)};
    for (int i = 0; i < 6; i++)
        check_pool(&all[i], i < 3);
}

/* ---- softmax, losses, metrics ---- */

static const td_shape table = DIMS(-1, 5), column = DIMS(-1);

static void softmaxes(void **state)
{
    (void)state;
    bench *b = bench_create(4);
    tdi_node *x = input(b, logits, TD_FLOAT32, table), *dy = input(b, logits_dy, TD_FLOAT32, table);
    tdi_node *soft = tdi_softmax(b->graph, x), *log_soft = tdi_log_softmax(b->graph, x), *d[3], *d_log[3];
    differentiate(b, soft, dy, (tdi_node *[]){x, NULL, NULL}, d);
    differentiate(b, log_soft, dy, (tdi_node *[]){x, NULL, NULL}, d_log);
    run(b);
    CHECK(b, soft, softmax_y);
    CHECK(b, d[0], softmax_dx);
    CHECK(b, log_soft, log_softmax_y);
    CHECK(b, d_log[0], log_softmax_dx);
    bench_free(b);
}

static void losses(void **state)
{
    (void)state;
    bench *b = bench_create(4);
    tdi_graph *graph = b->graph;
    tdi_node *x = input(b, logits, TD_FLOAT32, table), *numbers = input(b, labels, TD_INT32, column);
    tdi_node *shares = input(b, targets, TD_FLOAT32, table), *d = input(b, dloss, TD_FLOAT32, column);
    tdi_node *sparse = tdi_sparse_softmax_cross_entropy(graph, x, numbers, (tdi_ignore_attrs){0}), *sparse_d[3];
    tdi_node *dense = tdi_softmax_cross_entropy(graph, x, shares), *dense_d[3];
    differentiate(b, sparse, d, (tdi_node *[]){x, NULL, NULL}, sparse_d);
    differentiate(b, dense, d, (tdi_node *[]){x, NULL, NULL}, dense_d);
    run(b);
    CHECK(b, sparse, sparse_loss);
    CHECK(b, sparse_d[0], sparse_dlogits);
    CHECK(b, dense, dense_loss);
    CHECK(b, dense_d[0], dense_dlogits);
    bench_free(b);
}

static void sigmoid_losses(void **state)
{
    (void)state;
    bench *b = bench_create(4);
    tdi_node *x = input(b, logits, TD_FLOAT32, table), *t = input(b, bits, TD_FLOAT32, table), *d[3];
    tdi_node *loss = tdi_sigmoid_cross_entropy(b->graph, x, t);
    differentiate(b, loss, input(b, logits_dy, TD_FLOAT32, table), (tdi_node *[]){x, NULL, NULL}, d);
    run(b);
    CHECK(b, loss, sigmoid_loss);
    CHECK(b, d[0], sigmoid_dlogits);
    bench_free(b);
}

static void accuracies(void **state)
{
    (void)state;
    bench *b = bench_create(4);
    tdi_node *x = input(b, logits, TD_FLOAT32, table), *numbers = input(b, labels, TD_INT32, column);
    tdi_node *shares = input(b, targets, TD_FLOAT32, table), *t = input(b, bits, TD_FLOAT32, table);
    tdi_node *sparse = tdi_sparse_categorical_accuracy(b->graph, x, numbers);
    tdi_node *categorical = tdi_categorical_accuracy(b->graph, x, shares);
    tdi_node *binary = tdi_binary_accuracy(b->graph, x, t, 0.3f);
    run(b);
    CHECK(b, sparse, sparse_accuracy);
    CHECK(b, categorical, categorical_accuracy);
    CHECK(b, binary, binary_accuracy);
    bench_free(b);
}

/* ---- batch normalization ---- */

static const td_shape features = DIMS(-1, 2, 3), channels = DIMS(3);

static void batch_normalization(void **state)
{
    (void)state;
    bench *b = bench_create(3);
    tdi_graph *graph = b->graph;
    tdi_node *x = input(b, norm_x, TD_FLOAT32, features), *dy = input(b, norm_dy, TD_FLOAT32, features), *d[3];
    tdi_node *gamma = weight(b, norm_gamma, channels), *beta = weight(b, norm_beta, channels);
    tdi_node *mean = weight(b, norm_mean, channels), *variance = weight(b, norm_variance, channels);
    tdi_node *inference = tdi_batch_norm_inference(graph, x, mean, variance, gamma, beta, 1e-3f);
    tdi_node *stats = tdi_batch_norm_stats(graph, x, 1);
    tdi_node *y = tdi_batch_norm(graph, x, stats, gamma, beta, 1e-3f);
    differentiate(b, y, dy, (tdi_node *[]){x, gamma, beta}, d);
    tdi_node *gathered = tdi_all_gather(graph, stats);
    tdi_node *moving_mean = tdi_batch_norm_moving(graph, mean, gathered, 0.97f, false, false);
    tdi_node *moving_variance = tdi_batch_norm_moving(graph, variance, gathered, 0.97f, true, false);
    run(b);
    CHECK(b, inference, norm_inference);
    CHECK(b, y, norm_y);
    CHECK(b, d[0], norm_dx);
    CHECK(b, d[1], norm_dgamma);
    CHECK(b, d[2], norm_dbeta);
    CHECK(b, moving_mean, norm_moving_mean);
    CHECK(b, moving_variance, norm_moving_variance);
    bench_free(b);
}

/* ---- optimizers ---- */

enum { STEPS = 6, SIZE = 5 };

typedef struct optimizer_golden {
    const char *name;
    const float *expected; /* [STEPS][SIZE] */
    tdi_optimizer_attrs attrs;
    int slots;
    bool adam;
} optimizer_golden;

/* One graph a step; values and slots are carried over. */
static void optimizer_step(const optimizer_golden *g, int step, float values[SIZE], float slots[3][SIZE])
{
    td_shape shape = DIMS(SIZE);
    bench *b = bench_create(1);
    tdi_node *w = weight(b, values, shape), *gradient = weight(b, optimizer_gradients + step * SIZE, shape), *slot[3];
    for (int s = 0; s < g->slots && s < 3; s++) {
        slot[s] = tdi_slot(b->graph, &b->variables[0], s);
        memcpy(b->slots[s], slots[s], sizeof slots[s]);
    }
    if (g->adam)
        tdi_adam(b->graph, w, gradient, g->slots, slot, &g->attrs);
    else
        tdi_sgd(b->graph, w, gradient, g->slots, slot, &g->attrs);
    b->control = (tdi_control){.learning_rate = 0.1f, .iteration = step};
    run(b);
    memcpy(values, b->values, SIZE * sizeof *values);
    for (int s = 0; s < g->slots; s++)
        memcpy(slots[s], b->slots[s], sizeof slots[s]);
    bench_free(b);
}

static void optimizers(void **state)
{
    (void)state;
    static const optimizer_golden all[] = {
        {"sgd", optimizer_sgd, {.momentum = 0.0f}, 0, false},
        {"sgd with momentum", optimizer_sgd_momentum, {.momentum = 0.9f}, 1, false},
        {"nesterov",
         optimizer_sgd_nesterov,
         {.momentum = 0.9f, .nesterov = true, .weight_decay = 0.05f, .clipvalue = 0.5f},
         1,
         false},
        {"adam", optimizer_adam, {.beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f}, 2, true},
        {"amsgrad",
         optimizer_adam_amsgrad,
         {.beta_1 = 0.8f, .beta_2 = 0.95f, .epsilon = 1e-3f, .amsgrad = true},
         3,
         true},
        {"adam with decay",
         optimizer_adam_decay,
         {.beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f, .weight_decay = 0.02f, .clipvalue = 0.7f},
         2,
         true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        float values[SIZE], slots[3][SIZE] = {{0}};
        memcpy(values, optimizer_weight, sizeof values);
        for (int step = 0; step < STEPS; step++) {
            optimizer_step(&all[i], step, values, slots);
            compare(all[i].name, values, all[i].expected + step * SIZE, SIZE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(activations), cmocka_unit_test(convolutions),
                                       cmocka_unit_test(pools),       cmocka_unit_test(softmaxes),
                                       cmocka_unit_test(losses),      cmocka_unit_test(sigmoid_losses),
                                       cmocka_unit_test(accuracies),  cmocka_unit_test(batch_normalization),
                                       cmocka_unit_test(optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
