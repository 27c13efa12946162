/* emission.c - which ops layers, losses and metrics emit where that depends on the mode, the shapes or the neighbours.
 */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/layer.h"
#include "layers/metrics.h"
#include "layers/optimizers.h"
#include "ops/ops.h"

typedef struct fixture {
    td_context *context;
    tdi_graph *graph;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){td_context_create(NULL), tdi_graph_create()};
    f.graph->scope = "test";
    f.graph->shards = 1;
    *state = &f;
    return f.context && f.graph ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tdi_graph_free(f->graph);
    td_context_free(f->context);
    return 0;
}

static tdi_node *input_of(fixture *f, td_shape sample, td_dtype dtype)
{
    td_shape shape = {.rank = sample.rank + 1, .dim = {TDI_BATCH}};
    for (int i = 0; i < sample.rank; i++)
        shape.dim[i + 1] = sample.dim[i];
    return tdi_input(f->graph, 0, &shape, dtype);
}

static tdi_node *emit(fixture *f, const td_tensor *tensor, tdi_node *x, bool training, bool merge)
{
    tdi_emit how = {f->graph, training, merge, 1};
    const tdi_layer *layer = tensor->site->layer;
    tdi_node *node = layer->type->emit(&how, layer, 1, &x);
    assert_string_equal(f->graph->error.message, "");
    assert_non_null(node);
    return node;
}

static int count_of(const fixture *f, const tdi_op *op)
{
    int count = 0;
    for (int i = 0; i < f->graph->nodes.count; i++)
        count += f->graph->nodes.at[i]->op == op;
    return count;
}

static void check_shape(const tdi_node *node, const td_tensor *tensor)
{
    assert_int_equal(node->shape.rank, tensor->shape.rank + 1);
    assert_int_equal(node->shape.dim[0], TDI_BATCH);
    for (int i = 0; i < tensor->shape.rank; i++)
        assert_int_equal(node->shape.dim[i + 1], tensor->shape.dim[i]);
}

/* What a layer says of its output is what its ops make. */
static void shapes_agree(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(9, 8, 6));
    td_tensor *made[] = {
        td_dense(x, 4, .activation = TD_RELU),
        td_dense(x, 4, .use_bias = TD_NO, .activation = TD_LOG_SOFTMAX),
        td_conv2d(x, 4, 3, .groups = 2, .padding = TD_SAME, .strides = TD_SIZE(2, 3)),
        td_conv2d(x, 4, 3, .dilation = TD_SIZE(2, 1), .activation = TD_SOFTMAX),
        td_max_pooling2d(x, 3, .padding = TD_SAME),
        td_average_pooling2d(x, .pool = TD_SIZE(2, 3), .strides = TD_SIZE(1, 2)),
        td_global_average_pooling2d(x),
        td_global_average_pooling2d(x, .keepdims = TD_YES),
        td_flatten(x),
        td_reshape(x, TD_SHAPE(2, -1, 3)),
        td_activation_layer(x, TD_GELU),
        td_dropout(x, 0.5f),
        td_zero_padding2d(x, 2),
        td_zero_padding2d(x, 0),
        td_zero_padding2d(x, 0, .sides = TD_SIDES(1, 0, 2, 3)),
        td_relu(x),
        td_relu(x, .max_value = 6),
        td_softmax(x, .axis = 3),
        td_batch_normalization(x),
        td_batch_normalization(x, .scale = TD_NO, .synchronized = TD_YES),
    };
    tdi_node *node = input_of(f, TD_SHAPE(9, 8, 6), TD_FLOAT32);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        for (int training = 0; training < 2; training++)
            check_shape(emit(f, made[i], node, training, false), made[i]);
}

static void lists(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(3, 4));
    td_tensor *add = td_add(TD_TENSORS(x, x, x)), *joined = td_concatenate(TD_TENSORS(x, x, x), .axis = 1);
    tdi_node *node = input_of(f, TD_SHAPE(3, 4), TD_FLOAT32), *in[] = {node, node, node};
    tdi_emit how = {f->graph, false, false, 1};
    check_shape(add->site->layer->type->emit(&how, add->site->layer, 3, in), add);
    check_shape(joined->site->layer->type->emit(&how, joined->site->layer, 3, in), joined);
    assert_int_equal(count_of(f, &tdi_op_binary), 2);
    assert_int_equal(count_of(f, &tdi_op_concat), 1);
}

