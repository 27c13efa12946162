/* No step of a model may be left to an op's plain C reference, but those named below: whatever its layers, activations,
 * losses, metrics and optimizer, in float32 and in bfloat16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <tandem/tandem.h>

enum { SIDE = 8, CHANNELS = 4, CLASSES = 10, BATCH = 32 };

/* Ops whose reference has no loop over a batch's values that vectors would speed up. */
static const struct {
    const char *op, *because;
} exceptions[] = {
    {"all_gather", "the parts have written their inputs to their places"},
    {"batch_norm_merge", "a few numbers for each channel"},
    {"batch_norm_grad_merge", "a few numbers for each channel"},
    {"batch_norm_moving", "a few numbers for each channel"},
    {"clip_factor", "a number for each weight"},
    {"count_valid", "a count, which the compiler makes a vector loop"},
    {"count_pairs", "each value goes to a place of its own"},
    {"bucket_sums", "each value goes to a place of its own"},
    {"lstm_keep", "two copies"},
};

static const struct {
    const char *name;
    td_precision precision;
} precisions[] = {{"float32", TD_PRECISION_FLOAT32}, {"bfloat16", TD_PRECISION_BFLOAT16}};

static bool is_exception(const char *op)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(op, exceptions[i].op) == 0)
            return true;
    return false;
}

static void check_mode(td_model *model, td_mode mode, const char *what)
{
    size_t size, index;
    char *text;
    json_t *step;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_explain(model, out, .batch_size = BATCH, .mode = mode, .json = TD_YES);
    fclose(out);
    json_t *root = json_loads(text, 0, NULL);
    if (!root)
        fail_msg("%s: not explained", what);
    json_array_foreach(json_object_get(root, "steps"), index, step)
    {
        const char *op = json_string_value(json_object_get(step, "op"));
        bool reference = strcmp(json_string_value(json_object_get(step, "kernel")), "reference") == 0;
        if (reference && !is_exception(op))
            fail_msg("%s: %s of %s runs by its reference", what, op, json_string_value(json_object_get(step, "layer")));
    }
    json_decref(root);
    free(text);
}

/* What differs from model to model; the rest has defaults. */
typedef struct recipe {
    td_tensor *(*network)(td_tensor *in, const struct recipe *r);
    const char *name;
    td_activation activation;
    td_optimizer optimizer;
    td_loss loss;
    td_optional ignore_class;
    const td_metric *metrics;
    td_strategy strategy;
} recipe;

static void check(const recipe *r)
{
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        char what[160];
        td_context *context = td_context_create(NULL);
        td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, CHANNELS), .batch_size = BATCH);
        td_model *model = td_model_create(in, r->network(in, r), .seed = 1);
        td_compile(model, .optimizer = r->optimizer.kind ? r->optimizer : td_adam(.learning_rate = 1e-3f),
                   .loss = r->loss ? r->loss : TD_MEAN_SQUARED_ERROR, .ignore_class = r->ignore_class,
                   .metrics = r->metrics, .strategy = r->strategy, .precision = precisions[p].precision);
        snprintf(what, sizeof what, "%s, in %s", r->name, precisions[p].name);
        if (td_failed(context))
            fail_msg("%s: %s", what, td_error(context));
        check_mode(model, TD_MODE_TRAIN, what);
        check_mode(model, TD_MODE_EVALUATE, what);
        check_mode(model, TD_MODE_PREDICT, what);
        td_context_free(context);
    }
}

/* ---- activations ---- */

/* An activation at the end of a convolution, at the end of a product, and on its own. */
static td_tensor *activated(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_conv2d(in, 8, 3, .activation = r->activation);
    x = td_activation_layer(td_max_pooling2d(x), r->activation);
    x = td_dense(td_flatten(x), 32, .activation = r->activation);
    return td_dense(x, CLASSES, .activation = r->activation);
}

static td_tensor *remembered(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_reshape(in, TD_SHAPE(SIDE, SIDE * CHANNELS));
    x = td_lstm(x, 24, .activation = r->activation, .return_sequences = TD_YES);
    return td_dense(td_lstm(x, 16, .recurrent_activation = r->activation), CLASSES);
}

