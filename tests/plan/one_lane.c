/* one_lane.c - where one of several threads makes everything, it does so as if it were alone: the same kernels, layouts
 * and memory, nothing kept apart for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/lone_plan.h"

enum { ROWS = 16, SIDE = 12, CHANNELS = 3, FILTERS = 6, SEEN = ROWS * SIDE * SIDE * FILTERS };

static float x[ROWS * SIDE * SIDE * CHANNELS], filters[2][5 * 5 * FILTERS * FILTERS], values[2][SEEN];

static tdi_node *convolution(tdi_graph *graph, tdi_node *in, int slot)
{
    td_shape shape = {4, {5, 5, in->shape.dim[3], FILTERS}};
    tdi_conv2d_attrs attrs = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1, .padding = TD_SAME};
    return tdi_conv2d(graph, in, tdi_input(graph, slot, &shape, TD_FLOAT32), &attrs);
}

/* Few channels, whose samples are batch-interleaved; statistics that follow; values written over others. */
static tdi_graph *graph_of(void)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = 1;
    td_shape shape = {4, {TDI_BATCH, SIDE, SIDE, CHANNELS}};
    tdi_node *y = tdi_unary(graph, convolution(graph, tdi_input(graph, 0, &shape, TD_FLOAT32), 1), TD_TANH);
    y = convolution(graph, y, 2);
    y = tdi_batch_norm(graph, y, tdi_batch_norm_stats(graph, y, 1), NULL, NULL, 1e-3f);
    lone_plan_output(graph, tdi_unary(graph, y, TD_RELU));
    return graph;
}

static char *plan_of(tdi_graph *graph, int threads, float *made)
{
    lone_plan p = lone_plan_create_shared(graph, ROWS, threads, 1);
    char *text = lone_plan_explain(&p);
    lone_plan_run(&p, (const float *[]){x, filters[0], filters[1]}, 3, made, SEEN);
    lone_plan_free(&p);
    return text;
}

static void one_of_many_is_as_one_alone(void **state)
{
    (void)state;
    tdi_graph *graph = graph_of();
    char *alone = plan_of(graph, 1, values[0]), *of_many = plan_of(graph, LONE_PLAN_THREADS, values[1]);
    assert_string_equal(of_many, alone);
    assert_memory_equal(values[1], values[0], sizeof values[0]);
    free(alone);
    free(of_many);
    tdi_graph_free(graph);
}

int main(void)
{
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i % 19) * 0.1f - 1;
    for (size_t i = 0; i < sizeof filters / sizeof(float); i++)
        filters[i / (sizeof filters[0] / sizeof(float))][i % (sizeof filters[0] / sizeof(float))] =
            (float)(i % 13) * 0.05f - 0.3f;
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_of_many_is_as_one_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
