/* Which ops batch normalization takes over, by the batch's statistics and by moving ones, and which pads go where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "passes/passes.h"

enum { SIDE = 8, CHANNELS = 4 };

typedef struct net {
    tdi_graph *graph;
    tdi_node *x;
} net;

static void net_init(net *n)
{
    *n = (net){.graph = tdi_graph_create()};
    assert_non_null(n->graph);
    n->x = tdi_input(n->graph, 0, &(td_shape){4, {TDI_BATCH, SIDE, SIDE, CHANNELS}}, TD_FLOAT32);
}

static void fold(net *n, tdi_node *output)
{
    assert_non_null(output);
    assert_true(tdi_push(&n->graph->outputs, output));
    assert_int_equal(tdi_fold(n->graph, NULL), TD_OK);
    assert_int_equal(tdi_graph_verify(n->graph, &n->graph->error), TD_OK);
}

static tdi_node *normalized(net *n, tdi_node *x, bool inference)
{
    td_shape channels = {1, {CHANNELS}};
    tdi_node *zeros = tdi_fill(n->graph, 0, &channels), *ones = tdi_fill(n->graph, 1, &channels);
    if (inference)
        return tdi_batch_norm_inference(n->graph, x, zeros, ones, NULL, NULL, 1e-3f);
    return tdi_batch_norm(n->graph, x, tdi_batch_norm_stats(n->graph, x, 1), NULL, NULL, 1e-3f);
}

static const tdi_op *op_of(bool inference)
{
    return inference ? &tdi_op_batch_norm_inference : &tdi_op_batch_norm;
}

static int residual_of(bool inference)
{
    return inference ? 5 : 4;
}

static bool rectifies(const tdi_node *node)
{
    return ((const tdi_batch_norm_attrs *)node->attrs)->relu;
}

static void a_rectifier_goes_into_what_it_follows(void **state)
{
    (void)state;
    for (int inference = 0; inference < 2; inference++) {
        net n;
        net_init(&n);
        tdi_node *end = tdi_unary(n.graph, normalized(&n, n.x, inference), TD_RELU);
        fold(&n, end);
        assert_ptr_equal(end->op, op_of(inference));
        assert_ptr_equal(end->in[0], n.x);
        assert_int_equal(end->n_in, residual_of(inference));
        assert_true(rectifies(end));
        tdi_graph_free(n.graph);
    }
}

static void so_does_what_is_added_before_it(void **state)
{
    (void)state;
    for (int inference = 0; inference < 2; inference++)
        for (int side = 0; side < 2; side++) {
            net n;
            net_init(&n);
            tdi_node *residual = tdi_affine(n.graph, n.x, 2, 0), *main_path = normalized(&n, n.x, inference);
            tdi_node *sum = tdi_binary(n.graph, TDI_ADD, side ? residual : main_path, side ? main_path : residual);
            tdi_node *end = tdi_unary(n.graph, sum, TD_RELU);
            fold(&n, end);
            assert_ptr_equal(end->op, op_of(inference));
            assert_int_equal(end->n_in, residual_of(inference) + 1);
            assert_ptr_equal(end->in[residual_of(inference)], residual);
            assert_true(rectifies(end));
            tdi_graph_free(n.graph);
        }
}

/* Of two that are added, the one that begins with what is made later takes the other. */
static void the_later_of_two_adds_the_other(void **state)
{
    (void)state;
    for (int inference = 0; inference < 2; inference++)
        for (int side = 0; side < 2; side++) {
            net n;
            net_init(&n);
            tdi_node *later = tdi_affine(n.graph, n.x, 2, 0), *b = normalized(&n, later, inference);
            tdi_node *a = normalized(&n, n.x, inference);
            tdi_node *end = tdi_unary(n.graph, tdi_binary(n.graph, TDI_ADD, side ? a : b, side ? b : a), TD_RELU);
            fold(&n, end);
            assert_ptr_equal(end->in[0], later);
            assert_ptr_equal(end->in[residual_of(inference)], a);
            tdi_graph_free(n.graph);
        }
}

/* What others read stays; other activations, and what is spread over the batch, are not taken over. */
static void nothing_else_does(void **state)
{
    (void)state;
    for (int inference = 0; inference < 2; inference++) {
        net n;
        net_init(&n);
        tdi_node *read_twice = normalized(&n, n.x, inference), *end = tdi_unary(n.graph, read_twice, TD_RELU);
        tdi_node *tanh = tdi_unary(n.graph, normalized(&n, end, inference), TD_TANH);
        tdi_node *one = tdi_fill(n.graph, 1, &(td_shape){1, {CHANNELS}});
        tdi_node *spread = tdi_binary(n.graph, TDI_ADD, normalized(&n, tanh, inference), one);
        assert_true(tdi_push(&n.graph->outputs, read_twice));
        fold(&n, tdi_unary(n.graph, spread, TD_RELU));
        assert_ptr_equal(end->op, &tdi_op_unary);
        assert_ptr_equal(tanh->op, &tdi_op_unary);
        assert_ptr_equal(n.graph->outputs.at[1]->op, &tdi_op_unary);
        tdi_graph_free(n.graph);
    }
}

static tdi_node *padded(net *n, tdi_node *x)
{
    return tdi_pad(n->graph, tdi_pad(n->graph, x, 1, 1, 1), 2, 1, 1);
}

static void a_pool_skips_pads_around_what_is_rectified(void **state)
{
    (void)state;
    for (int inference = 0; inference < 2; inference++)
        for (int rectified = 0; rectified < 2; rectified++) {
            net n;
            net_init(&n);
            tdi_node *x = normalized(&n, n.x, inference);
            x = rectified ? tdi_unary(n.graph, x, TD_RELU) : x;
            tdi_pool2d_attrs attrs = {.pool_h = 3, .pool_w = 3, .stride_h = 2, .stride_w = 2, .padding = TD_VALID};
            tdi_node *pool = tdi_max_pool2d(n.graph, padded(&n, x), &attrs);
            fold(&n, pool);
            assert_int_equal(pool->in[0]->op == &tdi_op_pad, !rectified);
            assert_int_equal(((const tdi_pool2d_attrs *)pool->attrs)->sides.top, rectified);
            tdi_graph_free(n.graph);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rectifier_goes_into_what_it_follows),
        cmocka_unit_test(so_does_what_is_added_before_it),
        cmocka_unit_test(the_later_of_two_adds_the_other),
        cmocka_unit_test(nothing_else_does),
        cmocka_unit_test(a_pool_skips_pads_around_what_is_rectified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