static void dropout(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(4));
    td_tensor *a = td_dropout(x, 0.5f), *b = td_dropout(x, 0.5f), *none = td_dropout(x, 0);
    tdi_node *node = input_of(f, TD_SHAPE(4), TD_FLOAT32);
    assert_ptr_equal(emit(f, a, node, false, false), node);
    assert_ptr_equal(emit(f, none, node, true, false), node);
    const tdi_dropout_attrs *first = emit(f, a, node, true, false)->attrs,
                            *again = emit(f, a, node, true, false)->attrs;
    const tdi_dropout_attrs *other = emit(f, b, node, true, false)->attrs;
    assert_true(first->rate == 0.5f);
    assert_true(first->stream != again->stream && first->stream != other->stream && again->stream != other->stream);
    const tdi_dropout_attrs before = *first;
    tdi_graph_free(f->graph);
    f->graph = tdi_graph_create();
    node = input_of(f, TD_SHAPE(4), TD_FLOAT32);
    emit(f, b, node, true, false);
    first = emit(f, a, node, true, false)->attrs;
    assert_true(first->stream == before.stream); /* whatever else is in the graph */
}

static void batch_normalization(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(4));
    td_tensor *plain = td_batch_normalization(x), *frozen = td_batch_normalization(x, .trainable = TD_NO);
    td_tensor *synchronized = td_batch_normalization(x, .synchronized = TD_YES);
    tdi_node *node = input_of(f, TD_SHAPE(4), TD_FLOAT32);
    assert_ptr_equal(emit(f, plain, node, false, false)->op, &tdi_op_batch_norm_inference);
    assert_ptr_equal(emit(f, frozen, node, true, false)->op, &tdi_op_batch_norm_inference);
    assert_ptr_equal(emit(f, plain, node, true, false)->in[1]->op, &tdi_op_batch_norm_stats);
    assert_ptr_equal(emit(f, plain, node, true, true)->in[1]->op, &tdi_op_batch_norm_merge);
    assert_ptr_equal(emit(f, synchronized, node, true, false)->in[1]->op, &tdi_op_batch_norm_merge);
    assert_int_equal(count_of(f, &tdi_op_batch_norm_moving), 6);
    assert_int_equal(count_of(f, &tdi_op_all_gather), 3);
}

/* ---- losses and metrics ---- */

static void fused_losses_are_found(void **state)
{
    fixture *f = *state;
    tdi_node *x = input_of(f, TD_SHAPE(5), TD_FLOAT32), *y = input_of(f, TD_SHAPE(5), TD_FLOAT32);
    tdi_node *classes = input_of(f, (td_shape){0}, TD_INT32);
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL},
             categorical = {.kind = TDI_LOSS_CATEGORICAL, .label_smoothing = 0.1f};
    tdi_loss binary = {.kind = TDI_LOSS_BINARY};
    tdi_node *softmax = tdi_softmax(f->graph, x), *sigmoid = tdi_unary(f->graph, x, TD_SIGMOID);
    tdi_node *loss = tdi_loss_emit(f->graph, &sparse, softmax, classes);
    assert_ptr_equal(loss->op, &tdi_op_sparse_softmax_cross_entropy);
    assert_ptr_equal(loss->in[0], x);
    loss = tdi_loss_emit(f->graph, &categorical, softmax, y);
    assert_ptr_equal(loss->op, &tdi_op_softmax_cross_entropy);
    assert_ptr_equal(loss->in[0], x);
    loss = tdi_loss_emit(f->graph, &binary, sigmoid, y);
    assert_ptr_equal(loss->in[0]->op, &tdi_op_sigmoid_cross_entropy);
    assert_ptr_equal(loss->in[0]->in[0], x);
    assert_int_equal(count_of(f, &tdi_op_sigmoid_cross_entropy), 1);
    tdi_loss_emit(f->graph, &binary, softmax, y); /* not its own function: as probabilities */
    tdi_loss_emit(f->graph, &categorical, sigmoid, y);
    assert_int_equal(count_of(f, &tdi_op_sigmoid_cross_entropy), 1);
    assert_int_equal(count_of(f, &tdi_op_softmax_cross_entropy), 1);
    assert_string_equal(f->graph->error.message, "");
}

static const tdi_op *accuracy_op(fixture *f, td_metric_kind metric, tdi_loss_kind kind, td_shape prediction)
{
    tdi_loss loss = {.kind = kind};
    td_shape target = tdi_loss_target_shape(&loss, &prediction);
    tdi_node *x = input_of(f, prediction, TD_FLOAT32);
    tdi_node *y = input_of(f, target, tdi_loss_wants_classes(&loss) ? TD_INT32 : TD_FLOAT32);
    tdi_node *node = tdi_metric_emit(f->graph, &(td_metric){.kind = metric}, &loss, x, y);
    return node ? node->op : NULL;
}

