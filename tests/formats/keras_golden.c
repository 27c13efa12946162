/* keras_golden.c - files made by real Keras: read, predicted from as Keras does, written, read again. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <tandem/tandem.h>

#include "files/npy_file.h"
#include "formats/edit.h"
#include "model/model.h"

static int warnings;

static void count_warnings(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)line;
    warnings += level == TD_LOG_WARNING;
}

static td_context *context;

static int set_up(void **state)
{
    (void)state;
    warnings = 0;
    context = td_context_create(&(td_context_options){.log = count_warnings});
    return context ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    td_context_free(context);
    return 0;
}

static td_model *load(const char *path)
{
    td_model *model = td_load(context, path);
    if (!model)
        fail_msg("%s", td_error(context));
    return model;
}

/* ---- what is in the files ---- */

static void test_mlp(void **state)
{
    (void)state;
    td_model *model = load(golden("mlp_adam.keras"));
    assert_true(model->architecture->sequential);
    assert_int_equal(td_weight_count(model), 4);
    assert_int_equal(model->architecture->layers.count, 5);
    assert_true(model->compiled.is_set);
    assert_int_equal(model->state->optimizer.kind, TD_OPTIMIZER_ADAM);
    assert_int_equal(model->state->iteration, 4);
    assert_true(model->state->optimizer.learning_rate == 2e-3f);
    assert_int_equal(model->compiled.outputs[0].loss.kind, TDI_LOSS_SPARSE_CATEGORICAL);
    assert_true(model->compiled.outputs[0].loss.from_logits);
    assert_int_equal(model->compiled.outputs[0].n_metrics, 1);
    assert_int_equal(model->compiled.outputs[0].metrics[0].kind, TD_METRIC_ACCURACY);
    const tdi_variable *kernel = &model->architecture->weights.at[2]->variable;
    assert_string_equal(kernel->layer, "dense_1");
    assert_true(kernel->l2 == 1e-3f);
    assert_true(tdi_model_slot(model, kernel, 1)[0] > 0);
    assert_int_equal(warnings, 0);
}

static void check_cnn(td_model *model)
{
    assert_false(model->architecture->sequential);
    assert_int_equal(model->architecture->layers.count, 10);
    assert_int_equal(td_weight_count(model), 10);
    assert_int_equal(model->state->optimizer.kind, TD_OPTIMIZER_SGD);
    assert_int_equal(model->state->iteration, 3);
    assert_true(model->state->optimizer.momentum == 0.9f);
    assert_int_equal(model->compiled.outputs[0].loss.kind, TDI_LOSS_CATEGORICAL);
    assert_false(model->compiled.outputs[0].loss.from_logits);
    const tdi_variable *kernel = &model->architecture->weights.at[0]->variable;
    assert_true(tdi_model_slot(model, kernel, 0)[0] != 0);
    assert_int_equal(warnings, 0);
}

static void test_cnn(void **state)
{
    (void)state;
    check_cnn(load(golden("cnn_sgd.keras")));
}

static void test_older_configurations(void **state)
{
    (void)state;
    check_cnn(load(golden("cnn_older.keras")));
}

static void test_uncompiled(void **state)
{
    (void)state;
    td_model *model = load(golden("plain.keras"));
    assert_false(model->compiled.is_set);
    assert_int_equal(warnings, 0);
}

/* Averages first, then accumulators, then the update's own slots. */
static void test_averages(void **state)
{
    (void)state;
    td_model *model = load(golden("averages.keras"));
    const td_optimizer *optimizer = &model->state->optimizer;
    assert_true(optimizer->use_ema == TD_YES && optimizer->ema_momentum.value == 0.9f);
    assert_true(optimizer->global_clipnorm == 0.5f && optimizer->loss_scale_factor == 8);
    assert_int_equal(optimizer->ema_overwrite_frequency, 7);
    assert_int_equal(optimizer->gradient_accumulation_steps, 2);
    assert_int_equal(model->state->iteration, 5);
    assert_int_equal(warnings, 0);
    const tdi_variable *kernel = &model->architecture->weights.at[0]->variable;
    float weight = tdi_model_value(model, kernel)[0], velocity = tdi_model_slot(model, kernel, 0)[0];
    float average = tdi_model_slot(model, kernel, 1)[0], accumulator = tdi_model_slot(model, kernel, 2)[0];
    assert_true(fabsf(average - weight) < 0.1f && average != weight);
    assert_true(fabsf(velocity) < 0.05f && velocity != 0 && accumulator != 0);
    td_finalize_variable_values(model);
    assert_true(tdi_model_value(model, kernel)[0] == average);
}

