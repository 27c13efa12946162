/* The def-use table: who reads a value, directly and through views; which nodes belong to a variable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/def_use.h"
#include "passes/passes.h"

enum { COLUMNS = 6 };

typedef struct net {
    tdi_graph *graph;
    tdi_node *x;
} net;

static void net_init(net *n)
{
    n->graph = tdi_graph_create();
    assert_non_null(n->graph);
    n->x = tdi_input(n->graph, 0, &(td_shape){2, {TDI_BATCH, COLUMNS}}, TD_FLOAT32);
}

static const tdi_def_use *table_of(const net *n)
{
    assert_int_equal(n->graph->error.status, TD_OK);
    const tdi_def_use *table = tdi_def_use_create(n->graph);
    assert_non_null(table);
    return table;
}

static void assert_use(tdi_uses uses, int i, const tdi_node *reader, int input)
{
    assert_true(i < uses.count);
    assert_ptr_equal(uses.at[i].reader, reader);
    assert_int_equal(uses.at[i].input, input);
}

static void readers_come_in_order_and_twice_if_they_read_twice(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    tdi_node *relu = tdi_unary(n.graph, n.x, TD_RELU);
    tdi_node *square = tdi_binary(n.graph, TDI_MULTIPLY, n.x, n.x);
    tdi_node *sum = tdi_binary(n.graph, TDI_ADD, relu, n.x);
    assert_true(tdi_push(&n.graph->outputs, relu));
    const tdi_def_use *table = table_of(&n);
    tdi_uses uses = tdi_uses_of(table, n.x);
    assert_int_equal(uses.count, 4);
    assert_use(uses, 0, relu, 0);
    assert_use(uses, 1, square, 0);
    assert_use(uses, 2, square, 1);
    assert_use(uses, 3, sum, 1);
    assert_int_equal(tdi_use_count(table, n.x), 4);
    assert_int_equal(tdi_use_count(table, relu), 2); /* the sum, and the graph's output */
    assert_int_equal(tdi_use_count(table, sum), 0);
    tdi_graph_free(n.graph);
}

static void bytes_are_read_through_views(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    tdi_node *relu = tdi_unary(n.graph, n.x, TD_RELU);
    tdi_node *halves = tdi_reshape(n.graph, relu, &(td_shape){3, {TDI_BATCH, 2, COLUMNS / 2}});
    tdi_node *flat = tdi_reshape(n.graph, halves, &(td_shape){2, {TDI_BATCH, COLUMNS}});
    tdi_node *sum = tdi_binary(n.graph, TDI_ADD, relu, flat);
    const tdi_def_use *table = table_of(&n);
    assert_use(tdi_uses_of(table, relu), 0, halves, 0);
    assert_use(tdi_uses_of(table, halves), 0, flat, 0);
    tdi_uses bytes = tdi_uses_of_bytes(table, relu);
    assert_int_equal(bytes.count, 2);
    assert_use(bytes, 0, sum, 0);
    assert_use(bytes, 1, sum, 1);
    assert_int_equal(tdi_uses_of_bytes(table, flat).count, 0);
    tdi_graph_free(n.graph);
}

static void variables_have_their_nodes(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    tdi_variable first = {.shape = {1, {COLUMNS}}, .trainable = true, .elements = COLUMNS}, second = first;
    tdi_variable stranger = first;
    tdi_node *weight = tdi_parameter(n.graph, &first), *other = tdi_parameter(n.graph, &second);
    tdi_node *gradient = tdi_place_output(n.graph, tdi_affine(n.graph, weight, 2, 0), TDI_HOME_GRADIENT, &first, 0);
    tdi_optimizer_attrs attrs = {.momentum = 0.9f};
    tdi_node *velocity = tdi_slot(n.graph, &first, 0);
    tdi_node *update = tdi_sgd(n.graph, weight, gradient, 1, &velocity, &attrs);
    const tdi_def_use *table = table_of(&n);
    tdi_node_list nodes = tdi_nodes_of_variable(table, &first);
    assert_int_equal(nodes.count, 4);
    assert_ptr_equal(nodes.at[0], weight);
    assert_ptr_equal(nodes.at[1], gradient);
    assert_ptr_equal(nodes.at[2], velocity);
    assert_ptr_equal(nodes.at[3], update);
    assert_int_equal(tdi_nodes_of_variable(table, &second).count, 1);
    assert_ptr_equal(tdi_nodes_of_variable(table, &second).at[0], other);
    assert_int_equal(tdi_nodes_of_variable(table, &stranger).count, 0);
    assert_true(tdi_writes_input(update, 2));
    assert_false(tdi_writes_input(update, 1));
    tdi_graph_free(n.graph);
}

static void an_extra_output_is_written_by_its_producer(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    td_shape losses = {1, {TDI_BATCH}};
    tdi_node *output = tdi_extra_output(n.graph, &losses), *dloss = tdi_fill(n.graph, 1.0f, &losses);
    tdi_node *targets = tdi_input(n.graph, 1, &n.x->shape, TD_FLOAT32);
    tdi_node *in[] = {n.x, targets, dloss, output};
    tdi_node *producer = tdi_node_create(n.graph, &tdi_op_softmax_cross_entropy_grad, NULL, 4, in);
    tdi_node *loss = tdi_extra_output_of(n.graph, output, producer);
    assert_int_equal(n.graph->error.status, TD_OK);
    assert_true(tdi_writes_input(producer, 3));
    assert_false(tdi_writes_input(producer, 2));
    assert_false(tdi_writes_input(loss, 0)); /* a view writes nothing */
    tdi_graph_free(n.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_come_in_order_and_twice_if_they_read_twice),
        cmocka_unit_test(bytes_are_read_through_views),
        cmocka_unit_test(variables_have_their_nodes),
        cmocka_unit_test(an_extra_output_is_written_by_its_producer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
