/* Shape rules: results, and the sentence of a refusal, which names what was given. Makers accept what failed before
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ops/ops.h"

#define DIMS(...) ((td_shape){TD_SHAPE_RANK_(__VA_ARGS__), {__VA_ARGS__}})

static tdi_graph *graph;

static int setup(void **state)
{
    (void)state;
    graph = tdi_graph_create();
    return graph ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    tdi_graph_free(graph);
    return 0;
}

static tdi_node *value(td_shape shape)
{
    return tdi_input(graph, 0, &shape, TD_FLOAT32);
}

static tdi_node *integers(td_shape shape)
{
    return tdi_input(graph, 0, &shape, TD_INT32);
}

/* The node was refused with a sentence that has all these words; the graph is as good as new afterwards. */
static void refused(const tdi_node *node, const char *first, const char *second)
{
    assert_null(node);
    assert_int_not_equal(graph->error.status, TD_OK);
    if (!strstr(graph->error.message, first) || !strstr(graph->error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", graph->error.message, first, second);
    graph->error = (tdi_error){0};
}

static void shape_is(const tdi_node *node, td_shape shape)
{
    char given[TDI_SHAPE_TEXT], expected[TDI_SHAPE_TEXT];
    if (!node)
        fail_msg("%s", graph->error.message);
    assert_string_equal(tdi_shape_text(&node->shape, given), tdi_shape_text(&shape, expected));
}

static void windows(void **state)
{
    (void)state;
    tdi_window w = tdi_window_extent(7, 3, 2, 1, TD_SAME);
    assert_true(w.out == 4 && w.before == 1);
    w = tdi_window_extent(8, 3, 2, 1, TD_SAME);
    assert_true(w.out == 4 && w.before == 0);
    w = tdi_window_extent(5, 4, 1, 1, TD_SAME);
    assert_true(w.out == 5 && w.before == 1);
    w = tdi_window_extent(7, 1, 3, 1, TD_SAME);
    assert_true(w.out == 3 && w.before == 0);
    w = tdi_window_extent(7, 3, 1, 3, TD_VALID);
    assert_true(w.out == 1 && w.before == 0);
    w = tdi_window_extent(6, 3, 1, 3, TD_VALID);
    assert_true(w.out == 0);
}

static void matmul(void **state)
{
    (void)state;
    tdi_node *x = value(DIMS(TDI_BATCH, 784));
    refused(tdi_matmul(graph, x, value(DIMS(128, 10)), false, false), "[batch, 784]", "[128, 10]");
    refused(tdi_matmul(graph, x, value(DIMS(TDI_BATCH, 10)), false, false), "[batch, 784]", "[batch, 10]");
    refused(tdi_matmul(graph, value(DIMS(3, 5)), value(DIMS(TDI_BATCH, 5)), false, true), "[3, 5]", "[batch, 5]");
    refused(tdi_matmul(graph, integers(DIMS(TDI_BATCH, 3)), value(DIMS(3, 2)), false, false), "int32", "float32");
    refused(tdi_matmul(graph, value(DIMS(TDI_BATCH)), value(DIMS(3, 2)), false, false), "[batch]", "last axis");
    shape_is(tdi_matmul(graph, value(DIMS(TDI_BATCH, 3, 4)), value(DIMS(4, 9)), false, false), DIMS(TDI_BATCH, 3, 9));
    shape_is(tdi_matmul(graph, x, value(DIMS(TDI_BATCH, 9)), true, false), DIMS(784, 9));
}

static void convolution(void **state)
{
    (void)state;
    tdi_conv2d_attrs plain = {.stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1}, bad = plain;
    tdi_node *x = value(DIMS(TDI_BATCH, 4, 4, 3));
    refused(tdi_conv2d(graph, x, value(DIMS(5, 5, 3, 8)), &plain), "[batch, 4, 4, 3]", "[5, 5, 3, 8]");
    refused(tdi_conv2d(graph, x, value(DIMS(3, 3, 4, 8)), &plain), "3 channels", "[3, 3, 4, 8]");
    refused(tdi_conv2d(graph, value(DIMS(TDI_BATCH, 4, 3)), value(DIMS(3, 3, 4, 8)), &plain), "[batch, 4, 3]",
            "4 are needed");
    bad.groups = 3;
    refused(tdi_conv2d(graph, x, value(DIMS(3, 3, 1, 8)), &bad), "8 filters", "3 groups");
    bad.groups = 0;
    refused(tdi_conv2d(graph, x, value(DIMS(3, 3, 1, 8)), &bad), "0 groups", "at least 1");
    plain.shape = x->shape;
    refused(tdi_conv2d_grad_input(graph, value(DIMS(TDI_BATCH, 3, 3, 8)), value(DIMS(3, 3, 3, 8)), &plain),
            "[batch, 3, 3, 8]", "[batch, 2, 2, 8]");
    shape_is(tdi_conv2d(graph, x, value(DIMS(3, 2, 3, 8)), &plain), DIMS(TDI_BATCH, 2, 3, 8));
    tdi_pool2d_attrs pool = {.pool_h = 5, .pool_w = 2, .stride_h = 2, .stride_w = 2};
    refused(tdi_max_pool2d(graph, x, &pool), "5x2", "[batch, 4, 4, 3]");
}

static void movement(void **state)
{
    (void)state;
    tdi_node *x = value(DIMS(TDI_BATCH, 4, 3)), *y = value(DIMS(TDI_BATCH, 5, 2));
    refused(tdi_binary(graph, TDI_ADD, x, y), "[batch, 4, 3]", "[batch, 5, 2]");
    refused(tdi_bias_add(graph, x, value(DIMS(4))), "[4]", "[3]");
    refused(tdi_concat(graph, 2, (tdi_node *[]){x, y}, 1), "[batch, 4, 3]", "[batch, 5, 2]");
    refused(tdi_concat(graph, 2, (tdi_node *[]){x, x}, 0), "axis 0", "batch");
    refused(tdi_slice(graph, x, 2, 2, 2), "[batch, 4, 3]", "it has 3");
    refused(tdi_slice(graph, x, 2, INT64_MAX, 1), "[batch, 4, 3]", "it has 3");
    refused(tdi_reshape(graph, x, &DIMS(TDI_BATCH, 11)), "[batch, 4, 3]", "[batch, 11]");
    refused(tdi_reshape(graph, x, &DIMS(12)), "[batch, 4, 3]", "[12]");
    refused(tdi_broadcast(graph, x, &DIMS(TDI_BATCH, 4, 6)), "[batch, 4, 3]", "[batch, 4, 6]");
    refused(tdi_reduce(graph, TDI_MEAN, x, 1u, false), "[batch, 4, 3]", "batch_mean");
    refused(tdi_reduce(graph, TDI_SUM, x, 8u, false), "[batch, 4, 3]", "3 axes");
    refused(tdi_gather(graph, x, integers(DIMS(TDI_BATCH))), "[batch, 4, 3]", "table");
    refused(tdi_unary(graph, x, TD_SOFTMAX), "softmax", "element-wise");
    shape_is(tdi_binary(graph, TDI_ADD, value(DIMS(TDI_BATCH, 1, 3)), value(DIMS(4, 1))), DIMS(TDI_BATCH, 4, 3));
    shape_is(tdi_reduce(graph, TDI_SUM, x, 5u, true), DIMS(1, 4, 1));
}

static void losses(void **state)
{
    (void)state;
    tdi_ignore_attrs none_ignored = {0};
    tdi_node *x = value(DIMS(TDI_BATCH, 10));
    refused(tdi_sparse_softmax_cross_entropy(graph, x, integers(DIMS(TDI_BATCH, 1)), none_ignored), "[batch, 1]",
            "[batch, 10]");
    refused(tdi_sparse_softmax_cross_entropy(graph, x, value(DIMS(TDI_BATCH)), none_ignored), "float32", "int32");
    refused(tdi_softmax_cross_entropy(graph, x, value(DIMS(TDI_BATCH, 9))), "[batch, 9]", "[batch, 10]");
    refused(tdi_batch_mean(graph, value(DIMS(3))), "[3]", "batch");
    refused(tdi_dropout(graph, x, &(tdi_dropout_attrs){.rate = 1.0f, .stream = 0}), "rate 1", "less than 1");
    refused(tdi_batch_norm_inference(graph, x, value(DIMS(10)), value(DIMS(9)), NULL, NULL, 1e-3f), "[9]", "[10]");
}

/* One failure is reported once: what comes after it is silent. */
static void poison_passes_through(void **state)
{
    (void)state;
    tdi_node *x = value(DIMS(TDI_BATCH, 3)), *none = NULL;
    tdi_pool2d_attrs pool = {.pool_h = 2, .pool_w = 2, .stride_h = 2, .stride_w = 2};
    assert_null(tdi_matmul(graph, none, x, false, false));
    assert_null(tdi_binary(graph, TDI_ADD, x, none));
    assert_null(tdi_concat(graph, 2, (tdi_node *[]){x, none}, 1));
    assert_null(tdi_sum_to(graph, none, &x->shape));
    assert_null(tdi_reshape(graph, none, &x->shape));
    assert_null(tdi_broadcast(graph, none, &x->shape));
    assert_null(tdi_all_gather(graph, none));
    assert_null(tdi_max_pool2d(graph, none, &pool));
    assert_null(tdi_batch_norm_moving(graph, none, none, 0.9f, false, false));
    assert_null(tdi_sgd(graph, none, none, 0, NULL, &(tdi_optimizer_attrs){.momentum = 0.0f}));
    assert_null(tdi_adam(graph, x, x, 2, (tdi_node *[]){x, none}, &(tdi_optimizer_attrs){.momentum = 0.0f}));
    assert_int_equal(graph->error.status, TD_OK);
    refused(tdi_bias_add(graph, x, value(DIMS(4))), "[4]", "[3]");
    graph->error.status = TD_INVALID_ARGUMENT;
    assert_null(tdi_unary(graph, x, TD_RELU));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(windows),  TEST(matmul), TEST(convolution),
                                       TEST(movement), TEST(losses), TEST(poison_passes_through)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
