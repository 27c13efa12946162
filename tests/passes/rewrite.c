/* The rewriting toolkit: the first rule that matches is applied, once a node; what others read is not taken over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ops/ops.h"
#include "passes/rewrite.h"

enum { COLUMNS = 5 };

typedef struct net {
    tdi_graph *graph;
    tdi_node *x, *relu, *square;
} net;

static void net_init(net *n)
{
    n->graph = tdi_graph_create();
    assert_non_null(n->graph);
    n->graph->scope = "dense";
    n->x = tdi_input(n->graph, 0, &(td_shape){2, {TDI_BATCH, COLUMNS}}, TD_FLOAT32);
    n->relu = tdi_unary(n->graph, n->x, TD_RELU);
    n->square = tdi_unary(n->graph, n->relu, TDI_UNARY_SQUARE);
    assert_true(tdi_push(&n->graph->outputs, n->square));
}

/* A unary of a unary becomes the outer function of the inner one's input, which is nonsense, but easily seen. */
static bool skip_inner(tdi_rewriter *r, tdi_node *node)
{
    tdi_node *inner = node->in[0];
    return inner->op == &tdi_op_unary && tdi_can_take_over(r, inner) &&
           tdi_replace(node, node->op, node->attrs, 1, inner->in) && tdi_remark(r, node, "relu", "square");
}

static bool never(tdi_rewriter *r, tdi_node *node)
{
    (void)r;
    (void)node;
    return false;
}

static bool must_not_run(tdi_rewriter *r, tdi_node *node)
{
    (void)r;
    fail_msg("node %d: the rule before has matched", node->id);
    return false;
}

static const tdi_rewrite_rule rules[] = {
    {&tdi_op_binary, skip_inner}, {&tdi_op_unary, never}, {&tdi_op_unary, skip_inner}, {0}};

static void the_first_rule_that_matches_is_applied(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    tdi_text remarks = {0};
    assert_int_equal(tdi_rewrite(n.graph, rules, &remarks), TD_OK);
    assert_ptr_equal(n.square->in[0], n.x);
    assert_ptr_equal(n.relu->in[0], n.x);
    assert_string_equal(remarks.chars, "dense: relu went into square\n");
    assert_int_equal(tdi_graph_verify(n.graph, &n.graph->error), TD_OK);
    tdi_text_free(&remarks);
    tdi_graph_free(n.graph);
}

static bool always(tdi_rewriter *r, tdi_node *node)
{
    return tdi_remark(r, node, "nothing", node->op->name);
}

static void one_rule_is_applied_to_a_node(void **state)
{
    (void)state;
    static const tdi_rewrite_rule both[] = {{&tdi_op_unary, always}, {&tdi_op_unary, must_not_run}, {0}};
    net n;
    net_init(&n);
    assert_int_equal(tdi_rewrite(n.graph, both, NULL), TD_OK);
    tdi_graph_free(n.graph);
}

static void what_others_read_is_not_taken_over(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    assert_true(tdi_push(&n.graph->outputs, n.relu));
    assert_int_equal(tdi_rewrite(n.graph, rules, NULL), TD_OK);
    assert_ptr_equal(n.square->in[0], n.relu);
    tdi_graph_free(n.graph);
}

/* The table is made when the pass begins: a node that was taken over, and is dead, still counts as the reader it was.
 */
static void counts_stay_as_they_were(void **state)
{
    (void)state;
    net n;
    net_init(&n);
    tdi_node *root = tdi_unary(n.graph, n.square, TDI_UNARY_SQRT);
    n.graph->outputs.at[0] = root;
    assert_int_equal(tdi_rewrite(n.graph, rules, NULL), TD_OK);
    assert_ptr_equal(n.square->in[0], n.x);
    assert_ptr_equal(root->in[0], n.x); /* the square had one reader, and has been rewritten before */
    tdi_graph_free(n.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_matches_is_applied),
        cmocka_unit_test(one_rule_is_applied_to_a_node),
        cmocka_unit_test(what_others_read_is_not_taken_over),
        cmocka_unit_test(counts_stay_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
