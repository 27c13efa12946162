/* Callbacks: each against what real Keras's does with the same logs (callbacks_golden.py), then within td_fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>
#include <unistd.h>

#include "support/devices.h"
#include "support/small.h"
#include "train/callbacks/callbacks.h"
#include "train/callbacks/path_pattern.h"
#include "train/callbacks_golden.h"

enum { EPOCHS = sizeof val_loss / sizeof *val_loss };

/* ---- driven by hand ---- */

typedef struct bench {
    td_context *context;
    td_training training;
    double rates[EPOCHS]; /* the learning rate behind each epoch */
} bench;

static void bench_open(bench *b)
{
    *b = (bench){.context = td_context_create(NULL)};
    b->training.model = small_model(b->context, SMALL_MLP, td_sgd(.learning_rate = 0.1f), td_mirrored(test_devices(1)));
    assert_non_null(b->training.model);
}

/* Runs a callback over the golden logs, the weights of epoch e all e; returns the epochs run. */
static int drive(bench *b, td_callback *callback)
{
    const td_callback_functions *functions = &callback->functions;
    td_model *model = b->training.model;
    assert_int_equal(callback->error.status, TD_OK);
    assert_int_equal(functions->train_begin(callback->user, &b->training), TD_OK);
    int epoch = 0;
    for (; epoch < EPOCHS && !b->training.stop; epoch++) {
        td_epoch end = {.epoch = epoch,
                        .logs = {.count = 3,
                                 .entry = {{"accuracy", accuracy[epoch]},
                                           {"loss", val_loss[epoch] + 0.1},
                                           {"val_loss", val_loss[epoch]}}}};
        b->training.epoch = epoch;
        for (int64_t i = 0; i < model->architecture->total; i++)
            tdi_model_write_values(model)[i] = (float)epoch;
        assert_int_equal(functions->epoch_end(callback->user, &b->training, &end), TD_OK);
        b->rates[epoch] = td_training_learning_rate(&b->training);
    }
    if (functions->train_end)
        assert_int_equal(functions->train_end(callback->user, &b->training), TD_OK);
    td_callback_free(callback);
    return epoch;
}

static void expect_stopping(int which, td_callback *callback)
{
    bench b;
    bench_open(&b);
    int epochs = drive(&b, callback);
    if (epochs != stopping_golden[which][0] ||
        tdi_model_values(b.training.model)[0] != (float)stopping_golden[which][1])
        fail_msg("case %d: %d epochs, weights of epoch %g; Keras: %d and %d", which, epochs,
                 (double)tdi_model_values(b.training.model)[0], stopping_golden[which][0], stopping_golden[which][1]);
    td_context_free(b.context);
}

/* Epochs until a log named "accuracy" has not improved for two; it is an error's if `error`. */
static int patience_of(td_monitor_mode mode, bool error)
{
    bench b;
    bench_open(&b);
    if (error)
        assert_int_equal(td_compile(b.training.model, .loss = TD_MEAN_SQUARED_ERROR,
                                    .metrics = TD_METRICS(td_metric_mean_absolute_error(.name = "accuracy"))),
                         TD_OK);
    int epochs = drive(&b, td_early_stopping(.patience = 2, .monitor = "accuracy", .mode = mode));
    td_context_free(b.context);
    return epochs;
}

static void test_errors_are_to_fall(void **state)
{
    (void)state;
    assert_int_not_equal(patience_of(TD_MIN, false), patience_of(TD_MAX, false));
    assert_int_equal(patience_of(TD_AUTO, false), patience_of(TD_MAX, false));
    assert_int_equal(patience_of(TD_AUTO, true), patience_of(TD_MIN, true));
}

static void test_early_stopping_is_kerass(void **state)
{
    (void)state;
    expect_stopping(0, td_early_stopping(.patience = 2, .restore_best_weights = TD_YES));
    expect_stopping(1, td_early_stopping(.patience = 3, .restore_best_weights = TD_YES));
    expect_stopping(2, td_early_stopping(.patience = 2, .min_delta = 0.06, .restore_best_weights = TD_YES));
    expect_stopping(3, td_early_stopping(.patience = 3, .baseline = TD_SET(0.9f), .restore_best_weights = TD_YES));
    expect_stopping(4, td_early_stopping(.patience = 1, .start_from_epoch = 4, .restore_best_weights = TD_YES));
    expect_stopping(5, td_early_stopping(.patience = 2, .monitor = "accuracy", .restore_best_weights = TD_YES));
    expect_stopping(6, td_early_stopping(.restore_best_weights = TD_YES));
}