/* ---- predictions ---- */

static float *read_array(const char *stem, const char *kind, int64_t *count)
{
    char name[64];
    tdi_npy npy;
    static char bytes[1 << 16];
    snprintf(name, sizeof name, "%s.%s.npy", stem, kind);
    FILE *file = fopen(golden(name), "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(tdi_npy_parse(bytes, size, name, &npy, NULL), TD_OK);
    assert_int_equal(npy.numbers.dtype, TD_FLOAT32);
    float *values = malloc(sizeof(float) * (size_t)npy.elements);
    assert_non_null(values);
    memcpy(values, bytes + npy.offset, sizeof(float) * (size_t)npy.elements);
    *count = npy.elements;
    return values;
}

static void check_predictions(const char *file, const char *stem)
{
    int64_t x_count, p_count, rows = 5;
    float *x = read_array(stem, "x", &x_count), *wanted = read_array(stem, "p", &p_count), largest = 0, error = 0;
    float *seen = calloc((size_t)p_count, sizeof *seen);
    td_model *model = load(golden(file));
    td_shape shape;
    assert_int_equal(td_input_shape(model, 0, &shape), TD_OK);
    if (td_predict(model, td_arrays(rows, x, shape), seen, (size_t)p_count) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int64_t i = 0; i < p_count; i++) {
        largest = fmaxf(largest, fabsf(wanted[i]));
        error = fmaxf(error, fabsf(wanted[i] - seen[i]));
    }
    if (!(error <= 1e-5f * largest))
        fail_msg("%s: predictions are off by %g", file, (double)(error / largest));
    free(x);
    free(wanted);
    free(seen);
}

static void test_predictions_are_kerass(void **state)
{
    (void)state;
    check_predictions("mlp_adam.keras", "mlp_adam");
    check_predictions("cnn_sgd.keras", "cnn_sgd");
    check_predictions("cnn_older.keras", "cnn_sgd");
    check_predictions("plain.keras", "plain");
    check_predictions("averages.keras", "averages");
    check_predictions("characters.keras", "characters");
    check_predictions("relu.keras", "relu");
}

/* ---- files of Keras 2 ---- */

static void test_keras_2(void **state)
{
    (void)state;
    check_predictions("keras_2_15.keras", "keras_2_15");
    check_predictions("keras_2_13.keras", "keras_2_13");
    assert_int_equal(warnings, 0);
    check_predictions("keras_2_12.h5", "keras_2_13"); /* the same model, in HDF5, whose optimizer's state is left out */
    assert_int_equal(warnings, 1);
}

/* Its optimizer's state lacks the learning rate. */
static void test_keras_2_goes_on(void **state)
{
    (void)state;
    td_model *model = load(golden("keras_2_15.keras"));
    assert_true(model->state->iteration > 0 && model->state->optimizer.learning_rate == 0.01f);
    assert_int_equal(model->compiled.outputs[0].n_metrics, 1);
    const tdi_variable *kernel = &model->architecture->weights.at[0]->variable;
    assert_true(tdi_model_slot(model, kernel, 1)[0] > 0);
}

static void test_keras_2_in_hdf5_is_compiled(void **state)
{
    (void)state;
    td_model *model = load(golden("keras_2_12.h5"));
    assert_true(model->compiled.is_set);
    assert_int_equal(model->state->optimizer.kind, TD_OPTIMIZER_ADAM);
    assert_true(model->state->optimizer.learning_rate == 0.01f);
    assert_int_equal(model->compiled.outputs[0].metrics[0].kind, TD_METRIC_SPARSE_CATEGORICAL_ACCURACY);
    assert_string_equal(model->compiled.outputs[0].metrics[0].name, "accuracy");
}

static void test_legacy_weights(void **state)
{
    (void)state;
    td_tensor *x = td_input(context, TD_SHAPE(5));
    td_model *model = td_model_create(x, td_dense(td_dense(x, 8), 1));
    if (td_load_weights(model, golden("keras_2_15.weights.h5")) != TD_OK)
        fail_msg("%s", td_error(context));
    const float *first = tdi_model_value(model, &model->architecture->weights.at[0]->variable);
    const float *bias = tdi_model_value(model, &model->architecture->weights.at[3]->variable);
    assert_true(first[0] == 0.3363329f && bias[0] == -0.042076323f);
    td_tensor *other = td_input(context, TD_SHAPE(5));
    td_model *smaller = td_model_create(other, td_dense(other, 8));
    assert_int_equal(td_load_weights(smaller, golden("keras_2_15.weights.h5")), TD_BAD_FILE);
    assert_non_null(strstr(td_error(context), "more layers"));
}

static const char *rename_activation(const char *metadata)
{
    edit_parts parts = edit_open("mlp_adam.keras");
    json_t *layers = json_object_get(json_object_get(parts.config, "config"), "layers");
    json_t *config = json_object_get(json_array_get(layers, 2), "config");
    json_object_set_new(config, "activation", json_string("hard_sigmoid"));
    char *text = json_dumps(parts.config, 0);
    tdi_zip_entry entries[] = {{.name = "metadata.json", .bytes = metadata, .size = strlen(metadata)},
                               {.name = "config.json", .bytes = text, .size = strlen(text)},
                               {.name = "model.weights.h5", .bytes = parts.weights, .size = parts.weights_size}};
    assert_int_equal(tdi_zip_write(scratch_path("activation.keras"), 3, entries, NULL), TD_OK);
    free(text);
    edit_release(&parts);
    return scratch_path("activation.keras");
}

/* A function that is another one since Keras 3 is not taken for it. */
static void test_hard_sigmoid_of_keras_2(void **state)
{
    (void)state;
    load(rename_activation("{\"keras_version\": \"3.0.0\"}"));
    assert_null(td_load(context, rename_activation("{\"keras_version\": \"2.15.0\"}")));
    assert_non_null(strstr(td_error(context), "\"dense\": its activation is the hard_sigmoid of Keras 2.15.0"));
    unlink(scratch_path("activation.keras"));
}

/* ---- parts of the compile configuration ---- */

static void test_partly_known(void **state)
{
    (void)state;
    td_model *model = load(golden("partly.keras"));
    int64_t x_count;
    float *x = read_array("partly", "x", &x_count), y[] = {0, 1, 0, 1, 0};
    td_logs logs;
    assert_int_equal(warnings, 2); /* the optimizer, and a metric */
    assert_int_equal(td_test_on_batch(model, 5, x, y, &logs), TD_OK);
    assert_true(fabs(logs.entry[0].value - 0.8439871668815613) < 1e-6);
    assert_true(fabs(logs.entry[1].value - 0.8) < 1e-6);
    assert_int_equal(td_train_on_batch(model, 5, x, y, NULL), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_compile(model, .optimizer = td_adam()), TD_OK);
    assert_int_equal(td_train_on_batch(model, 5, x, y, &logs), TD_OK);
    assert_int_equal(logs.count, 2);
    free(x);
}

/* What is not known is written back as it was. */
static void test_unknown_parts_are_kept(void **state)
{
    (void)state;
    td_model *model = load(golden("partly.keras"));
    assert_int_equal(td_save(model, scratch_path("kept.keras")), TD_OK);
    edit_parts parts = edit_open(scratch_path("kept.keras"));
    json_t *compiled = json_object_get(parts.config, "compile_config");
    assert_string_equal(json_string_value(json_object_get(json_object_get(compiled, "optimizer"), "class_name")),
                        "Adamax");
    edit_release(&parts);
    unlink(scratch_path("kept.keras"));
}

static void test_output_without_loss(void **state)
{
    (void)state;
    td_model *model = load(golden("heads.keras"));
    assert_int_equal(warnings, 0);
    assert_int_equal(td_model_output_loss(model, 0), TD_SPARSE_CATEGORICAL_CROSSENTROPY);
    assert_int_equal(td_model_output_loss(model, 1), TD_LOSS_NONE);
    assert_int_equal(td_output_activation(model, 0), TD_SOFTMAX);
    assert_int_equal(td_save(model, scratch_path("heads.keras")), TD_OK);
    td_model *again = load(scratch_path("heads.keras"));
    assert_int_equal(td_model_output_loss(again, 1), TD_LOSS_NONE);
    assert_int_equal(again->compiled.outputs[1].n_metrics, 1);
    assert_int_equal(td_compile(again, .losses = TD_LOSSES(TD_LOSS_NONE, TD_LOSS_NONE)), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "at least one output"));
    unlink(scratch_path("heads.keras"));
}

