/* The references against results written by hand: movement of elements, reductions, casts, and the odd inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/evaluate.h"

#define DIMS(...) ((td_shape){TD_SHAPE_RANK_(__VA_ARGS__), {__VA_ARGS__}})

static const float six[] = {1, 2, 3, 4, 5, 6};

/* A graph of inputs with `rows` rows, given in the order of their slots. */
static void check(tdi_graph *graph, int64_t rows, const void *const *inputs, const tdi_node *node, const void *expected,
                  size_t bytes)
{
    if (!node)
        fail_msg("%s", graph->error.message);
    evaluation *e = evaluation_create(
        &(evaluation_spec){.graph = graph, .shards = 1, .rows = &rows, .inputs = inputs, .metrics = 2});
    evaluation_run(e);
    const tdi_call *call = evaluation_call(e, node, 0);
    assert_int_equal((size_t)tdi_shape_elements(&call->out.shape) * td_dtype_size(call->out.dtype), bytes);
    assert_memory_equal(call->out.data, expected, bytes);
    evaluation_free(e);
    tdi_graph_free(graph);
}

#define CHECK(graph, rows, node, inputs, ...)                                                                          \
    check(graph, rows, inputs, node, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}))
#define INPUTS(...) ((const void *const[]){__VA_ARGS__})

static tdi_node *input(tdi_graph *graph, int slot, td_shape shape)
{
    return tdi_input(graph, slot, &shape, TD_FLOAT32);
}

static void elements_move(void **state)
{
    (void)state;
    tdi_graph *g = tdi_graph_create();
    CHECK(g, 2, tdi_slice(g, input(g, 0, DIMS(TDI_BATCH, 3)), 1, 1, 2), INPUTS(six), 2, 3, 5, 6);
    g = tdi_graph_create();
    CHECK(g, 2, tdi_pad(g, input(g, 0, DIMS(TDI_BATCH, 3)), 1, 1, 2), INPUTS(six), 0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0);
    g = tdi_graph_create();
    tdi_node *both[] = {input(g, 0, DIMS(TDI_BATCH, 3)), input(g, 1, DIMS(TDI_BATCH, 1))};
    CHECK(g, 2, tdi_concat(g, 2, both, 1), INPUTS(six, six), 1, 2, 3, 1, 4, 5, 6, 2);
    g = tdi_graph_create();
    CHECK(g, 2, tdi_broadcast(g, input(g, 0, DIMS(TDI_BATCH, 1)), &DIMS(TDI_BATCH, 3)), INPUTS(six), 1, 1, 1, 2, 2, 2);
}

static void reductions(void **state)
{
    (void)state;
    tdi_graph *g = tdi_graph_create();
    CHECK(g, 2, tdi_reduce(g, TDI_SUM, input(g, 0, DIMS(TDI_BATCH, 3)), 1u, false), INPUTS(six), 5, 7, 9);
    g = tdi_graph_create();
    CHECK(g, 2, tdi_reduce(g, TDI_MEAN, input(g, 0, DIMS(TDI_BATCH, 3)), 2u, true), INPUTS(six), 2, 5);
    g = tdi_graph_create();
    CHECK(g, 1, tdi_reduce(g, TDI_MAX, input(g, 0, DIMS(TDI_BATCH, 2, 3)), 2u, false), INPUTS(six), 4, 5, 6);
    g = tdi_graph_create();
    CHECK(g, 2, tdi_sum_to(g, input(g, 0, DIMS(TDI_BATCH, 3)), &DIMS(1, 1)), INPUTS(six), 21);
    g = tdi_graph_create();
    CHECK(g, 0, tdi_reduce(g, TDI_SUM, input(g, 0, DIMS(TDI_BATCH, 3)), 1u, false), INPUTS(six), 0, 0, 0);
    g = tdi_graph_create();
    CHECK(g, 0, tdi_batch_mean(g, input(g, 0, DIMS(TDI_BATCH, 3))), INPUTS(six), 0);
}

static void products(void **state)
{
    (void)state;
    tdi_graph *g = tdi_graph_create();
    tdi_node *a = input(g, 0, DIMS(TDI_BATCH, 2)), *b = input(g, 1, DIMS(TDI_BATCH, 3));
    CHECK(g, 2, tdi_matmul(g, a, b, true, false), INPUTS(six, six), 1 * 1 + 3 * 4, 2 + 3 * 5, 3 + 3 * 6, 2 * 1 + 4 * 4,
          4 + 4 * 5, 6 + 4 * 6);
    g = tdi_graph_create();
    a = input(g, 0, DIMS(TDI_BATCH, 3));
    b = input(g, 1, DIMS(2, 3));
    CHECK(g, 2, tdi_matmul(g, a, b, false, true), INPUTS(six, six), 14, 32, 32, 77);
    g = tdi_graph_create();
    a = input(g, 0, DIMS(TDI_BATCH, 1));
    b = input(g, 1, DIMS(3));
    CHECK(g, 2, tdi_binary(g, TDI_SUBTRACT, a, b), INPUTS(six, six), 0, -1, -2, 1, 0, -1);
}

static void casts(void **state)
{
    (void)state;
    static const float numbers[] = {-1.9f, 2.9f, NAN, 3e9f, -3e9f, 300.0f, INFINITY};
    static const int32_t integers[] = {-1, 2, 0, INT32_MAX, INT32_MIN, 300, INT32_MAX};
    static const uint8_t bytes[] = {0, 2, 0, 255, 0, 255, 255};
    tdi_graph *g = tdi_graph_create();
    tdi_node *x = input(g, 0, DIMS(7));
    check(g, 1, INPUTS(numbers), tdi_cast(g, x, TD_INT32), integers, sizeof integers);
    g = tdi_graph_create();
    x = input(g, 0, DIMS(7));
    check(g, 1, INPUTS(numbers), tdi_cast(g, x, TD_UINT8), bytes, sizeof bytes);
    g = tdi_graph_create();
    x = tdi_input(g, 0, &DIMS(7), TD_INT32);
    check(g, 1, INPUTS(integers), tdi_cast(g, x, TD_FLOAT32),
          (const float[]){-1, 2, 0, 2147483648.0f, -2147483648.0f, 300, 2147483648.0f}, 7 * sizeof(float));
}