static void expect_plateau(int which, td_callback *callback)
{
    bench b;
    bench_open(&b);
    assert_int_equal(drive(&b, callback), EPOCHS);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        if (fabs(b.rates[epoch] - plateau_golden[which][epoch]) > 1e-6 * plateau_golden[which][epoch])
            fail_msg("case %d, epoch %d: %.9g; Keras: %.9g", which, epoch, b.rates[epoch],
                     plateau_golden[which][epoch]);
    td_context_free(b.context);
}

static void test_reduce_lr_on_plateau_is_kerass(void **state)
{
    (void)state;
    const td_optional half = TD_SET(0.5f);
    expect_plateau(0, td_reduce_lr_on_plateau(.patience = TD_SET(1)));
    expect_plateau(1, td_reduce_lr_on_plateau(.patience = TD_SET(2), .factor = half));
    expect_plateau(2, td_reduce_lr_on_plateau(.patience = TD_SET(1), .factor = half, .cooldown = 2));
    expect_plateau(3, td_reduce_lr_on_plateau(.patience = TD_SET(1), .factor = TD_SET(0.2f), .min_lr = 0.001));
    expect_plateau(4, td_reduce_lr_on_plateau(.patience = TD_SET(2), .factor = half, .min_delta = TD_SET(0.06f)));
    expect_plateau(5, td_reduce_lr_on_plateau(.patience = TD_SET(1), .factor = half, .monitor = "accuracy"));
}

/* ---- files ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tandem-callbacks-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void expect_checkpoints(int which, td_model_checkpoint_args args)
{
    bench b;
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/%s", folder, "{epoch:02d}-{val_loss:.3f}.keras");
    args.filepath = pattern;
    bench_open(&b);
    drive(&b, td_model_checkpoint_(&args));
    for (const char *const *name = checkpoint_golden[which]; *name; name++)
        if (unlink(in_folder(*name)) != 0)
            fail_msg("case %d: there is no %s", which, *name);
    assert_int_equal(rmdir(folder), 0); /* nothing else was there */
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/tandem-callbacks-XXXXXX")));
    td_context_free(b.context);
}

static void test_model_checkpoint_saves_when_keras_does(void **state)
{
    (void)state;
    expect_checkpoints(0, (td_model_checkpoint_args){0});
    expect_checkpoints(1, (td_model_checkpoint_args){.save_best_only = TD_YES});
    expect_checkpoints(2, (td_model_checkpoint_args){.save_best_only = TD_YES, .monitor = "accuracy"});
    expect_checkpoints(3,
                       (td_model_checkpoint_args){.save_best_only = TD_YES, .initial_value_threshold = TD_SET(0.84f)});
}

static void test_paths_are_filled_as_python_does(void **state)
{
    (void)state;
    const td_logs logs = {2, {{"val_loss", 0.123456}, {"loss", 2}}};
    static const char *const cases[][2] = {{"{epoch}", "7"},
                                           {"a{epoch:03d}b", "a007b"},
                                           {"{epoch:3d}", "  7"},
                                           {"{val_loss:.2f}", "0.12"},
                                           {"{val_loss}", "0.123456"},
                                           {"{val_loss:08.3f}", "0000.123"},
                                           {"{loss:e}", "2.000000e+00"},
                                           {"{val_loss:.1%}-{epoch:>4}-{epoch:+.1f}", "12.3%-   7-+7.0"},
                                           {"{{{batch}}}", "{12}"}};
    static const char *const wrong[] = {"{nothing}", "{epoch:.2d}", "{val_loss:d}", "{epoch", "{val_loss:q}",
                                        "epoch}",    "{}",          "{epoch!r}",    "{:d}"};
    char path[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tdi_path_fill(cases[i][0], 7, 12, &logs, path, sizeof path, NULL), TD_OK);
        assert_string_equal(path, cases[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tdi_error error = {0};
        assert_int_equal(tdi_path_fill(wrong[i], 7, 0, &logs, path, sizeof path, &error), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, wrong[i]));
    }
    tdi_error error = {0};
    assert_int_equal(tdi_path_fill("{batch}", 7, 0, &logs, path, sizeof path, &error), TD_INVALID_ARGUMENT);
}

/* ---- within td_fit ---- */

enum { SAMPLES = 40, BATCH = 8, STEPS = SAMPLES / BATCH };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

