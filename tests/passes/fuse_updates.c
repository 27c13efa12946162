/* Which updates make their gradients themselves: of one shard from the product's factors or a table's rows, of several
 * from what the shards leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "passes/passes.h"

enum { POSITIONS = 3, FEATURES = 30, UNITS = 20 };

typedef struct net {
    tdi_graph *graph;
    tdi_variable kernel;
    tdi_node *x, *dy, *product, *update, *average;
} net;

/* `rows` of a batch, of whose shards other processes compute some; 0: none do. */
static void net_init_of_rows(net *n, int shards, int64_t rows, bool regularized, bool averaged)
{
    *n = (net){.graph = tdi_graph_create()};
    assert_non_null(n->graph);
    n->graph->shards = shards;
    n->graph->rows = rows;
    n->graph->exchanged = rows > 0;
    n->kernel = (tdi_variable){.layer = "dense",
                               .name = "kernel",
                               .shape = {2, {FEATURES, UNITS}},
                               .trainable = true,
                               .elements = FEATURES * UNITS};
    n->x = tdi_input(n->graph, 0, &(td_shape){3, {TDI_BATCH, POSITIONS, FEATURES}}, TD_FLOAT32);
    n->dy = tdi_input(n->graph, 1, &(td_shape){3, {TDI_BATCH, POSITIONS, UNITS}}, TD_FLOAT32);
    tdi_node *weight = tdi_parameter(n->graph, &n->kernel);
    n->product = tdi_matmul(n->graph, n->x, n->dy, true, false);
    n->product = tdi_place_output(n->graph, n->product, TDI_HOME_GRADIENT, &n->kernel, 0);
    tdi_node *gradient = rows > 0     ? tdi_all_reduce(n->graph, n->product, &n->kernel)
                         : shards > 1 ? tdi_reduce_scatter(n->graph, n->product, &n->kernel)
                                      : n->product;
    if (regularized)
        gradient = tdi_regularize(n->graph, gradient, weight, 0, 0.5f);
    n->update = tdi_sgd(n->graph, weight, gradient, 0, NULL, &(tdi_optimizer_attrs){0});
    if (averaged)
        n->average = tdi_moving_average(n->graph, n->update, tdi_slot(n->graph, &n->kernel, 0),
                                        &(tdi_moving_average_attrs){0.5f, 0});
    assert_int_equal(tdi_fuse(n->graph, NULL), TD_OK);
    assert_int_equal(tdi_graph_verify(n->graph, &n->graph->error), TD_OK);
}

static void net_init(net *n, int shards, bool regularized, bool averaged)
{
    net_init_of_rows(n, shards, 0, regularized, averaged);
}

static void one_shard_multiplies(void **state)
{
    (void)state;
    net n;
    net_init(&n, 1, false, false);
    assert_ptr_equal(n.update->op, &tdi_op_matmul_update);
    assert_ptr_equal(n.update->in[1], n.x);
    assert_ptr_equal(n.update->in[2], n.dy);
    tdi_graph_free(n.graph);
}

static void several_leave_their_share(void **state)
{
    (void)state;
    net n;
    net_init(&n, 4, false, false);
    assert_ptr_equal(n.update->op, &tdi_op_joint_update);
    assert_ptr_equal(n.update->in[1], n.product);
    assert_ptr_equal(n.product->op, &tdi_op_leave_gradient);
    const tdi_joint_update_attrs *attrs = n.update->attrs;
    assert_ptr_equal(attrs->of.update, &tdi_op_sgd);
    assert_int_equal(attrs->shards, 4);
    assert_int_equal(attrs->positions, POSITIONS);
    tdi_graph_free(n.graph);
}

/* Between processes factors are gathered as long as all shards' together are no more than the gradient. */
static void processes_gather_few_factors(void **state)
{
    (void)state;
    int64_t most = FEATURES * UNITS / (POSITIONS * (FEATURES + UNITS)) / 2 * 2;
    net n;
    net_init_of_rows(&n, 2, most, false, false);
    const tdi_joint_update_attrs *attrs = n.update->attrs;
    const tdi_node *gathered = n.update->in[1];
    assert_ptr_equal(n.update->op, &tdi_op_joint_update);
    assert_ptr_equal(gathered->op, &tdi_op_all_gather);
    assert_ptr_equal(gathered->in[0], n.product);
    assert_int_equal(attrs->factors, most / 2 * POSITIONS * (FEATURES + UNITS));
    assert_int_equal(gathered->shape.dim[1], attrs->factors);
    assert_true(n.graph->gathers_factors);
    tdi_graph_free(n.graph);
}