static void test_activations(void **state)
{
    (void)state;
    for (int a = TD_LINEAR; a < TD_ACTIVATION_COUNT; a++) {
        char name[32];
        snprintf(name, sizeof name, "activation number %d", a);
        check(&(recipe){.network = activated, .name = name, .activation = (td_activation)a});
        check(&(recipe){.network = remembered, .name = name, .activation = (td_activation)a});
    }
}

/* ---- losses and metrics ---- */

static td_tensor *classes(td_tensor *in, const recipe *r)
{
    return td_dense(td_flatten(in), CLASSES, .activation = r->activation);
}

static td_tensor *pixels(td_tensor *in, const recipe *r)
{
    return td_conv2d(in, CLASSES, 3, .padding = TD_SAME, .activation = r->activation);
}

/* Losses of logits, of probabilities made by softmax or sigmoid, and of other predictions. */
static void test_losses(void **state)
{
    (void)state;
    static const td_activation ends[] = {TD_LINEAR, TD_SOFTMAX, TD_SIGMOID, TD_RELU};
    for (int loss = TD_LOSS_NONE + 1; loss < TD_LOSS_COUNT; loss++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            char name[64];
            snprintf(name, sizeof name, "loss number %d of activation number %d", loss, (int)ends[i]);
            check(&(recipe){.network = classes, .name = name, .activation = ends[i], .loss = (td_loss)loss});
            check(&(recipe){.network = pixels, .name = name, .activation = ends[i], .loss = (td_loss)loss});
        }
    check(&(recipe){.network = pixels,
                    .name = "a class ignored",
                    .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                    .ignore_class = TD_SET(3)});
}

static void test_metrics(void **state)
{
    (void)state;
    check(&(recipe){.network = classes,
                    .name = "F1 score",
                    .activation = TD_SIGMOID,
                    .loss = TD_BINARY_CROSSENTROPY,
                    .metrics = TD_METRICS(td_metric_f1_score(.average = TD_MACRO))});
    static td_tensor *(*const networks[])(td_tensor * in, const recipe *r) = {classes, pixels};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        check(&(recipe){.network = networks[i],
                        .name = "metrics of class numbers",
                        .activation = TD_SOFTMAX,
                        .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY,
                        .metrics = TD_METRICS(TD_ACCURACY, TD_SPARSE_CATEGORICAL_ACCURACY,
                                              td_metric_sparse_top_k_categorical_accuracy(.k = 3),
                                              td_metric_mean_iou(.ignore_class = TD_SET(2)),
                                              td_metric_iou(.target_class_ids = TD_CLASSES(1, 4)))});
        check(&(recipe){.network = networks[i],
                        .name = "metrics of classes",
                        .activation = TD_SOFTMAX,
                        .loss = TD_CATEGORICAL_CROSSENTROPY,
                        .metrics =
                            TD_METRICS(TD_CATEGORICAL_ACCURACY, td_metric_top_k_categorical_accuracy(.k = 3),
                                       td_metric_precision(.name = "p"), td_metric_recall(.class_id = TD_SET(2)))});
        check(&(recipe){.network = networks[i],
                        .name = "metrics of decisions",
                        .activation = TD_SIGMOID,
                        .loss = TD_BINARY_CROSSENTROPY,
                        .metrics = TD_METRICS(TD_BINARY_ACCURACY, td_metric_auc(.curve = TD_PR),
                                              td_metric_auc(.name = "own", .thresholds = TD_THRESHOLDS(0.2f, 0.7f)),
                                              td_metric_binary_iou(.threshold = TD_SET(0.3f)))});
        check(&(recipe){.network = networks[i],
                        .name = "metrics of numbers",
                        .loss = TD_HUBER,
                        .metrics = TD_METRICS(td_metric_mean_squared_error(.name = NULL),
                                              td_metric_root_mean_squared_error(.name = NULL),
                                              td_metric_mean_absolute_error(.name = NULL))});
    }
}