static void accuracy_by_shapes(void **state)
{
    fixture *f = *state;
    td_shape one = TD_SHAPE(1), many = TD_SHAPE(5), pixels = TD_SHAPE(4, 3);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_SPARSE_CATEGORICAL, many),
                     &tdi_op_sparse_categorical_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_SPARSE_CATEGORICAL, pixels),
                     &tdi_op_sparse_categorical_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_SPARSE_CATEGORICAL, one), &tdi_op_binary_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_CATEGORICAL, many), &tdi_op_categorical_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_BINARY, many), &tdi_op_categorical_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_BINARY, one), &tdi_op_binary_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_BINARY_ACCURACY, TDI_LOSS_BINARY, many), &tdi_op_binary_accuracy);
    assert_ptr_equal(accuracy_op(f, TD_METRIC_ACCURACY, TDI_LOSS_MSE, one), &tdi_op_binary_accuracy);
    assert_string_equal(f->graph->error.message, "");
}

static void check_refused(fixture *f, tdi_node *node, const char *sentence)
{
    assert_null(node);
    if (!strstr(f->graph->error.message, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, f->graph->error.message);
    assert_int_equal(f->graph->error.status, TD_INVALID_ARGUMENT);
    f->graph->error = (tdi_error){0};
}

static void what_does_not_fit(void **state)
{
    fixture *f = *state;
    tdi_node *x = input_of(f, TD_SHAPE(5), TD_FLOAT32), *y = input_of(f, TD_SHAPE(4), TD_FLOAT32);
    tdi_node *n = input_of(f, (td_shape){0}, TD_FLOAT32), *classes = input_of(f, (td_shape){0}, TD_INT32);
    tdi_loss mse = {.kind = TDI_LOSS_MSE}, sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL};
    check_refused(f, tdi_loss_emit(f->graph, &mse, x, y),
                  "mean_squared_error: for the prediction [batch, 5] the target must be [batch, 5] and is [batch, 4]");
    check_refused(f, tdi_loss_emit(f->graph, &mse, n, n), "the prediction [batch] has no axis but the batch");
    check_refused(f, tdi_metric_emit(f->graph, &TD_CATEGORICAL_ACCURACY, &sparse, x, classes),
                  "categorical_accuracy does not go with SparseCategoricalCrossentropy");
    check_refused(f, tdi_metric_emit(f->graph, &TD_SPARSE_CATEGORICAL_ACCURACY, &mse, x, x), "use \"accuracy\"");
    check_refused(f, tdi_metric_emit(f->graph, &TD_BINARY_ACCURACY, &sparse, x, classes),
                  "binary_accuracy does not go");
    check_refused(f, tdi_metric_emit(f->graph, &(td_metric){.kind = TD_METRIC_PRECISION}, &sparse, x, classes),
                  "precision does not go with SparseCategoricalCrossentropy");
    td_metric iou = {.kind = TD_METRIC_MEAN_IOU, .num_classes = 5, .sparse_y_true = TD_YES, .sparse_y_pred = TD_YES};
    check_refused(f, tdi_metric_emit(f->graph, &iou, &sparse, x, classes),
                  "mean_io_u: a sample has 5 classes as predicted, but 1 as they are");
    iou.sparse_y_true = TD_NO;
    check_refused(f, tdi_metric_emit(f->graph, &iou, &sparse, x, classes), "the targets are class numbers");
    assert_null(tdi_loss_emit(f->graph, &mse, NULL, y));
}

/* Numbers that Keras must be told follow from the shapes when they are not given. */
static void metrics_are_resolved(void **state)
{
    (void)state;
    td_shape scores = TD_SHAPE(6, 5), mask = TD_SHAPE(6, 1);
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL}, one_hot = {.kind = TDI_LOSS_CATEGORICAL};
    td_metric iou = td_metric_mean_iou();
    assert_int_equal(tdi_metric_resolve(&iou, &sparse, &scores, NULL), TD_OK);
    assert_true(iou.num_classes == 5 && iou.sparse_y_pred == TD_NO && iou.sparse_y_true == TD_YES);
    assert_int_equal(tdi_metric_accumulators(&iou), 13);
    iou = td_metric_mean_iou();
    assert_int_equal(tdi_metric_resolve(&iou, &one_hot, &scores, NULL), TD_OK);
    assert_int_equal(iou.sparse_y_true, TD_NO);
    iou = td_metric_mean_iou(.num_classes = 3, .sparse_y_pred = TD_YES);
    assert_int_equal(tdi_metric_resolve(&iou, &one_hot, &mask, NULL), TD_OK);
    assert_true(iou.num_classes == 3 && iou.sparse_y_true == TD_YES);
}