/* ---- written and read again ---- */

static void assert_same_floats(const float *a, const float *b, int64_t count)
{
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
}

static void assert_same_model(const td_model *a, const td_model *b)
{
    assert_string_equal(a->architecture->name, b->architecture->name);
    assert_int_equal(a->architecture->sequential, b->architecture->sequential);
    assert_int_equal(a->architecture->layers.count, b->architecture->layers.count);
    assert_int_equal(a->architecture->sites.count, b->architecture->sites.count);
    for (int i = 0; i < a->architecture->layers.count; i++) {
        assert_string_equal(a->architecture->layers.at[i]->name, b->architecture->layers.at[i]->name);
        assert_ptr_equal(a->architecture->layers.at[i]->type, b->architecture->layers.at[i]->type);
    }
    assert_int_equal(a->architecture->total, b->architecture->total);
    assert_same_floats(tdi_model_values(a), tdi_model_values(b), a->architecture->total);
    assert_int_equal(a->compiled.is_set, b->compiled.is_set);
    assert_int_equal(a->state->iteration, b->state->iteration);
    assert_memory_equal(&a->state->optimizer, &b->state->optimizer, sizeof a->state->optimizer);
    for (int i = 0; i < TDI_MAX_SLOTS; i++)
        if (tdi_model_slots(a, i))
            assert_same_floats(tdi_model_slots(a, i), tdi_model_slots(b, i), a->architecture->trained);
    assert_memory_equal(&a->compiled.outputs[0].loss, &b->compiled.outputs[0].loss, sizeof a->compiled.outputs[0].loss);
    assert_int_equal(a->compiled.outputs[0].n_metrics, b->compiled.outputs[0].n_metrics);
}