static td_data *samples(void)
{
    small_data(SAMPLES, x, y);
    return td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
}

static td_model *fresh(td_context *context)
{
    return small_model(context, SMALL_MLP, td_sgd(.learning_rate = 0.05f), td_mirrored(test_devices(1)));
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

static void test_csv_logger_writes_kerass_columns(void **state)
{
    (void)state;
    char text[4096];
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    for (int run = 0; run < 2; run++)
        assert_int_equal(td_fit(model, samples(), .epochs = 2, .batch_size = BATCH,
                                .validation = run ? samples() : NULL,
                                .callbacks = TD_CALLBACKS(td_csv_logger(in_folder("log.csv"), .append = TD_YES))),
                         TD_OK);
    read_text(in_folder("log.csv"), text, sizeof text);
    assert_int_equal(strncmp(text, "epoch,accuracy,loss,val_accuracy,val_loss\r\n0,", 45), 0);
    assert_non_null(strstr(text, ",NA,NA\r\n1,"));
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 5);
    td_context_free(context);
}

typedef struct counts {
    int begun, epochs, batches, ended, released;
    int64_t last_steps;
} counts;

static td_status count_begin(void *user, td_training *training)
{
    (void)training;
    ((counts *)user)->begun++;
    return TD_OK;
}

static td_status count_batch(void *user, td_training *training, const td_logs *logs)
{
    counts *c = user;
    assert_true(logs->count >= 1);
    c->batches++;
    c->last_steps = td_training_steps(training);
    if (td_training_epoch(training) == 1 && c->last_steps == 3)
        td_training_stop(training);
    return TD_OK;
}

static td_status count_epoch(void *user, td_training *training, td_epoch *epoch)
{
    counts *c = user;
    assert_int_equal(epoch->epoch, td_training_epoch(training));
    assert_int_equal(epoch->steps, c->epochs == 1 ? 3 : 5);
    c->epochs++;
    return TD_OK;
}

static td_status count_end(void *user, td_training *training)
{
    (void)training;
    ((counts *)user)->ended++;
    return TD_OK;
}

static void count_release(void *user)
{
    ((counts *)user)->released++;
}

static void test_ones_own_is_called_and_may_stop(void **state)
{
    (void)state;
    counts c = {0};
    const td_callback_functions functions = {.train_begin = count_begin,
                                             .batch_end = count_batch,
                                             .every = 2,
                                             .epoch_end = count_epoch,
                                             .train_end = count_end,
                                             .release = count_release};
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_equal(td_fit(model, samples(), .epochs = 9, .batch_size = BATCH,
                            .callbacks = TD_CALLBACKS(td_callback_create(&functions, &c))),
                     TD_OK);
    /* Every second step of two epochs of 5: 2 and 4, then 1 and 3, at which the second ends. */
    assert_int_equal(c.begun, 1);
    assert_int_equal(c.batches, 4);
    assert_int_equal(c.epochs, 2);
    assert_int_equal(c.ended, 1);
    assert_int_equal(c.released, 1);
    assert_int_equal(model->state->iteration, 8);
    td_context_free(context);
}

static void test_save_freq_counts_across_epochs(void **state)
{
    (void)state;
    static const char *const saved[] = {"1-3.keras", "2-1.keras", "2-4.keras", "3-2.keras", "3-5.keras"};
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_equal(
        td_fit(model, samples(), .epochs = 3, .batch_size = BATCH,
               .callbacks = TD_CALLBACKS(td_model_checkpoint(in_folder("{epoch}-{batch}.keras"), .save_freq = 3))),
        TD_OK);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
        assert_int_equal(unlink(in_folder(saved[i])), 0);
    td_context_free(context);
}

static double halved(void *user, int epoch, double rate)
{
    (void)user;
    return epoch ? rate / 2 : rate;
}

static td_status see_rate(void *user, td_training *training, td_epoch *epoch)
{
    const double *logged = tdi_log_value(&epoch->logs, "learning_rate");
    assert_non_null(logged);
    assert_true(*logged == td_training_learning_rate(training));
    ((double *)user)[epoch->epoch] = epoch->learning_rate;
    return TD_OK;
}