static void check_unresolved(td_metric metric, const char *sentence)
{
    tdi_error error = {0};
    td_shape scores = TD_SHAPE(5);
    tdi_loss one_hot = {.kind = TDI_LOSS_CATEGORICAL};
    assert_int_equal(tdi_metric_resolve(&metric, &one_hot, &scores, &error), TD_INVALID_ARGUMENT);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.message);
}

static void metrics_that_cannot_be(void **state)
{
    (void)state;
    check_unresolved(td_metric_top_k_categorical_accuracy(.k = -1), "top_k_categorical_accuracy: k is -1");
    check_unresolved(td_metric_mean_iou(.num_classes = 5000), "num_classes is 5000");
    check_unresolved(td_metric_iou(.target_class_ids = TD_CLASSES(1, 5)), "io_u: target_class_ids: 5 is none of 5");
    check_unresolved(td_metric_binary_iou(.target_class_ids = TD_CLASSES(2)), "2 is none of 2 classes");
    check_unresolved(td_metric_recall(.class_id = TD_SET(5), .name = "fives"), "fives: class_id is 5");
    check_unresolved(td_metric_mean_iou(.ignore_class = TD_SET(0.5f)), "ignore_class is 0.5");
    check_unresolved(td_metric_precision(.threshold = TD_SET(NAN)), "precision: the threshold");
    check_unresolved(td_metric_recall(.thresholds = TD_THRESHOLDS(0.5f, 1.5f)),
                     "recall: thresholds: 1.5 is not from 0 to 1");
    check_unresolved(td_metric_recall(.thresholds = TD_THRESHOLDS(NAN)), "thresholds: nan is not");
    check_unresolved((td_metric){.kind = TD_METRIC_RECALL, .thresholds = (const float[]){TD_THRESHOLDS_END}},
                     "none is listed");
    check_unresolved(td_metric_auc(.num_thresholds = 1), "auc: num_thresholds is 1");
    check_unresolved(td_metric_auc(.num_thresholds = INT_MAX), "2147483647 thresholds of 1 labels are more than");
    check_unresolved(td_metric_auc(.num_labels = 5), "num_labels goes with multi_label alone");
    check_unresolved(td_metric_auc(.multi_label = TD_YES, .num_labels = 3),
                     "num_labels is 3, but the output has 5 numbers");
    check_unresolved(td_metric_f1_score(.threshold = TD_SET(0)), "f1_score: the threshold is 0 and must be above 0");
    check_unresolved((td_metric){.kind = TD_METRIC_ACCURACY, .name = "share"}, "can only be called so");
}

/* n[actual][predicted], row by row; positives and all, bucket by bucket. */
static void results_of_sums(void **state)
{
    (void)state;
    const double counts[] = {6, 2, 1, 3}, buckets[] = {1, 7, 3, 5}, sums[] = {8, 2}, nothing[6] = {0};
    const double three[] = {1, 4, 0, 3, 4, 5};
    td_metric precision = td_metric_precision(), recall = td_metric_recall(), iou = td_metric_binary_iou();
    td_metric one = td_metric_binary_iou(.target_class_ids = TD_CLASSES(1)), root = td_metric_root_mean_squared_error();
    td_metric list = td_metric_precision(.thresholds = TD_THRESHOLDS(0.8f, 0.2f));
    assert_true(fabs(tdi_metric_result(&precision, buckets, 0) - 0.6) < 1e-12);
    assert_true(fabs(tdi_metric_result(&recall, buckets, 0) - 0.75) < 1e-12);
    assert_int_equal(tdi_metric_results(&list), 2);
    assert_true(fabs(tdi_metric_result(&list, three, 0) - 0.8) < 1e-12);
    assert_true(fabs(tdi_metric_result(&list, three, 1) - 0.5) < 1e-12);
    assert_true(fabs(tdi_metric_result(&iou, counts, 0) - (6 / 9.0 + 3 / 6.0) / 2) < 1e-6);
    assert_true(fabs(tdi_metric_result(&one, counts, 0) - 0.5) < 1e-6);
    assert_true(fabs(tdi_metric_result(&root, sums, 0) - 2) < 1e-12);
    assert_true(tdi_metric_result(&precision, nothing, 0) == 0 && tdi_metric_result(&iou, nothing, 0) == 0);
}

/* ---- optimizers ---- */