static void test_resaved_files_are_the_same_model(void **state)
{
    (void)state;
    static const char *const names[] = {"mlp_adam.keras", "cnn_sgd.keras",    "cnn_older.keras", "plain.keras",
                                        "averages.keras", "characters.keras", "relu.keras",      "heads.keras"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        td_model *model = load(golden(names[i]));
        if (td_save(model, scratch_path("again.keras")) != TD_OK)
            fail_msg("%s", td_error(context));
        assert_int_equal(scratch_count(), 1);
        assert_same_model(model, load(scratch_path("again.keras")));
    }
}

/* A limit on file sizes stands for a disk that fills up. */
static void test_full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    struct rlimit old, small;
    size_t size;
    td_model *model = load(golden("cnn_sgd.keras"));
    scratch_write("kept.keras", "the old file", 12);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){10000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    td_status status = td_save(model, scratch_path("kept.keras"));
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, TD_IO);
    assert_non_null(strstr(td_error(context), "kept.keras"));
    char *bytes = scratch_read("kept.keras", &size);
    assert_int_equal(size, 12);
    assert_memory_equal(bytes, "the old file", 12);
    free(bytes);
    unlink(scratch_path("again.keras"));
    assert_int_equal(scratch_count(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mlp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cnn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_older_configurations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uncompiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_averages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_predictions_are_kerass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keras_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keras_2_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keras_2_in_hdf5_is_compiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_legacy_weights, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hard_sigmoid_of_keras_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_partly_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_parts_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_output_without_loss, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resaved_files_are_the_same_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk_keeps_the_old_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
