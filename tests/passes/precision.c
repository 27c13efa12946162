/* Which values become bfloat16, where casts stand, what stays float32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "passes/passes.h"

static const tdi_kernel matmul = {.op = &tdi_op_matmul, .takes = TDI_TAKES_BFLOAT16};
static const tdi_kernel bias_add = {.op = &tdi_op_bias_add, .takes = TDI_TAKES_BOTH};
static const tdi_kernel unary = {.op = &tdi_op_unary, .takes = TDI_TAKES_BOTH};
static const tdi_kernel unary_grad = {.op = &tdi_op_unary_grad, .takes = TDI_TAKES_BOTH};
static const tdi_kernel binary = {.op = &tdi_op_binary, .takes = TDI_TAKES_BOTH};
static const tdi_kernel float_reduce = {.op = &tdi_op_reduce};
static const tdi_kernel *const all[] = {&matmul, &bias_add, &unary, &unary_grad, &binary, &float_reduce, NULL};
static const tdi_kernel *const none[] = {&float_reduce, NULL};

/* input -> dense (mixed_bfloat16) -> flatten -> dense (float32) -> output, and the first dense's gradient of the sum.
 */
typedef struct net {
    tdi_graph *graph;
    tdi_variable kernel, bias, last;
    tdi_node *input, *hidden, *flat, *prediction, *gradient;
} net;

static void dense(net *n, bool bfloat16)
{
    n->kernel = (tdi_variable){.shape = {2, {6, 4}}, .trainable = true, .elements = 24};
    n->bias = (tdi_variable){.shape = {1, {4}}, .trainable = true, .elements = 4};
    n->graph->bfloat16 = bfloat16;
    tdi_node *y = tdi_matmul(n->graph, n->input, tdi_parameter(n->graph, &n->kernel), false, false);
    n->hidden = tdi_unary(n->graph, tdi_bias_add(n->graph, y, tdi_parameter(n->graph, &n->bias)), TD_RELU);
    n->graph->bfloat16 = false;
}

static void net_init(net *n, bool bfloat16)
{
    *n = (net){.graph = tdi_graph_create()};
    assert_non_null(n->graph);
    td_shape in = {3, {TDI_BATCH, 2, 6}}, flat = {2, {TDI_BATCH, 8}};
    n->input = tdi_input(n->graph, 0, &in, TD_FLOAT32);
    dense(n, bfloat16);
    n->flat = tdi_reshape(n->graph, n->hidden, &flat);
    n->flat->bfloat16 = bfloat16;
    n->last = (tdi_variable){.shape = {2, {8, 3}}, .elements = 24};
    n->prediction = tdi_matmul(n->graph, n->flat, tdi_parameter(n->graph, &n->last), false, false);
    tdi_node *loss = tdi_reduce(n->graph, TDI_SUM, n->prediction, 3, false), *of = n->graph->parameters.at[0];
    assert_int_equal(tdi_gradients(n->graph, loss, 1, &of, &n->gradient), TD_OK);
    n->gradient = tdi_place_output(n->graph, n->gradient, TDI_HOME_GRADIENT, &n->kernel, 0);
    n->gradient->effect = true;
    assert_true(tdi_push(&n->graph->outputs, n->prediction));
}

static void net_release(net *n)
{
    assert_int_equal(tdi_graph_verify(n->graph, &n->graph->error), TD_OK);
    tdi_graph_free(n->graph);
}

static int count(const net *n, const tdi_op *op)
{
    int found = 0;
    for (int i = 0; i < n->graph->nodes.count; i++)
        found += n->graph->nodes.at[i]->op == op;
    return found;
}

