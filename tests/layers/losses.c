/* losses.c - the numbers of losses and metrics, and losses' gradients, against Keras's for the same predictions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "layers/metrics.h"
#include "ops/ops.h"
#include "passes/passes.h"
#include "support/evaluate.h"

enum { ROWS = 6, CLASSES = 5 };

/* A graph whose input 0 is the prediction and whose input 1 is the target. */
typedef struct fixture {
    tdi_graph *graph;
    tdi_node *prediction, *target;
} fixture;

static fixture make(bool classes)
{
    td_shape wide = {2, {TDI_BATCH, CLASSES}}, narrow = {1, {TDI_BATCH}};
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->scope = "test";
    graph->shards = 1;
    return (fixture){graph, tdi_input(graph, 0, &wide, TD_FLOAT32),
                     classes ? tdi_input(graph, 1, &narrow, TD_INT32) : tdi_input(graph, 1, &wide, TD_FLOAT32)};
}

/* max |seen - expected| is at most 1e-6 of max |expected|. */
static void check_values(const float *seen, const float *expected, int count)
{
    float largest = 0, worst = 0;
    for (int i = 0; i < count; i++) {
        assert_true(isfinite(seen[i]));
        largest = fmaxf(largest, fabsf(expected[i]));
        worst = fmaxf(worst, fabsf(seen[i] - expected[i]));
    }
    if (!(worst <= 1e-6f * largest))
        fail_msg("off by %g of %g", (double)worst, (double)largest);
}

/* Evaluates the graph, compares `node` and, unless it is NULL, `other`, of the prediction's size; releases the graph.
 */
static void check(fixture *f, const tdi_node *node, const float *x, const void *y, const float *expected, int count,
                  const tdi_node *other, const float *other_expected)
{
    assert_string_equal(f->graph->error.message, "");
    assert_non_null(node);
    evaluation_spec spec = {
        .graph = f->graph, .shards = 1, .rows = (const int64_t[]){ROWS}, .inputs = (const void *const[]){x, y}};
    evaluation *evaluation = evaluation_create(&spec);
    evaluation_run(evaluation);
    check_values(evaluation_value(evaluation, node, 0), expected, count);
    if (other)
        check_values(evaluation_value(evaluation, other, 0), other_expected, ROWS * CLASSES);
    evaluation_free(evaluation);
    tdi_graph_free(f->graph);
}

/* The loss per row, and where `gradient` is given that of the rows' sum. */
static void check_loss(tdi_loss loss, const float *x, const void *y, const float *expected, const float *gradient)
{
    fixture f = make(tdi_loss_wants_classes(&loss));
    tdi_node *node = tdi_loss_emit(f.graph, &loss, f.prediction, f.target), *dx = NULL;
    if (gradient) {
        tdi_node *sum = tdi_reduce(f.graph, TDI_SUM, node, 1, false);
        assert_int_equal(tdi_gradients(f.graph, sum, 1, &f.prediction, &dx), TD_OK);
        assert_non_null(dx);
    }
    check(&f, node, x, y, expected, ROWS, dx, gradient);
}

static void sparse_categorical(void **state)
{
    (void)state;
    tdi_loss logits = {.kind = TDI_LOSS_SPARSE_CATEGORICAL, .from_logits = true},
             probabilities = {.kind = TDI_LOSS_SPARSE_CATEGORICAL};
    check_loss(logits, golden_logits, golden_classes, golden_sparse_logits, golden_sparse_logits_gradient);
    check_loss(probabilities, golden_probabilities, golden_classes, golden_sparse_probabilities,
               golden_sparse_probabilities_gradient);
    check_loss(probabilities, golden_softmax, golden_classes, golden_sparse_softmax, NULL);
}

/* The mean loss, and its gradient. */
static void check_ignoring(bool from_logits, const float *x, const float *expected, const float *gradient)
{
    tdi_loss loss = {.kind = TDI_LOSS_SPARSE_CATEGORICAL, .from_logits = from_logits};
    assert_int_equal(tdi_loss_ignore(&loss, (float)golden_classes[0], NULL), TD_OK);
    fixture f = make(true);
    tdi_node *mean = tdi_batch_mean(f.graph, tdi_loss_emit(f.graph, &loss, f.prediction, f.target)), *dx;
    assert_int_equal(tdi_gradients(f.graph, mean, 1, &f.prediction, &dx), TD_OK);
    check(&f, mean, x, golden_classes, expected, 1, dx, gradient);
}

static void a_class_is_ignored(void **state)
{
    (void)state;
    check_ignoring(true, golden_logits, golden_ignoring_logits, golden_ignoring_logits_gradient);
    check_ignoring(false, golden_probabilities, golden_ignoring_probabilities, golden_ignoring_probabilities_gradient);
}