static void test_a_schedule_sets_each_epochs_rate(void **state)
{
    (void)state;
    double rates[3];
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_equal(
        td_fit(model, samples(), .epochs = 3, .batch_size = BATCH,
               .callbacks = TD_CALLBACKS(td_learning_rate_scheduler(halved),
                                         td_callback_create(&(td_callback_functions){.epoch_end = see_rate}, rates))),
        TD_OK);
    for (int epoch = 0; epoch < 3; epoch++)
        assert_true(rates[epoch] == (double)(0.05f / (float)(1 << epoch)));
    td_context_free(context);
}

/* As in Keras: what asks for another rate than the optimizer's schedule fails. */
static void test_an_optimizers_schedule_cannot_be_set(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    int64_t boundaries[] = {1};
    float values[] = {0.5f, 0.25f};
    td_compile(model, .optimizer = td_sgd(.schedule = td_piecewise_constant_decay(2, .boundaries = boundaries,
                                                                                  .values = values)));
    values[0] = 7; /* they were copied */
    assert_true(td_learning_rate(model) == 0.5f);
    assert_int_equal(td_set_learning_rate(model, 0.1f), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    td_epoch last;
    assert_int_equal(td_fit(model, samples(), .last = &last, .epochs = 2), TD_OK);
    assert_true(td_learning_rate(model) == 0.25f && last.learning_rate == 0.25);
    assert_true(*tdi_log_value(&last.logs, "learning_rate") == 0.25);
    assert_int_equal(td_fit(model, samples(), .callbacks = TD_CALLBACKS(td_learning_rate_scheduler(halved))),
                     TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "LearningRateScheduler sets the learning rate, but that of model "));
    td_context_free(context);
}

static td_status refuse(void *user, td_training *training)
{
    (void)user;
    return td_training_fail(training, TD_IO, "the robot's arm is stuck");
}

static void expect_failure(td_status status, const char *words, td_callback *callback)
{
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_equal(td_fit(model, samples(), .callbacks = TD_CALLBACKS(callback)), status);
    if (!strstr(td_error(context), words))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
    td_context_free(context);
}

static void test_failures_are_td_fits(void **state)
{
    (void)state;
    expect_failure(TD_IO, "robot's arm", td_callback_create(&(td_callback_functions){.epoch_begin = refuse}, NULL));
    expect_failure(TD_INVALID_ARGUMENT, "factor", td_reduce_lr_on_plateau(.factor = TD_SET(1.0f)));
    expect_failure(TD_INVALID_ARGUMENT, ".keras", td_model_checkpoint("weights.h5"));
    expect_failure(TD_INVALID_ARGUMENT, ".weights.h5", td_model_checkpoint("a.keras", .save_weights_only = TD_YES));
    expect_failure(TD_INVALID_ARGUMENT, "save_weights_only", td_model_checkpoint("a.weights.h5"));
    expect_failure(TD_IO, "nowhere", td_csv_logger("/dev/null/nowhere/log.csv"));
}

/* Whatever the program does about SIGXFSZ, here nothing: td_fit says it. */
static void test_a_limit_on_file_sizes_is_td_fits(void **state)
{
    (void)state;
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){16, old.rlim_max});
    expect_failure(TD_IO, "small.csv is incomplete from epoch 1 on: File too large",
                   td_csv_logger(in_folder("small.csv")));
    setrlimit(RLIMIT_FSIZE, &old);
    unlink(in_folder("small.csv"));
}

/* Before the first step, which would count. */
static void expect_refused(const char *words, td_data *validation, td_callback *before, td_callback *checkpoint)
{
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    td_callback *callbacks[] = {before ? before : checkpoint, before ? checkpoint : NULL, NULL};
    assert_int_equal(td_fit(model, samples(), .validation = validation, .callbacks = callbacks), TD_INVALID_ARGUMENT);
    if (!strstr(td_error(context), words))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
    assert_int_equal(model->state->iteration, 0);
    td_context_free(context);
}

static void test_a_name_that_will_not_be_is_refused_first(void **state)
{
    (void)state;
    expect_refused("there is no {nothing}; there are {epoch}, {loss}, {accuracy}, {learning_rate}", NULL, NULL,
                   td_model_checkpoint("{nothing}.keras"));
    expect_refused("there is no {val_loss}", NULL, NULL, td_model_checkpoint("{val_loss}.keras"));
    expect_refused("{accuracy}, {val_loss}, {val_accuracy}, {learning_rate}", samples(), NULL,
                   td_model_checkpoint("{val_los}.keras"));
    expect_refused("there is no {batch}", NULL, NULL, td_model_checkpoint("{batch}.keras"));
    expect_refused("there is no {val_loss}; there are {epoch}, {batch}, {loss}", samples(), NULL,
                   td_model_checkpoint("{val_loss}.keras", .save_freq = 2));
    expect_refused("ModelCheckpoint: {epoch:d.keras: a { opens", NULL, NULL, td_model_checkpoint("{epoch:d.keras"));
    expect_refused("{epoch:.2d}: a whole number", NULL, NULL, td_model_checkpoint("{epoch:.2d}.keras"));
}

