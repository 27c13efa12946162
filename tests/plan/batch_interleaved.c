/* Which values are batch-interleaved: those between kernels that can, in regions that hold one which prefers it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/threads/batch_interleaved.h"

enum { MOST = 32 };

typedef struct chain {
    tdi_graph *graph;
    tdi_schedule schedule;
    bool interleaved[MOST];
} chain;

/* Convolutions of few channels prefer it; relus accept it. */
static tdi_batch_interleaving takes(void *context, const tdi_node *node)
{
    (void)context;
    if (node->op == &tdi_op_conv2d && node->shape.dim[3] <= 16)
        return TDI_PREFERS_INTERLEAVING;
    return node->op == &tdi_op_unary ? TDI_ACCEPTS_INTERLEAVING : TDI_NO_INTERLEAVING;
}

static tdi_node *image(chain *c)
{
    c->graph = tdi_graph_create();
    assert_non_null(c->graph);
    return tdi_input(c->graph, 0, &(td_shape){4, {TDI_BATCH, 8, 8, 4}}, TD_FLOAT32);
}

static tdi_node *convolution(chain *c, tdi_node *x, int64_t filters)
{
    td_shape shape = {4, {3, 3, x->shape.dim[3], filters}};
    tdi_conv2d_attrs attrs = {.stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1};
    return tdi_conv2d(c->graph, x, tdi_fill(c->graph, 1, &shape), &attrs);
}

static void choose(chain *c, tdi_node *output)
{
    tdi_collectives collectives = {0};
    output->home = TDI_HOME_OUTPUT;
    assert_true(tdi_push(&c->graph->outputs, output));
    assert_int_equal(tdi_schedule_make(c->graph, &c->schedule, &collectives, &c->graph->error), TD_OK);
    tdi_vec_free(&collectives);
    assert_true(c->graph->nodes.count <= MOST);
    assert_int_equal(tdi_layout_choose(c->graph, &c->schedule, takes, NULL, c->interleaved, &c->graph->error), TD_OK);
}

static void release(chain *c)
{
    tdi_vec_free(&c->schedule);
    tdi_graph_free(c->graph);
}

static void through_a_chain(void **state)
{
    (void)state;
    chain c = {0};
    tdi_node *x = image(&c), *first = convolution(&c, x, 8), *relu = tdi_unary(c.graph, first, TD_RELU);
    tdi_node *second = convolution(&c, relu, 8), *last = tdi_unary(c.graph, second, TD_RELU);
    choose(&c, last);
    assert_false(c.interleaved[x->id]);
    assert_true(c.interleaved[first->id]);
    assert_true(c.interleaved[relu->id]);
    assert_true(c.interleaved[second->id]);
    assert_false(c.interleaved[last->id]);
    release(&c);
}

/* One reader that cannot is enough. */
static void ends_where_a_reader_cannot(void **state)
{
    (void)state;
    chain c = {0};
    tdi_node *first = convolution(&c, image(&c), 8), *relu = tdi_unary(c.graph, first, TD_RELU);
    tdi_node *both[] = {convolution(&c, relu, 8), tdi_affine(c.graph, convolution(&c, relu, 32), 2, 0)};
    choose(&c, tdi_concat(c.graph, 2, both, 3));
    assert_true(c.interleaved[first->id]);
    assert_false(c.interleaved[relu->id]);
    assert_false(c.interleaved[both[0]->id]);
    release(&c);
}

static void needs_a_leader(void **state)
{
    (void)state;
    chain c = {0};
    tdi_node *first = convolution(&c, image(&c), 32), *relu = tdi_unary(c.graph, first, TD_RELU);
    tdi_node *tanh = tdi_unary(c.graph, relu, TD_TANH);
    choose(&c, tdi_affine(c.graph, tanh, 2, 0));
    for (int i = 0; i < MOST; i++)
        assert_false(c.interleaved[i]);
    release(&c);
}

/* A view shows bytes as they lie. */
static void ends_at_a_view(void **state)
{
    (void)state;
    chain c = {0};
    tdi_node *first = convolution(&c, image(&c), 8), *relu = tdi_unary(c.graph, first, TD_RELU);
    choose(&c, tdi_affine(c.graph, tdi_reshape(c.graph, relu, &(td_shape){2, {TDI_BATCH, 6 * 6 * 8}}), 2, 0));
    assert_true(c.interleaved[first->id]);
    assert_false(c.interleaved[relu->id]);
    release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(through_a_chain), cmocka_unit_test(ends_where_a_reader_cannot),
                                       cmocka_unit_test(needs_a_leader), cmocka_unit_test(ends_at_a_view)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