static void what_cannot_be_ignored_is_refused(void **state)
{
    (void)state;
    tdi_error error = {0};
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL}, squared = {.kind = TDI_LOSS_MSE};
    assert_int_equal(tdi_loss_ignore(&sparse, 1.5f, &error), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "1.5 is not a class number"));
    error = (tdi_error){0};
    assert_int_equal(tdi_loss_ignore(&squared, 1, &error), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "the loss is MeanSquaredError"));
    assert_false(sparse.ignore.any || squared.ignore.any);
}

static void categorical(void **state)
{
    (void)state;
    tdi_loss logits = {.kind = TDI_LOSS_CATEGORICAL, .from_logits = true},
             probabilities = {.kind = TDI_LOSS_CATEGORICAL};
    check_loss(logits, golden_logits, golden_targets, golden_categorical_logits, golden_categorical_logits_gradient);
    check_loss(probabilities, golden_probabilities, golden_targets, golden_categorical_probabilities,
               golden_categorical_probabilities_gradient);
    check_loss(probabilities, golden_softmax, golden_targets, golden_categorical_softmax, NULL);
    logits.label_smoothing = probabilities.label_smoothing = 0.1f;
    check_loss(logits, golden_logits, golden_targets, golden_categorical_logits_smooth, NULL);
    check_loss(probabilities, golden_probabilities, golden_targets, golden_categorical_probabilities_smooth, NULL);
}

static void binary(void **state)
{
    (void)state;
    tdi_loss logits = {.kind = TDI_LOSS_BINARY, .from_logits = true}, probabilities = {.kind = TDI_LOSS_BINARY};
    check_loss(logits, golden_logits, golden_bits, golden_binary_logits, golden_binary_logits_gradient);
    check_loss(probabilities, golden_probabilities, golden_bits, golden_binary_probabilities,
               golden_binary_probabilities_gradient);
    check_loss(probabilities, golden_sigmoid, golden_bits, golden_binary_sigmoid, NULL);
    logits.label_smoothing = probabilities.label_smoothing = 0.1f;
    check_loss(logits, golden_logits, golden_bits, golden_binary_logits_smooth, NULL);
    check_loss(probabilities, golden_probabilities, golden_bits, golden_binary_probabilities_smooth, NULL);
}

static void errors(void **state)
{
    (void)state;
    check_loss((tdi_loss){.kind = TDI_LOSS_MSE}, golden_logits, golden_targets, golden_mse, golden_mse_gradient);
    check_loss((tdi_loss){.kind = TDI_LOSS_MAE}, golden_logits, golden_targets, golden_mae, golden_mae_gradient);
    check_loss((tdi_loss){.kind = TDI_LOSS_HUBER, .delta = 1.5f}, golden_logits, golden_targets, golden_huber,
               golden_huber_gradient);
}

/* Behind a softmax or a sigmoid the fused loss gives what Keras makes of the probabilities. */
static void behind_activations(void **state)
{
    (void)state;
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL}, soft = {.kind = TDI_LOSS_CATEGORICAL};
    tdi_loss bits = {.kind = TDI_LOSS_BINARY};
    fixture f = make(true);
    check(&f, tdi_loss_emit(f.graph, &sparse, tdi_softmax(f.graph, f.prediction), f.target), golden_mild,
          golden_classes, golden_sparse_softmax, ROWS, NULL, NULL);
    f = make(false);
    check(&f, tdi_loss_emit(f.graph, &soft, tdi_softmax(f.graph, f.prediction), f.target), golden_mild, golden_targets,
          golden_categorical_softmax, ROWS, NULL, NULL);
    f = make(false);
    check(&f, tdi_loss_emit(f.graph, &bits, tdi_unary(f.graph, f.prediction, TD_SIGMOID), f.target), golden_mild,
          golden_bits, golden_binary_sigmoid, ROWS, NULL, NULL);
}

static void check_metric(td_metric metric, tdi_loss loss, const float *x, const void *y, const float *expected)
{
    fixture f = make(tdi_loss_wants_classes(&loss));
    check(&f, tdi_metric_emit(f.graph, &metric, &loss, f.prediction, f.target), x, y, expected, ROWS, NULL, NULL);
}

static void accuracies(void **state)
{
    (void)state;
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL}, soft = {.kind = TDI_LOSS_CATEGORICAL};
    tdi_loss bits = {.kind = TDI_LOSS_BINARY};
    check_metric(TD_ACCURACY, sparse, golden_logits, golden_classes, golden_sparse_accuracy);
    check_metric(TD_ACCURACY, soft, golden_logits, golden_targets, golden_categorical_accuracy);
    check_metric(TD_BINARY_ACCURACY, bits, golden_sigmoid, golden_bits, golden_binary_accuracy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_categorical),
        cmocka_unit_test(a_class_is_ignored),
        cmocka_unit_test(what_cannot_be_ignored_is_refused),
        cmocka_unit_test(categorical),
        cmocka_unit_test(binary),
        cmocka_unit_test(errors),
        cmocka_unit_test(behind_activations),
        cmocka_unit_test(accuracies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
