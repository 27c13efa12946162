/* keras_refused.c - what a .keras file holds and Tandem cannot do, and what is damaged or hostile: one sentence each,
 * naming the file, the layer and the property. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/whole.h"
#include "formats/edit.h"
#include "formats/keras.h"

typedef struct heard {
    int warnings;
    char last[1200];
} heard;

static void listen(void *user, td_log_level level, const char *line)
{
    heard *to = user;
    to->warnings += level == TD_LOG_WARNING;
    snprintf(to->last, sizeof to->last, "%s", line);
}

/* Loads, and gives the sentence ("" on success). */
static td_status load(const char *path, tdi_error *error, heard *log, bool *compiled)
{
    td_model *model = NULL;
    *error = (tdi_error){0};
    *log = (heard){0};
    td_context *context = td_context_create(&(td_context_options){.log = listen, .log_user = log});
    assert_non_null(context);
    td_status status = tdi_keras_read(context, path, &model, error);
    *compiled = model && model->compiled.is_set;
    assert_true((status == TD_OK) == (model != NULL));
    assert_false(td_failed(context));
    td_context_free(context);
    return status;
}

typedef struct edit_case {
    const char *file, *path, *text;
    td_status status;
    const char *says[3];
} edit_case;

/* ---- layers ---- */

static const edit_case layer_cases[] = {
    {"mlp_adam.keras",
     "config.layers.1.config.data_format",
     "\"channels_first\"",
     TD_UNSUPPORTED,
     {"\"flatten\"", "data_format", "channels_first"}},
    {"mlp_adam.keras",
     "config.layers.2.config.kernel_constraint",
     "{\"class_name\": \"MaxNorm\", \"config\": {}}",
     TD_UNSUPPORTED,
     {"\"dense\"", "kernel_constraint", "MaxNorm"}},
    {"mlp_adam.keras",
     "config.layers.2.config.dtype",
     "{\"module\": \"keras\", \"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"mixed_float16\"}}",
     TD_UNSUPPORTED,
     {"\"dense\"", "dtype", "mixed_float16"}},
    {"mlp_adam.keras",
     "config.layers.2.config.dtype",
     "\"float16\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "dtype", "float16"}},
    {"mlp_adam.keras",
     "config.layers.0.config.dtype",
     "\"uint8\"",
     TD_UNSUPPORTED,
     {"\"input_layer\"", "dtype", "uint8"}},
    {"mlp_adam.keras",
     "config.layers.0.config.dtype",
     "\"int32\"",
     TD_UNSUPPORTED,
     {"\"flatten\"", "called on an input of int32", "float32"}},
    {"mlp_adam.keras", "config.layers.2.class_name", "\"Lambda\"", TD_UNSUPPORTED, {"\"dense\"", "Lambda", "Python"}},
    {"mlp_adam.keras",
     "config.layers.2.class_name",
     "\"EinsumDense\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "EinsumDense", "it knows InputLayer, Dense"}},
    {"mlp_adam.keras",
     "config.layers.2",
     "{\"module\": \"keras.src.ops.numpy\", \"class_name\": \"NotEqual\", \"config\": {\"name\": \"ne\"}}",
     TD_UNSUPPORTED,
     {"\"ne\" (NotEqual)", "operation of keras.ops", "Masking"}},
    {"mlp_adam.keras",
     "config.layers.2.module",
     "\"mine.layers\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "mine.layers", "Keras's own"}},
    {"mlp_adam.keras",
     "config.layers.2.class_name",
     "\"Sequential\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "model", "inside"}},
    {"mlp_adam.keras", "config.layers.2.config.units", "0", TD_INVALID_ARGUMENT, {"\"dense\"", "units", "0"}},
    {"mlp_adam.keras", "config.layers.2.config.units", "-3", TD_INVALID_ARGUMENT, {"\"dense\"", "units", "-3"}},
    {"mlp_adam.keras", "config.layers.2.config.units", "9", TD_BAD_FILE, {"\"dense\"", "[12, 8]", "[12, 9]"}},
    {"mlp_adam.keras", "config.layers.2.config.units", "\"many\"", TD_BAD_FILE, {"\"dense\"", "units", "many"}},
    {"mlp_adam.keras",
     "config.layers.2.config.units",
     "100000000",
     TD_BAD_FILE,
     {"weights", "model.weights.h5", "hold"}},
    {"mlp_adam.keras",
     "config.layers.2.config.units",
     "4611686018427387904",
     TD_INVALID_ARGUMENT,
     {"\"dense\"", "output", "memory"}},
    {"mlp_adam.keras",
     "config.layers.2.config.activation",
     "\"relu9\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "activation", "relu9"}},
    {"mlp_adam.keras", "config.layers.2.config.activation", "[1]", TD_UNSUPPORTED, {"\"dense\"", "activation", "[1]"}},
    {"mlp_adam.keras", "config.layers.2.config.use_bias", "1", TD_BAD_FILE, {"\"dense\"", "use_bias", "true"}},
    {"mlp_adam.keras", "config.layers.2.config.use_bias", "false", TD_BAD_FILE, {"\"dense\"", "2 weights", "1"}},
    {"mlp_adam.keras",
     "config.layers.2.config.kernel_initializer.class_name",
     "\"Fancy\"",
     TD_UNSUPPORTED,
     {"\"dense\"", "kernel_initializer", "Fancy"}},
    {"mlp_adam.keras",
     "config.layers.4.config.kernel_regularizer.class_name",
     "\"OrthogonalRegularizer\"",
     TD_UNSUPPORTED,
     {"\"dense_1\"", "kernel_regularizer", "OrthogonalRegularizer"}},
    {"mlp_adam.keras", "config.layers.2.config.lora_rank", "4", TD_UNSUPPORTED, {"\"dense\"", "lora_rank", "4"}},
    {"mlp_adam.keras", "config.layers.3.config.rate", "1.5", TD_INVALID_ARGUMENT, {"\"dropout\"", "rate", "1.5"}},
    {"mlp_adam.keras",
     "config.layers.3.config.noise_shape",
     "[1, 8]",
     TD_UNSUPPORTED,
     {"\"dropout\"", "noise_shape", "[1,8]"}},
    {"mlp_adam.keras",
     "config.layers.0.config.batch_shape",
     "[null, null, 3]",
     TD_UNSUPPORTED,
     {"\"input_layer\"", "extent open (null)", "give keras.Input a number"}},
    {"mlp_adam.keras",
     "config.layers.0.config.batch_shape",
     "[null, -4, 3]",
     TD_INVALID_ARGUMENT,
     {"\"input_layer\"", "-4", ""}},
    {"mlp_adam.keras", "config.layers.0.config.batch_shape", "[]", TD_BAD_FILE, {"\"input_layer\"", "shape", "[]"}},
    {"mlp_adam.keras",
     "config.layers.0.config.batch_shape",
     "[null,1,1,1,1,1,1,1,1,1]",
     TD_BAD_FILE,
     {"input_layer", "shape", ""}},
    {"mlp_adam.keras", "config.layers.0.config.sparse", "true", TD_UNSUPPORTED, {"\"input_layer\"", "sparse", "true"}},
    {"mlp_adam.keras",
     "config.layers.4.config.name",
     "\"dense\"",
     TD_INVALID_ARGUMENT,
     {"two layers", "\"dense\"", ""}},
    {"mlp_adam.keras", "config.layers.2.config.name", NULL, TD_BAD_FILE, {"layer", "name", ""}},
    {"mlp_adam.keras", "config.layers.2", "7", TD_BAD_FILE, {"layer", "name", ""}},
    {"mlp_adam.keras", "config.layers", "[]", TD_BAD_FILE, {"layers", "", ""}},
    {"mlp_adam.keras", "config.layers", "{}", TD_BAD_FILE, {"layers", "", ""}},
    {"mlp_adam.keras", "config", "null", TD_BAD_FILE, {"model", "", ""}},
    {"mlp_adam.keras", "class_name", "\"MyModel\"", TD_UNSUPPORTED, {"MyModel", "", ""}},
    {"mlp_adam.keras", "class_name", NULL, TD_BAD_FILE, {"model", "", ""}},
    {"cnn_sgd.keras",
     "config.layers.1.config.padding",
     "\"causal\"",
     TD_UNSUPPORTED,
     {"\"conv2d\"", "padding", "causal"}},
    {"cnn_sgd.keras",
     "config.layers.1.config.kernel_size",
     "[3, 3, 3]",
     TD_BAD_FILE,
     {"\"conv2d\"", "kernel_size", "[3,3,3]"}},
    {"cnn_sgd.keras", "config.layers.1.config.strides", "0", TD_BAD_FILE, {"\"conv2d\"", "strides", "0"}},
    {"cnn_sgd.keras", "config.layers.4.config.axis", "1", TD_UNSUPPORTED, {"\"batch_normalization\"", "axis", "1"}},
    {"cnn_sgd.keras",
     "config.layers.4.config.renorm",
     "true",
     TD_UNSUPPORTED,
     {"\"batch_normalization\"", "renorm", "true"}},
    {"cnn_sgd.keras", "config.layers.1.inbound_nodes.0.args", "[]", TD_UNSUPPORTED, {"\"conv2d\"", "called", "[]"}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args",
     "[1, [2, 3]]",
     TD_UNSUPPORTED,
     {"\"conv2d\"", "2 arguments", "[1,[2,3]]"}},
    {"cnn_sgd.keras", "config.layers.1.inbound_nodes.0.args.0", "5", TD_UNSUPPORTED, {"\"conv2d\"", "called", "5"}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.kwargs",
     "{\"scale\": 2}",
     TD_UNSUPPORTED,
     {"\"conv2d\"", "scale", "2"}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args.0.config.keras_history",
     "[\"nobody\", 0, 0]",
     TD_BAD_FILE,
     {"nobody", "output", ""}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args.0.config.keras_history",
     "[\"conv2d_1\", 0, 0]",
     TD_BAD_FILE,
     {"\"conv2d", "loop", ""}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args.0.config.keras_history",
     "[\"conv2d\", 0, 0]",
     TD_BAD_FILE,
     {"\"conv2d\"", "loop", ""}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args.0.config.keras_history.1",
     "7",
     TD_BAD_FILE,
     {"output", "7", ""}},
    {"cnn_sgd.keras",
     "config.layers.1.inbound_nodes.0.args.0.config.keras_history.2",
     "1",
     TD_BAD_FILE,
     {"output", "1", ""}},
    {"cnn_sgd.keras", "config.output_layers", "[]", TD_UNSUPPORTED, {"output_layers", "", ""}},
    {"cnn_sgd.keras",
     "config.output_layers",
     "{\"y\": [\"dense_2\", 0, 0]}",
     TD_UNSUPPORTED,
     {"output_layers", "", ""}},
    {"cnn_sgd.keras", "config.input_layers", "[\"conv2d\", 0, 0]", TD_INVALID_ARGUMENT, {"conv2d", "input", ""}},
    {"cnn_sgd.keras", "config.layers.1.config.name", "\"other\"", TD_BAD_FILE, {"conv2d", "output", ""}},
};

static void check_case(const edit_case *at)
{
    tdi_error error;
    heard log;
    bool compiled;
    td_status status = load(edit_copy(at->file, at->path, at->text), &error, &log, &compiled);
    if (status != at->status)
        fail_msg("%s = %s gave %s: %s", at->path, at->text, td_status_name(status), error.message);
    assert_non_null(strstr(error.message, "edited.keras"));
    for (int i = 0; i < 3; i++)
        if (!strstr(error.message, at->says[i]))
            fail_msg("%s = %s: \"%s\" does not say %s", at->path, at->text, error.message, at->says[i]);
}

static void test_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layer_cases / sizeof *layer_cases; i++)
        check_case(&layer_cases[i]);
}

/* ---- what is no reason to refuse ---- */

static const edit_case harmless[] = {
    {"mlp_adam.keras",
     "config.layers.2.config.activation",
     "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"relu\", \"registered_name\": "
     "\"function\"}",
     TD_OK,
     {0}},
    {"mlp_adam.keras", "config.layers.2.config.activation", "null", TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.2.config.kernel_initializer", "\"he_normal\"", TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.2.config.kernel_regularizer", "\"l2\"", TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.2.config.lora_rank", "null", TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.2.config.dtype", NULL, TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.2.registered_name", "\"Dense\"", TD_OK, {0}},
    {"mlp_adam.keras", "config.layers.0", NULL, TD_OK, {0}}, /* the input is in build_input_shape */
    {"mlp_adam.keras", "config.layers.0.config.batch_shape.0", "32", TD_OK, {0}},
    {"mlp_adam.keras",
     "config.layers.3.config.seed",
     "{\"class_name\": \"SeedGenerator\", \"config\": {\"seed\": 3}}",
     TD_OK,
     {0}},
    {"mlp_adam.keras", "module", "\"keras.src.models.sequential\"", TD_OK, {0}},
    {"cnn_sgd.keras", "config.input_layers", "[[\"input_layer_1\", 0, 0]]", TD_OK, {0}},
    {"cnn_sgd.keras", "class_name", "\"Model\"", TD_OK, {0}},
    {"cnn_sgd.keras",
     "compile_config.loss",
     "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"categorical_crossentropy\"}",
     TD_OK,
     {0}},
    {"cnn_sgd.keras", "compile_config.loss", "[\"mse\"]", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.loss", "{\"dense_2\": \"mse\"}", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.metrics", "[[\"accuracy\", \"categorical_accuracy\"]]", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.metrics", "[\"accuracy\", \"categorical_accuracy\"]", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.metrics", "{\"dense_2\": [\"accuracy\"]}", TD_OK, {0}},
    {"cnn_sgd.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"CategoricalAccuracy\", \"config\": {\"name\": \"c\", \"dtype\": \"float32\"}}]",
     TD_OK,
     {0}},
    {"cnn_sgd.keras", "compile_config.metrics", "null", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.loss_weights", "[0.5]", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.auto_scale_loss", "true", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.jit_compile", "true", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer", "null", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.jit_compile", "true", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.decay", "0.0", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.ema_momentum", "0.9", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.clipnorm", "1.0", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.global_clipnorm", "2", TD_OK, {0}},
    {"cnn_sgd.keras", "compile_config.optimizer.config.loss_scale_factor", "128", TD_OK, {0}},
};

static void test_harmless(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        tdi_error error;
        heard log;
        bool compiled;
        const edit_case *at = &harmless[i];
        if (load(edit_copy(at->file, at->path, at->text), &error, &log, &compiled) != TD_OK)
            fail_msg("%s = %s: %s", at->path, at->text, error.message);
        if (!compiled || log.warnings)
            fail_msg("%s = %s: %s", at->path, at->text, log.last);
    }
}

/* ---- the compile configuration: the model still predicts ---- */

static const edit_case compile_cases[] = {
    {"mlp_adam.keras", "compile_config.optimizer.class_name", "\"Muon\"", TD_OK, {"optimizer", "Muon", ""}},
    {"mlp_adam.keras", "compile_config.optimizer", "\"rmsprop\"", TD_OK, {"optimizer", "rmsprop", ""}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.learning_rate",
     "{\"class_name\": \"ExponentialDecay\", \"config\": {}}",
     TD_OK,
     {"optimizer", "learning_rate ExponentialDecay", "decay_steps is 0"}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.learning_rate",
     "{\"class_name\": \"Mine\", \"config\": {}}",
     TD_OK,
     {"optimizer", "learning_rate Mine", "Keras's own schedules"}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.learning_rate",
     "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [5, 9], \"values\": [1, 2]}}",
     TD_OK,
     {"optimizer", "2 boundaries and 2 values", ""}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.learning_rate",
     "{\"class_name\": \"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [\"5\"], \"values\": [1, 2]}}",
     TD_OK,
     {"optimizer", "boundary 0 is not a number", ""}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.learning_rate",
     "{\"class_name\": \"CosineDecay\", \"config\": {\"decay_steps\": 5, \"wave\": 7}}",
     TD_OK,
     {"optimizer", "CosineDecay", "\"wave\" is 7"}},
    {"mlp_adam.keras", "compile_config.optimizer.config.learning_rate", "-1", TD_OK, {"learning_rate", "-1", ""}},
    {"mlp_adam.keras", "compile_config.optimizer.config.clipnorm", "-1.0", TD_OK, {"optimizer", "clipnorm is -1", ""}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.global_clipnorm",
     "\"1\"",
     TD_OK,
     {"Adam", "global_clipnorm", ""}},
    {"mlp_adam.keras", "compile_config.optimizer.config.use_ema", "1", TD_OK, {"Adam", "use_ema", "true or false"}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.ema_overwrite_frequency",
     "2.5",
     TD_OK,
     {"Adam", "ema_overwrite_frequency", "an integer not below 0"}},
    {"mlp_adam.keras",
     "compile_config.optimizer.config.gradient_accumulation_steps",
     "1",
     TD_OK,
     {"optimizer", "gradient_accumulation_steps is 1", ""}},
    {"mlp_adam.keras", "compile_config.steps_per_execution", "0", TD_OK, {"steps_per_execution", "is 0", "at least 1"}},
    {"mlp_adam.keras", "compile_config.loss", "\"poisson\"", TD_OK, {"loss", "poisson", ""}},
    {"mlp_adam.keras",
     "compile_config.loss",
     "{\"class_name\": \"Huber\", \"config\": {\"delta\": 0}}",
     TD_OK,
     {"delta is 0", "", ""}},
    {"mlp_adam.keras",
     "compile_config.loss",
     "{\"class_name\": \"MeanSquaredError\", \"config\": {\"delta\": 1}}",
     TD_OK,
     {"delta belongs to Huber", "MeanSquaredError", ""}},
    {"mlp_adam.keras",
     "compile_config.loss.config.reduction",
     "\"sum\"",
     TD_OK,
     {"SparseCategorical", "reduction", "sum"}},
    {"mlp_adam.keras",
     "compile_config.loss.config.ignore_class",
     "1.5",
     TD_OK,
     {"SparseCategorical", "ignore_class", "1.5"}},
    {"mlp_adam.keras",
     "compile_config.loss",
     "{\"class_name\": \"MeanSquaredError\", \"config\": {\"ignore_class\": 1}}",
     TD_OK,
     {"MeanSquaredError", "ignore_class", ""}},
    {"mlp_adam.keras", "compile_config.loss.config.focus", "2", TD_OK, {"SparseCategorical", "focus", "2"}},
    {"mlp_adam.keras", "compile_config.loss.config.label_smoothing", "7", TD_OK, {"label_smoothing", "", ""}},
    {"mlp_adam.keras", "compile_config.metrics", "[\"hinge\"]", TD_OK, {"metric", "hinge", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"Hinge\", \"config\": {}}]",
     TD_OK,
     {"metric", "Hinge", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 0}}]",
     TD_OK,
     {"MeanIoU", "num_classes", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 3, \"axis\": 1}}]",
     TD_OK,
     {"MeanIoU", "axis", "1"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 3, \"ignore_class\": \"x\"}}]",
     TD_OK,
     {"MeanIoU", "ignore_class", "class number"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 3, \"dtype\": \"float16\"}}]",
     TD_OK,
     {"MeanIoU", "float16", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"IoU\", \"config\": {\"num_classes\": 3, \"target_class_ids\": []}}]",
     TD_OK,
     {"IoU", "target_class_ids", "at least one"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"IoU\", \"config\": {\"num_classes\": 3, \"target_class_ids\": [0, 3]}}]",
     TD_OK,
     {"io_u", "3 is none of 3", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"IoU\", \"config\": {\"num_classes\": 3, \"target_class_ids\": [-1, 0.5]}}]",
     TD_OK,
     {"IoU", "target_class_ids", "class numbers"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"Precision\", \"config\": {\"thresholds\": {\"0\": 0.1}}}]",
     TD_OK,
     {"Precision", "thresholds", "a list of them"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"Precision\", \"config\": {\"thresholds\": [0.1, 1.2]}}]",
     TD_OK,
     {"Precision", "thresholds", "numbers from 0 to 1"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"AUC\", \"config\": {\"curve\": \"circle\"}}]",
     TD_OK,
     {"AUC", "curve", "ROC|PR|PRGAIN"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"AUC\", \"config\": {\"label_weights\": [1, 2]}}]",
     TD_OK,
     {"auc", "label_weights", "multi_label"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"AUC\", \"config\": {\"multi_label\": true, \"label_weights\": [1, 2]}}]",
     TD_OK,
     {"auc", "label_weights", "2 numbers, but the output has"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"AUC\", \"config\": {\"multi_label\": true, \"label_weights\": [1, -2]}}]",
     TD_OK,
     {"AUC", "label_weights", "not below 0"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"F1Score\", \"config\": {\"average\": \"median\"}}]",
     TD_OK,
     {"F1Score", "average", "median"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"Recall\", \"config\": {\"top_k\": 3}}]",
     TD_OK,
     {"Recall", "top_k", "3"}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"SparseTopKCategoricalAccuracy\", \"config\": {\"k\": -2}}]",
     TD_OK,
     {"k is -2", "", ""}},
    {"mlp_adam.keras",
     "compile_config.metrics",
     "[{\"class_name\": \"BinaryAccuracy\", \"config\": {\"threshold\": \"half\"}}]",
     TD_OK,
     {"BinaryAccuracy", "threshold", "half"}},
    {"mlp_adam.keras", "compile_config.weighted_metrics", "[\"beauty\"]", TD_OK, {"beauty", "", ""}},
    {"mlp_adam.keras", "compile_config.loss_weights", "[\"heavy\"]", TD_OK, {"loss_weights", "heavy", ""}},
    {"mlp_adam.keras", "compile_config.metrics", "{\"other\": \"mae\"}", TD_OK, {"metrics", "\"other\"", "no output"}},
    {"mlp_adam.keras", "compile_config.loss", "{\"other\": \"mse\"}", TD_OK, {"loss", "\"other\"", "no output"}},
    {"mlp_adam.keras", "compile_config.loss_scale", "2", TD_OK, {"compile configuration", "loss_scale", "is 2"}},
    {"mlp_adam.keras", "compile_config.optimizer.config.decay", "0.1", TD_OK, {"optimizer", "decay", "0.1"}},
    {"mlp_adam.keras", "compile_config", "[1]", TD_OK, {"compile", "", ""}},
};

/* Only a loss that is not known, or a configuration that is none, leaves nothing to train by. */
static bool needs_a_loss(const char *path)
{
    return strcmp(path, "compile_config") == 0 || strcmp(path, "compile_config.loss") == 0 ||
           strncmp(path, "compile_config.loss.", 20) == 0;
}

static void test_compile_configurations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof compile_cases / sizeof *compile_cases; i++) {
        tdi_error error;
        heard log;
        bool compiled;
        const edit_case *at = &compile_cases[i];
        if (load(edit_copy(at->file, at->path, at->text), &error, &log, &compiled) != TD_OK)
            fail_msg("%s = %s: %s", at->path, at->text, error.message);
        if (compiled == needs_a_loss(at->path))
            fail_msg("%s = %s: %s", at->path, at->text, compiled ? "compiled" : "not compiled");
        assert_int_equal(log.warnings, 1);
        assert_non_null(strstr(log.last, "edited.keras"));
        for (int word = 0; word < 3; word++)
            if (!strstr(log.last, at->says[word]))
                fail_msg("%s = %s: \"%s\" does not say %s", at->path, at->text, log.last, at->says[word]);
    }
}

/* A state of another size than the optimizer's, as when layers were frozen after compiling: Keras starts afresh too. */
static void test_foreign_optimizer_state(void **state)
{
    (void)state;
    tdi_error error;
    heard log;
    bool compiled;
    assert_int_equal(
        load(edit_copy("mlp_adam.keras", "config.layers.2.config.trainable", "false"), &error, &log, &compiled), TD_OK);
    assert_true(compiled);
    assert_int_equal(log.warnings, 1);
    assert_non_null(strstr(log.last, "it is left out"));
}

/* ---- damage ---- */

static void assert_refused(const char *path, td_status wanted, const char *says)
{
    tdi_error error;
    heard log;
    bool compiled;
    td_status status = load(path, &error, &log, &compiled);
    if (status != wanted || !strstr(error.message, says))
        fail_msg("%s: %s", td_status_name(status), error.message);
}

/* ---- calls with states ---- */

#define TENSOR_OF(layer)                                                                                               \
    "{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"" layer "\", 0, 0]}}"
#define STATES "[" TENSOR_OF("h") ", " TENSOR_OF("c") "]"

/* The file of LSTM(3)(x, initial_state=[h, c]). */
static const char *save_recurrent(void)
{
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(5, 4), .name = "x");
    td_tensor *h = td_input(context, TD_SHAPE(3), .name = "h"), *c = td_input(context, TD_SHAPE(3), .name = "c");
    td_tensor *y = td_lstm(x, 3, .initial_state = TD_TENSORS(h, c), .name = "lstm");
    td_model *model = td_model_create(NULL, y, .inputs = TD_TENSORS(x, h, c));
    assert_non_null(model);
    assert_int_equal(td_save(model, scratch_path("recurrent.keras")), TD_OK);
    td_context_free(context);
    return scratch_path("recurrent.keras");
}

static void check_call(const char *args, const char *kwargs, td_status wanted, const char *says)
{
    char call[1024];
    snprintf(call, sizeof call, "{\"args\": %s, \"kwargs\": %s}", args, kwargs);
    assert_refused(edit_copy(save_recurrent(), "config.layers.3.inbound_nodes.0", call), wanted, says);
}

static void test_states(void **state)
{
    (void)state;
    check_call("[" TENSOR_OF("x") "]", "{\"initial_state\": " STATES "}", TD_OK, "");
    check_call("[" TENSOR_OF("x") ", " STATES "]", "{}", TD_OK, "");
    check_call("[" TENSOR_OF("x") ", " STATES "]", "{\"initial_state\": null}", TD_OK, "");
    check_call("[" TENSOR_OF("x") ", null]", "{\"initial_state\": " STATES "}", TD_OK, "");
    check_call("[" TENSOR_OF("x") ", " STATES "]", "{\"initial_state\": 5}", TD_BAD_FILE, "initial_state twice");
    check_call("[" TENSOR_OF("x") ", 5]", "{}", TD_UNSUPPORTED, "initial_state = 5, which is not a list");
    check_call("[" TENSOR_OF("x") ", [7, 8]]", "{}", TD_UNSUPPORTED, "called on 7, which is not a tensor");
    check_call("[" TENSOR_OF("x") ", [" TENSOR_OF("h") "]]", "{}", TD_INVALID_ARGUMENT, "it takes two");
    check_call("[" TENSOR_OF("x") ", " STATES ", null]", "{}", TD_UNSUPPORTED, "3 arguments");
    check_call("null", "{}", TD_UNSUPPORTED, "0 arguments, null");
    check_call("[]", "{}", TD_UNSUPPORTED, "0 arguments, []");
}

static void test_missing_parts(void **state)
{
    (void)state;
    edit_parts parts = edit_open("plain.keras");
    char *config = json_dumps(parts.config, 0);
    assert_refused(edit_save("a.keras", NULL, parts.weights, parts.weights_size), TD_NOT_FOUND, "config.json");
    assert_refused(edit_save("a.keras", config, NULL, 0), TD_NOT_FOUND, "model.weights.h5");
    assert_refused(edit_save("a.keras", config, "no HDF5", 7), TD_BAD_FILE, "model.weights.h5");
    assert_refused(edit_save("a.keras", "{\"class_name\": ", parts.weights, parts.weights_size), TD_BAD_FILE, "JSON");
    assert_refused(edit_save("a.keras", "", parts.weights, parts.weights_size), TD_BAD_FILE, "JSON");
    assert_refused(edit_save("a.keras", "[]", parts.weights, parts.weights_size), TD_BAD_FILE, "model");
    assert_refused(scratch_path("absent.keras"), TD_NOT_FOUND, "absent.keras");
    assert_refused("/", TD_BAD_FILE, "folder");
    free(config);
    edit_release(&parts);
}

/* Archives of others, each by its members. */
static void test_foreign_archives(void **state)
{
    (void)state;
    static const struct {
        const char *member, *says;
        td_status status;
    } cases[] = {{"archive/data.pkl", "checkpoint of PyTorch", TD_UNSUPPORTED},
                 {"model/config.json", "not the folder", TD_BAD_FILE},
                 {"model/saved_model.pb", "SavedModel", TD_UNSUPPORTED},
                 {"download/model.keras", "unpack that", TD_BAD_FILE},
                 {"x.npy", "NumPy arrays", TD_BAD_FILE},
                 {"a.txt", "its first member is \"a.txt\"", TD_NOT_FOUND}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdi_zip_entry entry = {.name = cases[i].member, .bytes = "x", .size = 1};
        assert_int_equal(tdi_zip_write(scratch_path("foreign.keras"), 1, &entry, NULL), TD_OK);
        assert_refused(scratch_path("foreign.keras"), cases[i].status, cases[i].says);
    }
}

/* Arguments of a call in Keras 2's form are not passed over. */
static void test_arguments_of_older_calls(void **state)
{
    (void)state;
    assert_refused(edit_copy("cnn_older.keras", "config.layers.1.inbound_nodes.0.0.3", "{\"mask\": 1}"), TD_UNSUPPORTED,
                   "arguments {\"mask\":1}");
}

static void test_deep_json(void **state)
{
    (void)state;
    static char deep[200001];
    memset(deep, '[', sizeof deep - 1);
    assert_refused(edit_save("a.keras", deep, "x", 1), TD_BAD_FILE, "JSON");
}

static void test_a_chain_of_thousands(void **state)
{
    (void)state;
    json_t *layers = json_array(), *layer;
    edit_parts parts = edit_open("plain.keras");
    for (int i = 0; i < 5000; i++) {
        layer = json_pack("{s:s, s:{s:o}}", "class_name", "Flatten", "config", "name", json_sprintf("flatten_%d", i));
        json_array_append_new(layers, layer);
    }
    json_object_set_new(json_object_get(parts.config, "config"), "layers", layers);
    char *config = json_dumps(parts.config, 0);
    assert_refused(edit_save("a.keras", config, parts.weights, parts.weights_size), TD_UNSUPPORTED, "5000");
    free(config);
    edit_release(&parts);
}

static void test_truncated_archives(void **state)
{
    (void)state;
    size_t size;
    edit_copy("plain.keras", "config.name", "\"x\"");
    char *bytes = scratch_read("edited.keras", &size);
    for (size_t length = 0; length < size; length += 1 + length / 20) {
        scratch_write("short.keras", bytes, length);
        assert_refused(scratch_path("short.keras"), TD_BAD_FILE, "short.keras");
    }
    free(bytes);
}

/* Any changed byte of an entry's content is found by its checksum. */
static void test_changed_bytes(void **state)
{
    (void)state;
    size_t size;
    edit_copy("plain.keras", "config.name", "\"x\"");
    char *bytes = scratch_read("edited.keras", &size);
    char *weights = memmem(bytes, size, "\x89HDF", 4);
    assert_non_null(weights);
    for (int offset = 0; offset < 4000; offset += 97) {
        weights[offset] ^= 16;
        scratch_write("changed.keras", bytes, size);
        assert_refused(scratch_path("changed.keras"), TD_BAD_FILE, "CRC");
        weights[offset] ^= 16;
    }
    free(bytes);
}

/* Weights of other shapes, and none, in a sound file. */
static void test_other_weights(void **state)
{
    (void)state;
    static float values[10000];
    tdi_hdf5_writer *file;
    void *bytes;
    size_t size;
    edit_parts parts = edit_open("plain.keras");
    char *config = json_dumps(parts.config, 0);
    assert_int_equal(tdi_hdf5_create("other", &file, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write(file, "layers/dense/vars/0", &TD_SHAPE(4, 3), values, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write(file, "layers/dense/vars/1", &TD_SHAPE(4), values, NULL), TD_OK);
    bytes = hdf5_whole(file, &size);
    assert_refused(edit_save("a.keras", config, bytes, size), TD_BAD_FILE, "layer \"dense");
    free(bytes);
    assert_int_equal(tdi_hdf5_write(file, "layers/dense/vars/2", &TD_SHAPE(4), values, NULL), TD_OK);
    bytes = hdf5_whole(file, &size);
    assert_refused(edit_save("a.keras", config, bytes, size), TD_BAD_FILE, "3 weights");
    tdi_hdf5_close(file);
    free(bytes);
    free(config);
    edit_release(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_harmless),
        cmocka_unit_test(test_compile_configurations),
        cmocka_unit_test(test_foreign_optimizer_state),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_missing_parts),
        cmocka_unit_test(test_foreign_archives),
        cmocka_unit_test(test_arguments_of_older_calls),
        cmocka_unit_test(test_deep_json),
        cmocka_unit_test(test_a_chain_of_thousands),
        cmocka_unit_test(test_truncated_archives),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_other_weights),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
