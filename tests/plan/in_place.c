/* in_place.c - a value is written over an input that is read no more, whichever of the inputs it is, and never over one
 * that is still read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/lone_plan.h"

enum { ROWS = 3, SIDE = 8, POOLED = SIDE / 2, CHANNELS = 2 };
enum { ELEMENTS = ROWS * SIDE * SIDE * CHANNELS, ARRIVING = ELEMENTS / 4 };

static float x[ELEMENTS], dy[ARRIVING];

/* tanh(x) and, over its second input where it may be, the gradient of its average pooling; with `again`, their sum. */
static tdi_graph *graph_of(bool again)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = 1;
    td_shape large = {4, {TDI_BATCH, SIDE, SIDE, CHANNELS}}, small = {4, {TDI_BATCH, POOLED, POOLED, CHANNELS}};
    tdi_pool2d_attrs attrs = {.pool_h = 2, .pool_w = 2, .stride_h = 2, .stride_w = 2, .shape = large};
    attrs.padding = TD_VALID;
    attrs.activation = TD_TANH;
    tdi_node *value = tdi_unary(graph, tdi_input(graph, 0, &large, TD_FLOAT32), TD_TANH);
    tdi_node *in[] = {tdi_input(graph, 1, &small, TD_FLOAT32), value};
    tdi_node *made = tdi_node_create(graph, &tdi_op_average_pool2d_grad, &attrs, 2, in);
    made = again ? tdi_binary(graph, TDI_ADD, made, value) : tdi_affine(graph, made, 1.0f, 0.0f);
    lone_plan_output(graph, made);
    return graph;
}

static float expected(int i, bool again)
{
    int row = i / (SIDE * SIDE * CHANNELS), h = i / (SIDE * CHANNELS) % SIDE, w = i / CHANNELS % SIDE, c = i % CHANNELS;
    float value = tanhf(x[i]);
    float gradient = dy[((row * POOLED + h / 2) * POOLED + w / 2) * CHANNELS + c] / 4 * (1 - value * value);
    return again ? gradient + value : gradient;
}

/* What the plan's values take. */
static size_t bytes_of(bool again)
{
    static float made[ELEMENTS];
    tdi_graph *graph = graph_of(again);
    lone_plan p = lone_plan_create(graph, ROWS, 1);
    lone_plan_run(&p, (const float *[]){x, dy}, 2, made, ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(fabsf(made[i] - expected(i, again)) < 1e-6f);
    size_t bytes = tdi_plan_activation_bytes(p.plan);
    lone_plan_free(&p);
    tdi_graph_free(graph);
    return bytes;
}

static void over_what_is_read_no_more(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(false), ELEMENTS * sizeof(float));
    assert_int_equal(bytes_of(true), 2 * ELEMENTS * sizeof(float));
}

int main(void)
{
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = sinf((float)i * 1.7f);
    for (int i = 0; i < ARRIVING; i++)
        dy[i] = cosf((float)i * 0.9f);
    const struct CMUnitTest tests[] = {cmocka_unit_test(over_what_is_read_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
