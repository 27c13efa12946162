/* follow.c - what a convolution makes on its way, of rows that it has just made, gives what the references give: a
 * batch normalization's statistics, whole or each lane those of its own filters, and normalizations by moving
 * statistics, with what is added; and so do those that have a pass of their own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "support/evaluate.h"
#include "support/lone_plan.h"
#include "support/occurrences.h"

enum { ROWS = 3, H = 12, W = 11, C = 5, FILTERS = 64, X = ROWS * H * W * C, Y = ROWS * H * W * FILTERS };

static float x[X], filter[3 * 3 * C * FILTERS], mean[FILTERS], variance[FILTERS], other[Y];

static const float *const inputs[] = {x, filter, mean, variance, other};

static tdi_node *image(tdi_graph *graph)
{
    return tdi_input(graph, 0, &(td_shape){4, {TDI_BATCH, H, W, C}}, TD_FLOAT32);
}

static tdi_node *convolution_of(tdi_graph *graph, tdi_node *in)
{
    td_shape taps = {4, {3, 3, C, FILTERS}};
    tdi_conv2d_attrs attrs = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1, .padding = TD_SAME};
    return tdi_conv2d(graph, in, tdi_input(graph, 1, &taps, TD_FLOAT32), &attrs);
}

static tdi_node *convolution(tdi_graph *graph)
{
    return convolution_of(graph, tdi_unary(graph, image(graph), TD_TANH));
}

static tdi_node *by_groups(tdi_graph *graph, tdi_node *y, int groups)
{
    return tdi_batch_norm(graph, y, tdi_batch_norm_stats(graph, y, groups), NULL, NULL, 1e-3f);
}

static tdi_node *by_batch(tdi_graph *graph, tdi_node *y)
{
    return by_groups(graph, y, 1);
}

static tdi_node *by_moving(tdi_graph *graph, tdi_node *y)
{
    td_shape channels = {1, {FILTERS}};
    return tdi_batch_norm_inference(graph, y, tdi_input(graph, 2, &channels, TD_FLOAT32),
                                    tdi_input(graph, 3, &channels, TD_FLOAT32), NULL, NULL, 1e-3f);
}

static tdi_node *rectified_sum(tdi_graph *graph, tdi_node *a, tdi_node *b)
{
    return tdi_unary(graph, tdi_binary(graph, TDI_ADD, a, b), TD_RELU);
}

/* ---- graphs ---- */

static tdi_node *statistics(tdi_graph *graph)
{
    return by_batch(graph, convolution(graph));
}

/* One row and two; more groups than rows. */
static tdi_node *statistics_of_two(tdi_graph *graph)
{
    return by_groups(graph, convolution(graph), 2);
}

static tdi_node *statistics_of_many(tdi_graph *graph)
{
    return by_groups(graph, convolution(graph), ROWS + 2);
}

static tdi_node *statistics_of_something_else(tdi_graph *graph)
{
    return by_batch(graph, tdi_unary(graph, convolution(graph), TD_SIGMOID));
}

static tdi_node *normalization(tdi_graph *graph)
{
    return tdi_unary(graph, by_moving(graph, convolution(graph)), TD_RELU);
}

/* As Keras orders a residual block: both convolutions before both normalizations, of which one adds the other. */
static tdi_node *two_paths(tdi_graph *graph)
{
    tdi_node *shortcut = convolution(graph), *path = convolution(graph);
    tdi_node *normal = by_moving(graph, shortcut);
    return rectified_sum(graph, by_moving(graph, path), normal);
}

static tdi_node *two_paths_by_batch(tdi_graph *graph)
{
    tdi_node *shortcut = convolution(graph), *path = convolution(graph);
    tdi_node *normal = by_batch(graph, shortcut);
    return rectified_sum(graph, normal, by_batch(graph, path));
}

/* The convolution's result is read before the normalization too. */
static tdi_node *another_reader(tdi_graph *graph)
{
    tdi_node *y = convolution(graph), *also = tdi_unary(graph, y, TD_SIGMOID);
    return tdi_binary(graph, TDI_MULTIPLY, by_moving(graph, y), also);
}

/* The step's own rows, which lie elsewhere at each step, are added. */
static tdi_node *input_added(tdi_graph *graph)
{
    td_shape of_y = {4, {TDI_BATCH, H, W, FILTERS}};
    return rectified_sum(graph, by_moving(graph, convolution(graph)), tdi_input(graph, 4, &of_y, TD_FLOAT32));
}

