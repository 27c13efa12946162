/* When a loss is made with the gradient of its logits: values stay, and what is made of the losses comes after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "support/evaluate.h"

enum { ROWS = 6, CLASSES = 5, ELEMENTS = ROWS * CLASSES };

typedef enum loss_kind { CLASS_NUMBERS, BUT_A_CLASS, DISTRIBUTIONS, SIGMOID, KINDS } loss_kind;

typedef struct net {
    tdi_graph *graph;
    tdi_node *logits, *loss, *weighted, *gradient;
    float x[ELEMENTS], weights[ELEMENTS], targets[ELEMENTS];
    int32_t classes[ROWS];
} net;

static void fill_data(net *n)
{
    for (int i = 0; i < ELEMENTS; i++) {
        n->x[i] = (float)(i * 7 % 11) - 5.0f;
        n->targets[i] = (float)(i % 3) / 4.0f;
        n->weights[i] = 0.5f + (float)(i % 4);
    }
    for (int i = 0; i < ROWS; i++)
        n->classes[i] = i % CLASSES;
}

static tdi_node *loss_of(net *n, loss_kind kind)
{
    td_shape rows = {1, {TDI_BATCH}}, all = {2, {TDI_BATCH, CLASSES}};
    if (kind == CLASS_NUMBERS || kind == BUT_A_CLASS)
        return tdi_sparse_softmax_cross_entropy(n->graph, n->logits, tdi_input(n->graph, 1, &rows, TD_INT32),
                                                (tdi_ignore_attrs){kind == BUT_A_CLASS, 2});
    tdi_node *targets = tdi_input(n->graph, 2, &all, TD_FLOAT32);
    return kind == DISTRIBUTIONS ? tdi_softmax_cross_entropy(n->graph, n->logits, targets)
                                 : tdi_sigmoid_cross_entropy(n->graph, n->logits, targets);
}

/* `squared`: the gradient is made of the losses themselves. */
static void net_init(net *n, loss_kind kind, bool squared)
{
    *n = (net){.graph = tdi_graph_create()};
    assert_non_null(n->graph);
    fill_data(n);
    n->logits = tdi_input(n->graph, 0, &(td_shape){2, {TDI_BATCH, CLASSES}}, TD_FLOAT32);
    n->loss = loss_of(n, kind);
    n->weighted = tdi_binary(n->graph, TDI_MULTIPLY, n->loss, tdi_input(n->graph, 3, &n->loss->shape, TD_FLOAT32));
    tdi_node *total = squared ? tdi_unary(n->graph, n->loss, TDI_UNARY_SQUARE) : n->weighted;
    tdi_node *mean = tdi_batch_mean(n->graph, total);
    assert_int_equal(tdi_gradients(n->graph, mean, 1, &n->logits, &n->gradient), TD_OK);
    tdi_accumulate(n->graph, n->weighted, NULL, 0);
}

static evaluation *evaluate(const net *n)
{
    const void *inputs[] = {n->x, n->classes, n->targets, n->weights};
    int64_t rows = ROWS;
    evaluation_spec spec = {.graph = n->graph, .shards = 1, .rows = &rows, .inputs = inputs, .metrics = 1};
    evaluation *e = evaluation_create(&spec);
    evaluation_run(e);
    return e;
}

static void fuse(const net *n)
{
    assert_int_equal(tdi_fuse(n->graph, NULL), TD_OK);
    assert_int_equal(tdi_graph_verify(n->graph, &n->graph->error), TD_OK);
}

static void losses_come_with_the_gradient(void **state)
{
    (void)state;
    for (loss_kind k = CLASS_NUMBERS; k < KINDS; k++) {
        net n;
        net_init(&n, k, false);
        evaluation *before = evaluate(&n);
        size_t losses = (k == SIGMOID ? ELEMENTS : ROWS) * sizeof(float);
        float loss[ELEMENTS], gradient[ELEMENTS];
        memcpy(loss, evaluation_value(before, n.loss, 0), losses);
        memcpy(gradient, evaluation_value(before, n.gradient, 0), sizeof gradient);
        fuse(&n);
        assert_ptr_equal(n.loss->op, &tdi_op_extra_output_of);
        assert_ptr_equal(n.loss->in[1], n.gradient);
        assert_true(n.weighted->id > n.gradient->id);
        evaluation *after = evaluate(&n);
        assert_memory_equal(evaluation_value(after, n.loss, 0), loss, losses);
        assert_memory_equal(evaluation_value(after, n.gradient, 0), gradient, sizeof gradient);
        assert_memory_equal(evaluation_metric(after, 0, 0), evaluation_metric(before, 0, 0), 2 * sizeof(double));
        evaluation_free(before);
        evaluation_free(after);
        tdi_graph_free(n.graph);
    }
}

static void not_where_the_gradient_is_made_of_them(void **state)
{
    (void)state;
    for (loss_kind k = CLASS_NUMBERS; k < KINDS; k++) {
        net n;
        net_init(&n, k, true);
        const tdi_op *op = n.loss->op;
        fuse(&n);
        assert_ptr_equal(n.loss->op, op);
        assert_int_equal(n.gradient->n_in, 3);
        tdi_graph_free(n.graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_come_with_the_gradient),
        cmocka_unit_test(not_where_the_gradient_is_made_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