/* The last node of a variable's update. */
static tdi_node *update(fixture *f, const td_optimizer *optimizer, tdi_variable *variable, tdi_node *gradient)
{
    assert_int_equal(tdi_optimizer_emit(f->graph, optimizer, 1, &variable, &gradient), TD_OK);
    return f->graph->nodes.at[f->graph->nodes.count - 1];
}

static void updates(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(4)), *y = td_dense(x, 3);
    tdi_variable *kernel = &y->site->layer->weights.at[0]->variable;
    tdi_node *gradient = tdi_fill(f->graph, 1, &kernel->shape);
    td_optimizer sgd = td_sgd(.momentum = 0.5f, .nesterov = TD_YES, .clipvalue = 2), adam = td_adam(.amsgrad = TD_YES);
    tdi_fields_resolve(tdi_config_type_of(tdi_optimizer_types, sgd.kind)->fields, &sgd);
    tdi_fields_resolve(tdi_config_type_of(tdi_optimizer_types, adam.kind)->fields, &adam);
    tdi_node *node = update(f, &sgd, kernel, gradient);
    const tdi_optimizer_attrs *attrs = node->attrs;
    assert_true(node->op == &tdi_op_sgd && node->update_phase && node->effect && node->n_in == 3);
    assert_true(attrs->momentum == 0.5f && attrs->nesterov && attrs->clipvalue == 2);
    node = update(f, &adam, kernel, gradient);
    attrs = node->attrs;
    assert_true(node->op == &tdi_op_adam && node->update_phase && node->effect && node->n_in == 5);
    assert_true(attrs->beta_1 == 0.9f && attrs->beta_2 == 0.999f && attrs->epsilon == 1e-7f && attrs->amsgrad);
    for (int i = 0; i < 3; i++)
        assert_true(node->in[2 + i]->home == TDI_HOME_SLOT && node->in[2 + i]->slot == i);
}

/* Accumulated, clipped by all norms together, used, averaged; a weight without a gradient is its own average. */
static void what_surrounds_an_update(void **state)
{
    fixture *f = *state;
    td_tensor *x = td_input(f->context, TD_SHAPE(4)), *y = td_dense(x, 3);
    tdi_variable *variables[3] = {&y->site->layer->weights.at[0]->variable, &y->site->layer->weights.at[1]->variable};
    td_tensor *other = td_dense(x, 2);
    variables[2] = &other->site->layer->weights.at[0]->variable;
    tdi_node *gradients[3] = {tdi_fill(f->graph, 1, &variables[0]->shape), tdi_fill(f->graph, 1, &variables[1]->shape)};
    td_optimizer adam = td_adam(.use_ema = TD_YES, .global_clipnorm = 1, .gradient_accumulation_steps = 4,
                                .ema_overwrite_frequency = 7);
    tdi_fields_resolve(tdi_config_type_of(tdi_optimizer_types, adam.kind)->fields, &adam);
    assert_int_equal(tdi_optimizer_emit(f->graph, &adam, 3, variables, gradients), TD_OK);
    const tdi_node *last = f->graph->nodes.at[f->graph->nodes.count - 1], *average = NULL, *node;
    assert_true(last->op == &tdi_op_moving_average && last->in[0]->op == &tdi_op_parameter);
    for (int i = 0; i < f->graph->nodes.count; i++)
        if (f->graph->nodes.at[i]->op == &tdi_op_moving_average && f->graph->nodes.at[i]->variable == variables[0])
            average = f->graph->nodes.at[i];
    assert_non_null(average);
    assert_int_equal(((const tdi_moving_average_attrs *)average->attrs)->overwrite_frequency, 7);
    assert_true(average->effect && average->update_phase && average->in[1]->slot == 2);
    node = average->in[0];
    assert_ptr_equal(node->op, &tdi_op_adam);
    node = node->in[1];
    assert_true(node->op == &tdi_op_clip_by_norm && node->home == TDI_HOME_GRADIENT);
    assert_true(node->in[1]->op == &tdi_op_clip_factor && node->in[1]->n_in == 2);
    node = node->in[0];
    assert_true(node->op == &tdi_op_accumulate_gradient && node->in[1]->slot == 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(shapes_agree),
        TEST(lists),
        TEST(dropout),
        TEST(batch_normalization),
        TEST(fused_losses_are_found),
        TEST(accuracy_by_shapes),
        TEST(what_does_not_fit),
        TEST(metrics_are_resolved),
        TEST(metrics_that_cannot_be),
        TEST(results_of_sums),
        TEST(updates),
        TEST(what_surrounds_an_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
