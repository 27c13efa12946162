/* moments.c - a batch normalization's statistics that the convolution before it makes, whole or each lane those of its
 * own filters, give what the references give; and so do those by a pass of their own, where lanes share its rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/evaluate.h"
#include "support/lone_plan.h"

enum { ROWS = 3, H = 12, W = 11, C = 5, FILTERS = 64, X = ROWS * H * W * C, Y = ROWS * H * W * FILTERS };

static float x[X], filter[3 * 3 * C * FILTERS];

/* `between`: the statistics are those of something else than the convolution makes. */
static tdi_node *build(tdi_graph *graph, bool between)
{
    td_shape image = {4, {TDI_BATCH, H, W, C}}, taps = {4, {3, 3, C, FILTERS}};
    tdi_conv2d_attrs attrs = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1, .padding = TD_SAME};
    tdi_node *in = tdi_unary(graph, tdi_input(graph, 0, &image, TD_FLOAT32), TD_TANH);
    tdi_node *y = tdi_conv2d(graph, in, tdi_input(graph, 1, &taps, TD_FLOAT32), &attrs);
    if (between)
        y = tdi_unary(graph, y, TD_SIGMOID);
    return tdi_batch_norm(graph, y, tdi_batch_norm_stats(graph, y), NULL, NULL, 1e-3f);
}

typedef struct made {
    float values[Y];
    bool within; /* the convolution made the statistics */
} made;

static void make(const tdi_graph *graph, int lanes, made *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    lone_plan p = lone_plan_create(graph, ROWS, lanes);
    tdi_plan_explain(p.plan, out);
    fclose(out);
    result->within = strstr(text, "by the op before it");
    lone_plan_run(&p, (const float *[]){x, filter}, 2, result->values, Y);
    lone_plan_free(&p);
    free(text);
}

static void check(bool between)
{
    static made one, rows_of, filters_of;
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->parts = 1;
    const tdi_node *node = lone_plan_output(graph, build(graph, between));
    make(graph, 1, &one);
    make(graph, 2, &rows_of);
    make(graph, ROWS + 1, &filters_of);
    assert_int_equal(one.within, !between);
    assert_false(rows_of.within);
    assert_int_equal(filters_of.within, !between);
    const void *inputs[] = {x, filter};
    int64_t rows = ROWS;
    evaluation *e = evaluation_create(&(evaluation_spec){.graph = graph, .parts = 1, .rows = &rows, .inputs = inputs});
    evaluation_run(e);
    const float *expected = evaluation_value(e, node, 0);
    for (int i = 0; i < Y; i++) {
        assert_true(fabs((double)one.values[i] - (double)expected[i]) <= 1e-5);
        assert_true(fabs((double)rows_of.values[i] - (double)expected[i]) <= 1e-5);
        assert_true(fabs((double)filters_of.values[i] - (double)expected[i]) <= 1e-5);
    }
    evaluation_free(e);
    tdi_graph_free(graph);
}

static void test_of_a_convolution(void **state)
{
    (void)state;
    check(false);
}

static void test_of_what_is_made_of_it(void **state)
{
    (void)state;
    check(true);
}

int main(void)
{
    for (int i = 0; i < X; i++)
        x[i] = (float)sin(0.37 * i);
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++)
        filter[i] = (float)cos(0.11 * (double)i);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_of_a_convolution),
                                       cmocka_unit_test(test_of_what_is_made_of_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