/* What is added is made by other lanes than those that add it: they have to meet before the convolution, which itself
 * waits for nobody. */
static tdi_node *spread_added(tdi_graph *graph)
{
    td_shape of_y = {4, {TDI_BATCH, H, W, FILTERS}};
    tdi_node *added = tdi_softmax(graph, tdi_input(graph, 4, &of_y, TD_FLOAT32));
    return rectified_sum(graph, by_moving(graph, convolution_of(graph, image(graph))), added);
}

/* What is added comes after the convolution. */
static tdi_node *later_added(tdi_graph *graph)
{
    td_shape of_y = {4, {TDI_BATCH, H, W, FILTERS}};
    tdi_node *y = convolution(graph), *later = tdi_unary(graph, tdi_input(graph, 4, &of_y, TD_FLOAT32), TD_TANH);
    return rectified_sum(graph, by_moving(graph, y), later);
}

/* ---- checking ---- */

typedef struct made {
    float values[Y];
    int within; /* ops that a convolution made on its way */
    size_t activation_bytes;
} made;

static void make(tdi_graph *graph, int lanes, made *result)
{
    lone_plan p = lone_plan_create(graph, ROWS, lanes);
    char *text = lone_plan_explain(&p);
    result->activation_bytes = tdi_plan_activation_bytes(p.plan);
    result->within = occurrences(text, "by the op that makes its input");
    lone_plan_run(&p, inputs, sizeof inputs / sizeof *inputs, result->values, Y);
    lone_plan_free(&p);
    free(text);
}

/* `within`: of one lane, two that share rows, and more than there are rows, which share filters. */
static void check(tdi_node *(*build)(tdi_graph *graph), const int within[3])
{
    static const int lanes[3] = {1, 2, ROWS + 1};
    static made by[3];
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->parts = 1;
    const tdi_node *node = lone_plan_output(graph, build(graph));
    assert_int_equal(tdi_fold(graph, NULL), TD_OK);
    int64_t rows = ROWS;
    evaluation *e = evaluation_create(
        &(evaluation_spec){.graph = graph, .parts = 1, .rows = &rows, .inputs = (const void *const *)inputs});
    evaluation_run(e);
    const float *expected = evaluation_value(e, node, 0);
    for (int i = 0; i < 3; i++) {
        make(graph, lanes[i], &by[i]);
        assert_int_equal(by[i].within, within[i]);
        for (int j = 0; j < Y; j++)
            assert_true(fabs((double)by[i].values[j] - (double)expected[j]) <= 1e-5);
    }
    evaluation_free(e);
    tdi_graph_free(graph);
}

static void test_statistics(void **state)
{
    (void)state;
    check(statistics, (int[]){1, 0, 1});
    check(statistics_of_two, (int[]){1, 0, 1});
    check(statistics_of_many, (int[]){1, 0, 1});
    check(statistics_of_something_else, (int[]){0, 0, 0});
    check(two_paths_by_batch, (int[]){2, 0, 2});
}

static void test_normalization(void **state)
{
    (void)state;
    check(normalization, (int[]){1, 1, 1});
    check(two_paths, (int[]){2, 2, 2});
    check(another_reader, (int[]){1, 1, 1});
    check(input_added, (int[]){1, 1, 1});
    check(spread_added, (int[]){1, 1, 1});
    check(later_added, (int[]){0, 0, 0});
}

static void test_written_over(void **state)
{
    static made result;
    (void)state;
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->parts = 1;
    lone_plan_output(graph, by_moving(graph, convolution_of(graph, image(graph))));
    make(graph, 1, &result);
    assert_int_equal(result.within, 1);
    assert_int_equal(result.activation_bytes, Y * sizeof(float));
    tdi_graph_free(graph);
}

int main(void)
{
    for (int i = 0; i < X; i++)
        x[i] = (float)sin(0.37 * i);
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++)
        filter[i] = (float)cos(0.11 * (double)i);
    for (int i = 0; i < FILTERS; i++) {
        mean[i] = (float)sin(0.7 * i);
        variance[i] = (float)(2 + cos(0.3 * i));
    }
    for (int i = 0; i < Y; i++)
        other[i] = (float)sin(0.53 * i);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statistics), cmocka_unit_test(test_normalization),
                                       cmocka_unit_test(test_written_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
