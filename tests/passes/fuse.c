/* When the product before an LSTM goes into its steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ops/lstm.h"
#include "passes/passes.h"

enum { STEPS = 3, UNITS = 8, FEW = UNITS / 4 };

typedef struct net {
    tdi_graph *graph;
    tdi_variable kernel, bias, recurrent;
    tdi_node *x, *z, *reserve, *output;
} net;

static tdi_node *parameter(net *n, tdi_variable *variable, td_shape shape)
{
    *variable = (tdi_variable){.shape = shape, .trainable = true, .elements = tdi_shape_elements(&shape)};
    return tdi_parameter(n->graph, variable);
}

static void net_init(net *n, int64_t features, bool biased)
{
    *n = (net){.graph = tdi_graph_create()};
    assert_non_null(n->graph);
    n->x = tdi_input(n->graph, 0, &(td_shape){3, {TDI_BATCH, STEPS, features}}, TD_FLOAT32);
    tdi_node *kernel = parameter(n, &n->kernel, (td_shape){2, {features, 4 * UNITS}});
    tdi_node *z = tdi_matmul(n->graph, n->x, kernel, false, false);
    if (biased)
        z = tdi_bias_add(n->graph, z, parameter(n, &n->bias, (td_shape){1, {4 * UNITS}}));
    n->z = tdi_reshape(n->graph, z, &(td_shape){4, {TDI_BATCH, STEPS, 4, UNITS}});
    tdi_lstm_inputs in = {.z = n->z, .recurrent = parameter(n, &n->recurrent, (td_shape){2, {UNITS, 4 * UNITS}})};
    tdi_lstm_attrs attrs = {TD_TANH, TD_SIGMOID, .gates = true};
    n->reserve = tdi_lstm(n->graph, &in, &attrs);
    n->output = tdi_lstm_output(n->graph, n->reserve, &in, &attrs);
    assert_true(tdi_push(&n->graph->outputs, n->output));
}

static void fuse(net *n)
{
    assert_int_equal(tdi_fuse(n->graph, NULL), TD_OK);
    assert_int_equal(tdi_graph_verify(n->graph, &n->graph->error), TD_OK);
}

static void few_features_go_into_the_steps(void **state)
{
    (void)state;
    for (int biased = 0; biased < 2; biased++) {
        net n;
        net_init(&n, FEW, biased);
        fuse(&n);
        assert_ptr_equal(n.reserve->in[TDI_LSTM_Z], n.x);
        assert_ptr_equal(n.reserve->in[TDI_LSTM_W]->variable, &n.kernel);
        assert_true(biased ? n.reserve->in[TDI_LSTM_B]->variable == &n.bias : !n.reserve->in[TDI_LSTM_B]);
        assert_int_equal(n.output->n_in, 1);
        tdi_graph_free(n.graph);
    }
}

static void many_features_do_not(void **state)
{
    (void)state;
    net n;
    net_init(&n, FEW + 1, true);
    fuse(&n);
    assert_ptr_equal(n.reserve->in[TDI_LSTM_Z], n.z);
    tdi_graph_free(n.graph);
}

static void what_others_read_does_not(void **state)
{
    (void)state;
    net n;
    net_init(&n, FEW, true);
    assert_true(tdi_push(&n.graph->outputs, n.z));
    fuse(&n);
    assert_ptr_equal(n.reserve->in[TDI_LSTM_Z], n.z);
    tdi_graph_free(n.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_features_go_into_the_steps),
        cmocka_unit_test(many_features_do_not),
        cmocka_unit_test(what_others_read_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