static void values_between_layers_are_bfloat16(void **state)
{
    (void)state;
    net n;
    net_init(&n, true);
    assert_int_equal(tdi_precision(n.graph, all), TD_OK);
    assert_int_equal(n.hidden->dtype, TD_BFLOAT16);
    assert_int_equal(n.flat->dtype, TD_BFLOAT16);
    assert_int_equal(n.prediction->dtype, TD_FLOAT32);
    assert_int_equal(n.gradient->dtype, TD_FLOAT32);
    assert_int_equal(n.gradient->home, TDI_HOME_GRADIENT);
    const tdi_node *product = n.hidden->in[0]->in[0];
    assert_ptr_equal(product->in[0]->op, &tdi_op_cast);
    assert_ptr_equal(product->in[1]->op, &tdi_op_parameter); /* a weight is its kernels' to round */
    /* Of the input, which the gradient reads too; of `flat` for the float32 layer; of the gradient that comes back; of
     * the bias's gradient before it is summed, as there is no other kernel here. */
    assert_int_equal(count(&n, &tdi_op_cast), 4);
    net_release(&n);
}

static void without_kernels_nothing_changes(void **state)
{
    (void)state;
    net n;
    net_init(&n, true);
    int before = n.graph->nodes.count;
    assert_int_equal(tdi_precision(n.graph, none), TD_OK);
    assert_int_equal(n.graph->nodes.count, before);
    assert_int_equal(n.hidden->dtype, TD_FLOAT32);
    net_release(&n);
}

static void without_a_wish_nothing_changes(void **state)
{
    (void)state;
    net n;
    net_init(&n, false);
    int before = n.graph->nodes.count;
    assert_int_equal(tdi_precision(n.graph, all), TD_OK);
    assert_int_equal(n.graph->nodes.count, before);
    net_release(&n);
}

/* An output is the caller's, as floats: the cast takes its place. */
static void outputs_are_float32(void **state)
{
    (void)state;
    net n;
    net_init(&n, true);
    n.hidden->home = TDI_HOME_OUTPUT;
    n.graph->outputs.at[0] = n.hidden;
    assert_int_equal(tdi_precision(n.graph, all), TD_OK);
    const tdi_node *output = n.graph->outputs.at[0];
    assert_ptr_equal(output->op, &tdi_op_cast);
    assert_ptr_equal(output->in[0], n.hidden);
    assert_int_equal(output->home, TDI_HOME_OUTPUT);
    assert_int_equal(output->dtype, TD_FLOAT32);
    assert_int_equal(n.hidden->home, TDI_HOME_ACTIVATIONS);
    net_release(&n);
}

/* What has no kernel computes in float32, from a cast. */
/* As a frozen batch normalization's gradient reads its mean. */
static void weights_of_element_wise_ops_are_cast(void **state)
{
    (void)state;
    net n = {.graph = tdi_graph_create()};
    assert_non_null(n.graph);
    n.input = tdi_input(n.graph, 0, &(td_shape){2, {TDI_BATCH, 6}}, TD_FLOAT32);
    dense(&n, true);
    n.graph->bfloat16 = true;
    n.last = (tdi_variable){.shape = {1, {4}}, .elements = 4};
    tdi_node *mean = tdi_parameter(n.graph, &n.last);
    n.prediction = tdi_binary(n.graph, TDI_SUBTRACT, n.hidden, mean);
    assert_int_equal(tdi_precision(n.graph, all), TD_OK);
    assert_int_equal(n.prediction->dtype, TD_BFLOAT16);
    assert_ptr_equal(n.prediction->in[1]->in[0], mean);
    net_release(&n);
}

static void missing_kernels_are_cast_around(void **state)
{
    (void)state;
    static const tdi_kernel *const products[] = {&matmul, NULL};
    net n;
    net_init(&n, true);
    assert_int_equal(tdi_precision(n.graph, products), TD_OK);
    const tdi_node *bias = n.hidden->in[0];
    assert_int_equal(n.hidden->dtype, TD_FLOAT32);
    assert_ptr_equal(bias->in[0]->op, &tdi_op_cast);
    assert_int_equal(bias->in[0]->in[0]->dtype, TD_BFLOAT16);
    net_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_between_layers_are_bfloat16),   cmocka_unit_test(without_kernels_nothing_changes),
        cmocka_unit_test(without_a_wish_nothing_changes),       cmocka_unit_test(outputs_are_float32),
        cmocka_unit_test(weights_of_element_wise_ops_are_cast), cmocka_unit_test(missing_kernels_are_cast_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
