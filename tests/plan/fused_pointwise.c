/* fused_pointwise.c - element-wise ops that go through memory together give what the references give, whatever lies
 * where, and the bits that they give one after the other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bfloat16.h"
#include "support/evaluate.h"
#include "support/lone_plan.h"
#include "support/occurrences.h"

enum { ROWS = 3, WIDTH = 30011, ELEMENTS = ROWS * WIDTH };

typedef struct made {
    float values[ELEMENTS];
    char *explained;
} made;

static float data[2][ELEMENTS];

static tdi_node *input(tdi_graph *graph, int slot)
{
    td_shape shape = {2, {TDI_BATCH, WIDTH}};
    return tdi_input(graph, slot, &shape, TD_FLOAT32);
}

/* All are fused. */
static tdi_node *plain(tdi_graph *graph)
{
    tdi_node *x = input(graph, 0), *more = input(graph, 1);
    tdi_node *y = tdi_unary(graph, x, TD_SILU);
    y = tdi_dropout(graph, y, &(tdi_dropout_attrs){.rate = 0.25f, .stream = 7});
    y = tdi_unary(graph, y, TD_TANH);
    y = tdi_binary(graph, TDI_ADD, y, more);
    y = tdi_affine(graph, y, 2.0f, -0.5f);
    return tdi_unary(graph, y, TD_SIGMOID);
}

/* The first value is read no more when the third is made, which takes its place and is twice as long: a stretch of one
 * lies among others of the other. */
static tdi_node *narrowed(tdi_graph *graph)
{
    tdi_node *x = input(graph, 0), *more = input(graph, 1);
    tdi_node *y = tdi_cast(graph, x, TD_BFLOAT16);
    y = tdi_binary(graph, TDI_ADD, y, y);
    y = tdi_cast(graph, y, TD_FLOAT32);
    return tdi_binary(graph, TDI_ADD, y, more);
}

static void make(tdi_graph *graph, int threads, made *result)
{
    lone_plan p = lone_plan_create(graph, ROWS, threads);
    result->explained = lone_plan_explain(&p);
    lone_plan_run(&p, (const float *[]){data[0], data[1]}, 2, result->values, ELEMENTS);
    lone_plan_free(&p);
}

static int count_fused(const made *result)
{
    return occurrences(result->explained, "fused with the op before it");
}

static tdi_graph *graph_of(tdi_node *(*build)(tdi_graph *graph), const tdi_node **node)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = 1;
    *node = lone_plan_output(graph, build(graph));
    return graph;
}

static void check(tdi_graph *graph, int least_fused, const float *expected, double tolerance)
{
    static made one, two;
    make(graph, 1, &one);
    make(graph, 2, &two);
    assert_true(count_fused(&one) >= least_fused);
    assert_true(count_fused(&two) >= least_fused);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(fabs((double)one.values[i] - (double)expected[i]) <= tolerance);
    assert_memory_equal(one.values, two.values, sizeof one.values);
    free(one.explained);
    free(two.explained);
}

static void test_plain(void **state)
{
    (void)state;
    const tdi_node *node;
    tdi_graph *graph = graph_of(plain, &node);
    const void *inputs[] = {data[0], data[1]};
    int64_t rows = ROWS;
    evaluation *e = evaluation_create(&(evaluation_spec){
        .graph = graph, .shards = 1, .rows = &rows, .control = {.step = 5, .seed = 11}, .inputs = inputs});
    evaluation_run(e);
    check(graph, 5, evaluation_value(e, node, 0), 1e-5);
    evaluation_free(e);
    tdi_graph_free(graph);
}

static void test_narrowed(void **state)
{
    (void)state;
    static float expected[ELEMENTS];
    const tdi_node *node;
    tdi_graph *graph = graph_of(narrowed, &node);
    for (int i = 0; i < ELEMENTS; i++)
        expected[i] = 2 * tdi_widen(tdi_narrow(data[0][i])) + data[1][i];
    check(graph, 1, expected, 0);
    tdi_graph_free(graph);
}

int main(void)
{
    for (int i = 0; i < ELEMENTS; i++) {
        data[0][i] = (float)sin(0.37 * i);
        data[1][i] = (float)cos(0.11 * i);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_narrowed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