/* ---- optimizers ---- */

static td_tensor *regularized(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_conv2d(in, 8, 3, .kernel_regularizer = {.l1 = 1e-4f, .l2 = 1e-4f});
    x = td_batch_normalization(x, .gamma_regularizer = {.l2 = 1e-4f});
    return td_dense(td_flatten(td_relu(x)), CLASSES, .activation = r->activation);
}

static void test_optimizers(void **state)
{
    (void)state;
    const td_optimizer optimizers[] = {
        td_sgd(.learning_rate = 0.1f),
        td_sgd(.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-4f),
        td_sgd(.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = TD_YES, .clipvalue = 1),
        td_adam(.learning_rate = 1e-3f, .amsgrad = TD_YES, .clipnorm = 1),
        td_adam(.learning_rate = 1e-3f, .weight_decay = 4e-3f, .global_clipnorm = 1),
        td_adam(.learning_rate = 1e-3f, .use_ema = TD_YES, .ema_overwrite_frequency = 2),
        td_adam(.learning_rate = 1e-3f, .gradient_accumulation_steps = 2, .loss_scale_factor = 8),
    };
    const td_strategy strategies[] = {{.devices = NULL}, {.devices = "cpu:0,cpu:1"}, {.shards = 4}};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
            char name[64];
            snprintf(name, sizeof name, "optimizer %zu, strategy %zu", i, s);
            check(
                &(recipe){.network = regularized, .name = name, .optimizer = optimizers[i], .strategy = strategies[s]});
        }
}

/* ---- layers ---- */

static td_tensor *windows(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_conv2d(td_zero_padding2d(in, 2), 8, 3, .strides = {2, 2}, .use_bias = TD_NO);
    x = td_relu(td_batch_normalization(x, .synchronized = TD_YES), .max_value = 6);
    td_tensor *branch = td_conv2d(x, 8, 3, .padding = TD_SAME, .dilation = {2, 2}, .groups = 2);
    x = td_relu(td_batch_normalization(td_add(TD_TENSORS(x, branch))));
    x = td_concatenate(TD_TENSORS(td_average_pooling2d(x, 2), td_max_pooling2d(x, 2)));
    td_tensor *large = td_up_sampling2d(td_up_sampling2d(x, 2), 2, .interpolation = TD_BILINEAR);
    x = td_dropout(td_zero_padding2d(large, 1), 0.3f);
    return td_dense(td_global_average_pooling2d(x), CLASSES, .activation = r->activation);
}

static td_tensor *sequences(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_normalization(td_reshape(in, TD_SHAPE(SIDE * 2, CHANNELS * 4)));
    x = td_lstm(x, 24, .return_sequences = TD_YES, .dropout = 0.2f, .recurrent_dropout = 0.2f);
    td_tensor *back = td_lstm(x, 16, .go_backwards = TD_YES, .return_state = TD_YES);
    td_tensor *kept = td_lstm(x, 16, .stateful = TD_YES);
    x = td_concatenate(TD_TENSORS(back, td_layer_output(back, 2), kept));
    return td_normalization(td_softmax(td_dense(x, CLASSES, .activation = r->activation)), .invert = TD_YES);
}

static td_tensor *looked_up(td_tensor *in, const recipe *r)
{
    td_tensor *x = td_embedding(td_relu(td_flatten(in)), 50, 12, .embeddings_regularizer = {.l2 = 1e-4f});
    return td_dense(td_flatten(x), CLASSES, .activation = r->activation);
}

static void test_layers(void **state)
{
    (void)state;
    const td_strategy strategies[] = {{.devices = NULL}, {.devices = "cpu:0,cpu:1"}};
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
        check(&(recipe){.network = windows, .name = "layers over windows", .strategy = strategies[s]});
        check(&(recipe){.network = looked_up, .name = "embedding", .strategy = strategies[s]});
    }
    check(&(recipe){.network = sequences, .name = "layers over time"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_activations), cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_metrics), cmocka_unit_test(test_optimizers),
                                       cmocka_unit_test(test_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