static td_status add_logs(void *user, td_training *training, td_epoch *epoch)
{
    (void)user;
    (void)training;
    tdi_log_set(&epoch->logs, "grip", 0.25);
    return TD_OK;
}

/* A user's callback may add a log, to the epoch's that stand behind it. */
static void test_a_name_may_have_a_log_of_ones_own(void **state)
{
    (void)state;
    const td_callback_functions functions = {.epoch_end = add_logs};
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_equal(
        td_fit(model, samples(), .batch_size = BATCH,
               .callbacks = TD_CALLBACKS(td_callback_create(&functions, NULL),
                                         td_model_checkpoint(in_folder("{grip:.0%}{learning_rate:g}.keras")))),
        TD_OK);
    assert_int_equal(unlink(in_folder("25%0.05.keras")), 0);
    td_context_free(context);
    expect_refused("there is no {grip}", NULL, td_callback_create(&functions, NULL),
                   td_model_checkpoint("{grip}.keras", .save_freq = 2));
    expect_refused("there is no {grip}", NULL, td_model_checkpoint("{grip}.keras"),
                   td_callback_create(&functions, NULL));
}

static void test_weights_alone_are_saved(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context), *other = fresh(context);
    char path[300];
    snprintf(path, sizeof path, "%s", in_folder("{epoch}.weights.h5"));
    assert_int_equal(td_fit(model, samples(), .epochs = 2, .batch_size = BATCH,
                            .callbacks = TD_CALLBACKS(td_model_checkpoint(path, .save_weights_only = TD_YES))),
                     TD_OK);
    assert_int_equal(unlink(in_folder("1.weights.h5")), 0);
    assert_int_equal(td_load_weights(other, in_folder("2.weights.h5")), TD_OK);
    assert_memory_equal(tdi_model_values(other), tdi_model_values(model),
                        (size_t)model->architecture->total * sizeof(float));
    assert_int_equal(other->state->iteration, 2 * STEPS);
    assert_int_equal(unlink(in_folder("2.weights.h5")), 0);
    td_context_free(context);
}

static void test_a_checkpoint_that_fails_is_said_at_the_end(void **state)
{
    (void)state;
    td_epoch last = {0};
    td_context *context = td_context_create(NULL);
    td_model *model = fresh(context);
    assert_int_not_equal(td_fit(model, samples(), .epochs = 3, .batch_size = BATCH, .last = &last,
                                .callbacks = TD_CALLBACKS(td_model_checkpoint("/dev/null/nowhere/{epoch}.keras"))),
                         TD_OK);
    assert_int_equal(last.epoch, 2); /* the training went on */
    assert_non_null(strstr(td_error(context), "/dev/null/nowhere"));
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early_stopping_is_kerass),
        cmocka_unit_test(test_errors_are_to_fall),
        cmocka_unit_test(test_reduce_lr_on_plateau_is_kerass),
        cmocka_unit_test_setup_teardown(test_model_checkpoint_saves_when_keras_does, make_folder, drop_folder),
        cmocka_unit_test(test_paths_are_filled_as_python_does),
        cmocka_unit_test_setup_teardown(test_csv_logger_writes_kerass_columns, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_a_limit_on_file_sizes_is_td_fits, make_folder, drop_folder),
        cmocka_unit_test(test_ones_own_is_called_and_may_stop),
        cmocka_unit_test_setup_teardown(test_save_freq_counts_across_epochs, make_folder, drop_folder),
        cmocka_unit_test(test_a_schedule_sets_each_epochs_rate),
        cmocka_unit_test(test_an_optimizers_schedule_cannot_be_set),
        cmocka_unit_test(test_failures_are_td_fits),
        cmocka_unit_test(test_a_name_that_will_not_be_is_refused_first),
        cmocka_unit_test_setup_teardown(test_a_name_may_have_a_log_of_ones_own, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_weights_alone_are_saved, make_folder, drop_folder),
        cmocka_unit_test(test_a_checkpoint_that_fails_is_said_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