static void processes_add_up_many_rows(void **state)
{
    (void)state;
    net n;
    net_init_of_rows(&n, 2, FEATURES * UNITS, false, false);
    assert_ptr_equal(n.update->op, &tdi_op_sgd);
    assert_ptr_equal(n.update->in[1]->op, &tdi_op_all_reduce);
    assert_ptr_equal(n.product->op, &tdi_op_leave_gradient);
    assert_true(((const tdi_matmul_attrs *)n.product->attrs)->factors < 0);
    assert_false(n.graph->gathers_factors);
    tdi_graph_free(n.graph);
}

/* The sum is what a regularizer is added to; an average reads the new weight before the replicas meet. */
static void what_others_want_stays_as_it_is(void **state)
{
    (void)state;
    for (int averaged = 0; averaged < 2; averaged++) {
        net n;
        net_init(&n, 2, !averaged, averaged);
        assert_ptr_equal(n.update->op, &tdi_op_sgd);
        assert_ptr_equal(n.product->op, &tdi_op_matmul);
        tdi_graph_free(n.graph);
    }
}

/* ---- tables ---- */

enum { ITEMS = 50, WIDTH = 4 };

/* The op of a table's update; `twice`: the gradient is the sum of two. */
static const tdi_op *table_update(int shards, bool twice, tdi_optimizer_attrs attrs)
{
    tdi_graph *graph = tdi_graph_create();
    tdi_variable table = {.layer = "embedding",
                          .name = "embeddings",
                          .shape = {2, {ITEMS, WIDTH}},
                          .trainable = true,
                          .elements = ITEMS * WIDTH};
    graph->shards = shards;
    tdi_node *at = tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, POSITIONS}}, TD_INT32);
    tdi_node *dy = tdi_input(graph, 1, &(td_shape){3, {TDI_BATCH, POSITIONS, WIDTH}}, TD_FLOAT32);
    tdi_node *weight = tdi_parameter(graph, &table), *gradient = tdi_scatter_add(graph, at, dy, &table.shape);
    if (twice)
        gradient = tdi_binary(graph, TDI_ADD, gradient, tdi_scatter_add(graph, at, dy, &table.shape));
    gradient = tdi_place_output(graph, gradient, TDI_HOME_GRADIENT, &table, 0);
    if (shards > 1)
        gradient = tdi_reduce_scatter(graph, gradient, &table);
    tdi_node *slot = tdi_slot(graph, &table, 0);
    const tdi_node *update = tdi_sgd(graph, weight, gradient, attrs.momentum != 0.0f, &slot, &attrs);
    assert_int_equal(tdi_fuse(graph, NULL), TD_OK);
    assert_int_equal(tdi_graph_verify(graph, &graph->error), TD_OK);
    const tdi_op *op = update->op;
    tdi_graph_free(graph);
    return op;
}

static void rows_alone_are_updated_where_no_other_changes(void **state)
{
    (void)state;
    assert_ptr_equal(table_update(1, false, (tdi_optimizer_attrs){0}), &tdi_op_gather_update);
    assert_ptr_equal(table_update(1, false, (tdi_optimizer_attrs){.clipvalue = 0.5f}), &tdi_op_gather_update);
    assert_ptr_equal(table_update(1, false, (tdi_optimizer_attrs){.momentum = 0.5f}), &tdi_op_sgd);
    assert_ptr_equal(table_update(1, false, (tdi_optimizer_attrs){.weight_decay = 0.5f}), &tdi_op_sgd);
    assert_ptr_equal(table_update(1, true, (tdi_optimizer_attrs){0}), &tdi_op_sgd);
    assert_ptr_equal(table_update(2, false, (tdi_optimizer_attrs){0}), &tdi_op_sgd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shard_multiplies),
        cmocka_unit_test(several_leave_their_share),
        cmocka_unit_test(processes_gather_few_factors),
        cmocka_unit_test(processes_add_up_many_rows),
        cmocka_unit_test(what_others_want_stays_as_it_is),
        cmocka_unit_test(rows_alone_are_updated_where_no_other_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