static void metrics_accumulate(void **state)
{
    (void)state;
    tdi_graph *g = tdi_graph_create();
    tdi_node *x = input(g, 0, DIMS(TDI_BATCH, 3));
    tdi_accumulate(g, x, NULL, 1);
    check(g, 2, INPUTS(six), tdi_accumulate(g, x, NULL, 1), (const double[]){42, 12}, 2 * sizeof(double));
}

static void outside_numbers_give_nan(void **state)
{
    (void)state;
    static const int32_t rows[] = {1, 2, -1};
    static const float scores[] = {1, 2, 3, 4, 5, 6};
    tdi_graph *g = tdi_graph_create();
    tdi_node *table = input(g, 0, DIMS(2, 3)), *index = tdi_input(g, 1, &DIMS(TDI_BATCH), TD_INT32);
    tdi_node *gathered = tdi_gather(g, table, index);
    tdi_node *logits = input(g, 2, DIMS(TDI_BATCH, 2));
    tdi_node *loss = tdi_sparse_softmax_cross_entropy(g, logits, index, (tdi_ignore_attrs){0});
    int64_t three = 3;
    evaluation *e = evaluation_create(
        &(evaluation_spec){.graph = g, .shards = 1, .rows = &three, .inputs = INPUTS(six, rows, scores)});
    evaluation_run(e);
    const float *values = evaluation_value(e, gathered, 0), *losses = evaluation_value(e, loss, 0);
    assert_true(values[0] == 4 && values[1] == 5 && values[2] == 6);
    for (int i = 3; i < 9; i++)
        assert_true(isnan(values[i]));
    assert_true(isfinite(losses[0]) && isnan(losses[1]) && isnan(losses[2]));
    evaluation_free(e);
    tdi_graph_free(g);
}

/* Large logits: no overflow, no loss of what is left. */
static void extremes_stay_finite(void **state)
{
    (void)state;
    static const float logits[] = {1000, 0, -1000, -1000, 0, 1000};
    static const int32_t labels[] = {2, 2};
    static const float bits[] = {0, 0, 1, 1, 0, 1};
    tdi_graph *g = tdi_graph_create();
    tdi_node *x = input(g, 0, DIMS(TDI_BATCH, 3)), *label = tdi_input(g, 1, &DIMS(TDI_BATCH), TD_INT32);
    CHECK(g, 2, tdi_sparse_softmax_cross_entropy(g, x, label, (tdi_ignore_attrs){0}), INPUTS(logits, labels), 2000, 0);
    g = tdi_graph_create();
    x = input(g, 0, DIMS(TDI_BATCH, 3));
    CHECK(g, 2, tdi_softmax(g, x), INPUTS(logits), 1, 0, 0, 0, 0, 1);
    g = tdi_graph_create();
    x = input(g, 0, DIMS(TDI_BATCH, 3));
    tdi_node *t = input(g, 1, DIMS(TDI_BATCH, 3));
    CHECK(g, 2, tdi_sigmoid_cross_entropy(g, x, t), INPUTS(logits, bits), 1000, (float)log(2), 1000, 1000,
          (float)log(2), 0);
}

/* Padding must never win, and of equal cells the first gets the gradient. */
static void pooling_of_negatives_and_ties(void **state)
{
    (void)state;
    static const float cells[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9}, ties[] = {2, 2, 2, 2}, one[] = {5};
    tdi_pool2d_attrs valid = {.pool_h = 2, .pool_w = 2, .stride_h = 2, .stride_w = 2}, same = valid;
    same.padding = TD_SAME;
    tdi_graph *g = tdi_graph_create();
    CHECK(g, 1, tdi_max_pool2d(g, input(g, 0, DIMS(TDI_BATCH, 3, 3, 1)), &same), INPUTS(cells), -1, -3, -7, -9);
    g = tdi_graph_create();
    tdi_node *x = input(g, 0, DIMS(TDI_BATCH, 2, 2, 1)), *dy = input(g, 1, DIMS(TDI_BATCH, 1, 1, 1));
    tdi_node *y = tdi_max_pool2d(g, x, &valid);
    CHECK(g, 1, tdi_max_pool2d_grad(g, x, y, dy, &valid), INPUTS(ties, one), 5, 0, 0, 0);
}

static void accuracy_takes_the_first_of_equals(void **state)
{
    (void)state;
    static const float scores[] = {1, 3, 3, 0, 0, 0};
    static const int32_t labels[] = {1, 1};
    tdi_graph *g = tdi_graph_create();
    tdi_node *x = input(g, 0, DIMS(TDI_BATCH, 3)), *label = tdi_input(g, 1, &DIMS(TDI_BATCH), TD_INT32);
    CHECK(g, 2, tdi_sparse_categorical_accuracy(g, x, label), INPUTS(scores, labels), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_move),
                                       cmocka_unit_test(reductions),
                                       cmocka_unit_test(products),
                                       cmocka_unit_test(casts),
                                       cmocka_unit_test(metrics_accumulate),
                                       cmocka_unit_test(outside_numbers_give_nan),
                                       cmocka_unit_test(extremes_stay_finite),
                                       cmocka_unit_test(pooling_of_negatives_and_ties),
                                       cmocka_unit_test(accuracy_takes_the_first_of_equals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
