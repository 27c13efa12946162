/* BackupAndRestore: a run that is stopped and resumed is the run that never was; what is refused, torn, full or in use.
 * tests/train/kill.c kills. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"
#include "train/backup/backup_writer.h"
#include "tune/tuning_cache.h"

enum { SAMPLES = 43, BATCH = 8, STEPS = 5, EPOCHS = 4, KEPT = 8 };

static float x[(SAMPLES + KEPT) * SMALL_SAMPLE], y[SAMPLES + KEPT];
static char warnings[4096];

/* ---- a run ---- */

typedef struct run {
    small_kind kind;
    const char *devices;
    int shards;
    td_optimizer optimizer;
    int64_t save_freq, batch, stop_at; /* stop_at: batches until it asks to stop; 0: never */
    uint64_t seed;
    float shift; /* of the data */
    int crop;    /* its augmentation */
    td_choice shuffle, keep, once, momentum_correction;
    int64_t base_batch_size;
    int warmup_epochs;
    td_precision precision;
    bool own_rate;     /* a callback of the user's sets the learning rate for the first time on the way */
    bool patient;      /* waits for the first two backups to be written */
    td_callback *more; /* one callback beside those of every run */
    td_epoch last;
    int resumed;
} run;

typedef struct outcome {
    td_status status;
    int64_t count, iteration;
    float *weights;
    td_epoch last;
    char error[1024];
} outcome;

typedef struct stopper {
    td_context *context;
    run *run;
    int64_t batches;
} stopper;

static td_status count_begin(void *user, td_training *training)
{
    ((stopper *)user)->run->resumed = td_training_resumed(training);
    return TD_OK;
}

static void wait_for_backup(int which)
{
    char path[TDI_BACKUP_PATH];
    tdi_backup_path(scratch_path("backups"), which, path);
    for (int i = 0; i < 300000 && access(path, F_OK) != 0; i++)
        usleep(1000);
}

static td_status count_batch(void *user, td_training *training, const td_logs *logs)
{
    stopper *self = user;
    (void)training;
    (void)logs;
    int64_t saves = self->run->patient ? self->batches / self->run->save_freq : 0;
    if (saves == 1 || saves == 2)
        wait_for_backup((int)saves - 1);
    if (++self->batches == self->run->stop_at)
        td_request_stop(self->context);
    return TD_OK;
}

static void keep_warning(void *user, td_log_level level, const char *line)
{
    (void)user;
    size_t used = strlen(warnings);
    if (level == TD_LOG_WARNING)
        snprintf(warnings + used, sizeof warnings - used, "%s\n", line);
}

static td_callback *plateau(void)
{
    return td_reduce_lr_on_plateau(.patience = TD_SET(1), .factor = TD_SET(0.5f), .min_delta = TD_SET(0.05f));
}

static td_status lower_rate(void *user, td_training *training, td_epoch *epoch)
{
    (void)user;
    return epoch->epoch == 1 ? td_training_set_learning_rate(training, 0.005) : TD_OK;
}

static td_callback *rate_callback(const run *r)
{
    if (r->own_rate)
        return td_callback_create(&(td_callback_functions){.epoch_end = lower_rate}, NULL);
    return r->optimizer.schedule.kind ? td_terminate_on_nan(.raise_error = TD_NO)
                                      : plateau(); /* which cannot go with a schedule */
}

static outcome go(run *r)
{
    outcome o = {0};
    warnings[0] = '\0';
    td_context *context = td_context_create(&(td_context_options){.log = keep_warning});
    td_optimizer adam = td_adam(.learning_rate = 0.01f);
    td_model *model = small_model(context, r->kind, r->optimizer.kind ? r->optimizer : adam,
                                  td_mirrored(r->devices ? r->devices : test_devices(1), .shards = r->shards));
    td_compile(model, .metrics = TD_METRICS(TD_ACCURACY, td_metric_mean_iou(),
                                            td_metric_sparse_top_k_categorical_accuracy(.k = 2)));
    stopper stop = {context, r, 0};
    if (r->precision)
        td_compile(model, .precision = r->precision);
    small_data(SAMPLES + KEPT, x, y);
    for (int i = 0; i < SAMPLES * SMALL_SAMPLE; i++)
        x[i] += r->shift;
    td_callback *list[] = {
        td_backup_and_restore(scratch_path("backups"), .save_freq = r->save_freq, .delete_checkpoint = r->keep,
                              .double_checkpoint = r->once),
        rate_callback(r),
        td_csv_logger(scratch_path("log.csv")),
        td_early_stopping(.patience = 2, .min_delta = 0.02, .restore_best_weights = TD_YES),
        td_callback_create(&(td_callback_functions){.train_begin = count_begin, .batch_end = count_batch}, &stop),
        r->more,
        NULL};
    td_data *data = td_arrays(SAMPLES + KEPT, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    if (r->crop)
        data = td_augment(data, .crop = r->crop);
    o.status =
        td_fit(model, data, .epochs = EPOCHS, .batch_size = r->batch ? r->batch : BATCH, .validation_split = KEPT,
               .shuffle = r->shuffle, .base_batch_size = r->base_batch_size, .warmup_epochs = r->warmup_epochs,
               .momentum_correction = r->momentum_correction, .seed = r->seed, .last = &o.last, .callbacks = list);
    snprintf(o.error, sizeof o.error, "%s", td_error(context));
    o.weights = small_weights(model, &o.count);
    o.iteration = model->state->iteration;
    td_context_free(context);
    return o;
}

static void clear(void)
{
    td_backup_remove(scratch_path("backups"));
    unlink(scratch_path("log.csv"));
}

static void expect_equal(const outcome *a, const outcome *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->iteration, b->iteration);
    assert_memory_equal(a->weights, b->weights, (size_t)a->count * sizeof *a->weights);
    assert_int_equal(a->last.epoch, b->last.epoch);
    assert_int_equal(a->last.steps, b->last.steps);
    assert_int_equal(a->last.samples, b->last.samples);
    assert_int_equal(a->last.logs.count, b->last.logs.count);
    for (int i = 0; i < a->last.logs.count; i++) {
        assert_string_equal(a->last.logs.entry[i].name, b->last.logs.entry[i].name);
        assert_true(a->last.logs.entry[i].value == b->last.logs.entry[i].value);
    }
}

/* ---- resuming ---- */

static void stop_everywhere(run r)
{
    size_t size, size_again;
    clear();
    outcome whole = go(&r);
    assert_int_equal(whole.status, TD_OK);
    char *log = scratch_read("log.csv", &size);
    for (int64_t at = 1; at < whole.iteration; at += at % 3 + 2) {
        clear();
        r.stop_at = at;
        outcome stopped = go(&r);
        assert_int_equal(stopped.status, TD_STOPPED);
        r.stop_at = 0;
        outcome resumed = go(&r);
        assert_int_equal(resumed.status, TD_OK);
        assert_int_equal(r.resumed, 1);
        expect_equal(&whole, &resumed);
        char *again = scratch_read("log.csv", &size_again);
        assert_int_equal(size, size_again);
        assert_memory_equal(log, again, size);
        free(again);
        free(stopped.weights);
        free(resumed.weights);
    }
    free(log);
    free(whole.weights);
}

static void a_stopped_run_goes_on(void **state)
{
    (void)state;
    stop_everywhere((run){.kind = SMALL_DROPOUT});
    stop_everywhere((run){.kind = SMALL_NORM, .devices = test_devices(2), .save_freq = 2});
    stop_everywhere((run){.kind = SMALL_LSTM, .optimizer = td_sgd(.momentum = 0.9f), .save_freq = 7});
    stop_everywhere((run){.kind = SMALL_CNN, .optimizer = td_adam(.amsgrad = TD_YES), .shuffle = TD_NO, .seed = 4});
    stop_everywhere((run){.kind = SMALL_MLP,
                          .devices = test_devices(2),
                          .optimizer = td_adam(.use_ema = TD_YES, .ema_overwrite_frequency = 4)});
    stop_everywhere((run){.kind = SMALL_SYNC, .optimizer = td_sgd(.momentum = 0.5f, .gradient_accumulation_steps = 3)});
}

/* The log's columns are those of its header, though the rate is in each epoch's logs from the second on. */
static void columns_are_those_of_before(void **state)
{
    (void)state;
    stop_everywhere((run){.kind = SMALL_MLP, .own_rate = true, .save_freq = 3});
}

static void the_number_of_replicas_may_change(void **state)
{
    (void)state;
    run one = {.kind = SMALL_DROPOUT, .devices = test_devices(1), .shards = 2, .stop_at = 8};
    run two = {.kind = SMALL_DROPOUT, .devices = test_devices(2), .shards = 2};
    outcome stopped = go(&one), resumed = go(&two), whole = go(&two);
    assert_int_equal(stopped.status, TD_STOPPED);
    expect_equal(&whole, &resumed);
    free(stopped.weights);
    free(resumed.weights);
    /* Another number of parts: accumulators are added up. */
    one.shards = two.shards = 0;
    stopped = go(&one);
    resumed = go(&two);
    assert_int_equal(resumed.status, TD_OK);
    assert_true(relative_difference(resumed.weights, whole.weights, whole.count) < 1e-4);
    free(stopped.weights);
    free(resumed.weights);
    free(whole.weights);
}

static void remove_cache(const char *name)
{
    char file[600];
    snprintf(file, sizeof file, "%s/choices.json", scratch_path(name));
    unlink(file);
    rmdir(scratch_path(name));
}

/* Resumed where nothing is known, or where nothing may be timed. */
static void check_kernels_of_before(const char *cache)
{
    clear();
    setenv("TANDEM_CACHE", scratch_path("cache-1"), 1);
    run r = {.kind = SMALL_MLP, .devices = test_devices(0), .stop_at = 3};
    outcome stopped = go(&r);
    td_state found;
    tdi_error error = {0};
    char path[TDI_BACKUP_PATH];
    tdi_backup_path(scratch_path("backups"), 0, path);
    assert_int_equal(tdi_state_read(&found, path, &error), TD_OK);
    json_t *before = json_deep_copy(found.tuned);
    tdi_state_release(&found);
    setenv("TANDEM_CACHE", cache, 1);
    r.stop_at = 2;
    outcome resumed = go(&r);
    tdi_backup_path(scratch_path("backups"), 1, path);
    assert_int_equal(tdi_state_read(&found, path, &error), TD_OK);
    if (before) {
        const char *machine, *key;
        json_t *of_machine, *choice, *after = json_object_get(found.tuned, "machines");
        json_object_foreach(json_object_get(before, "machines"), machine, of_machine)
            json_object_foreach(of_machine, key, choice)
                assert_true(json_equal(choice, json_object_get(json_object_get(after, machine), key)));
    }
    tdi_state_release(&found);
    json_decref(before);
    free(stopped.weights);
    free(resumed.weights);
    setenv("TANDEM_CACHE", "off", 1);
    remove_cache("cache-1");
}

static void kernels_are_those_of_before(void **state)
{
    (void)state;
    char cache[600];
    check_kernels_of_before("off");
    snprintf(cache, sizeof cache, "%s", scratch_path("cache-2"));
    check_kernels_of_before(cache);
    remove_cache("cache-2");
}

static bool has_tuning_cache(int which)
{
    td_state found;
    tdi_error error = {0};
    char path[TDI_BACKUP_PATH];
    tdi_backup_path(scratch_path("backups"), which, path);
    assert_int_equal(tdi_state_read(&found, path, &error), TD_OK);
    bool has = found.tuned != NULL;
    tdi_state_release(&found);
    return has;
}

/* Where nothing was timed nothing is, with a cache by now. */
static void rules_are_those_of_before(void **state)
{
    (void)state;
    run r = {.kind = SMALL_CNN, .devices = test_devices(0)};
    clear();
    outcome whole = go(&r);
    clear();
    r.stop_at = 3;
    outcome stopped = go(&r);
    assert_false(has_tuning_cache(0));
    setenv("TANDEM_CACHE", scratch_path("cache"), 1);
    r.stop_at = 2;
    outcome again = go(&r);
    assert_false(has_tuning_cache(1));
    r.stop_at = 0;
    outcome resumed = go(&r);
    expect_equal(&whole, &resumed);
    free(whole.weights);
    free(stopped.weights);
    free(again.weights);
    free(resumed.weights);
    setenv("TANDEM_CACHE", "off", 1);
    remove_cache("cache");
}

/* ---- what is refused ---- */

static void refuse(run changed, const char *words)
{
    run first = {.kind = SMALL_MLP, .stop_at = 3, .seed = 7};
    clear();
    outcome stopped = go(&first), refused = go(&changed);
    assert_int_equal(refused.status, TD_INVALID_ARGUMENT);
    if (!strstr(refused.error, words))
        fail_msg("\"%s\" lacks \"%s\"", refused.error, words);
    first.stop_at = 0;
    outcome resumed = go(&first); /* the backup stands */
    assert_int_equal(resumed.status, TD_OK);
    assert_int_equal(first.resumed, 1);
    free(stopped.weights);
    free(refused.weights);
    free(resumed.weights);
}

static void another_run_is_refused(void **state)
{
    (void)state;
    refuse((run){.kind = SMALL_MLP, .batch = 16}, "its batch size was 8, and here it is 16");
    refuse((run){.kind = SMALL_DROPOUT}, "its model.layers.dense.units was 70, and here it is 40");
    refuse((run){.kind = SMALL_CNN}, "its model.layers.");
    refuse((run){.kind = SMALL_MLP, .shift = 0.5f}, "its training data was 43 samples of x float32[6, 5, 2]");
    refuse((run){.kind = SMALL_MLP, .crop = 2}, "its training data was 43 samples");
    refuse((run){.kind = SMALL_MLP, .shuffle = TD_NO}, "its shuffle was yes");
    refuse((run){.kind = SMALL_MLP, .seed = 8}, "its seed was 7, and here it is 8");
    refuse((run){.kind = SMALL_MLP, .optimizer = td_sgd()}, "its optimizer.class_name was Adam, and here it is SGD");
    refuse((run){.kind = SMALL_MLP, .optimizer = td_adam(.learning_rate = 0.01f, .clipnorm = 0.5f)},
           "its optimizer.clipnorm was null, and here it is 0.5; name another folder");
    refuse((run){.kind = SMALL_MLP, .optimizer = td_adam(.schedule = td_cosine_decay(0.1f, .decay_steps = 9))},
           "its optimizer.learning_rate was none, and here it is {\"module\":\"keras.optimizers.schedules\"");
    refuse((run){.kind = SMALL_MLP, .base_batch_size = 4}, "its base batch size was 0, and here it is 4");
    refuse((run){.kind = SMALL_MLP, .warmup_epochs = 2}, "its warm-up was 0 epochs, and here it is 2 epochs");
    refuse((run){.kind = SMALL_MLP, .momentum_correction = TD_YES},
           "its momentum correction was no, and here it is yes");
    refuse((run){.kind = SMALL_MLP, .precision = TD_PRECISION_BFLOAT16},
           "its precision was the file's, and here it is b");
    refuse((run){.kind = SMALL_MLP, .shards = 2}, "its shards was 0, and here it is 2");
    refuse((run){.kind = SMALL_MLP, .optimizer = td_adam(.learning_rate = 0.5f)}, "its learning rate was 0.01");
}

static void a_folder_in_use_is_refused(void **state)
{
    (void)state;
    run r = {.kind = SMALL_MLP};
    clear();
    mkdir(scratch_path("backups"), 0777);
    int folder = open(scratch_path("backups"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(folder, LOCK_EX), 0);
    outcome o = go(&r);
    assert_int_equal(o.status, TD_INVALID_ARGUMENT);
    assert_non_null(strstr(o.error, "in use"));
    close(folder);
    free(o.weights);
    r.more = td_backup_and_restore(scratch_path("others"));
    o = go(&r);
    assert_int_equal(o.status, TD_INVALID_ARGUMENT);
    assert_non_null(strstr(o.error, "one BackupAndRestore"));
    free(o.weights);
}

/* ---- torn, full ---- */

static void backup_path(int which, char path[TDI_BACKUP_PATH])
{
    tdi_backup_path(scratch_path("backups"), which, path);
}

/* The file of the newer backup. */
static int newest(void)
{
    json_int_t sequence[2] = {-1, -1};
    for (int which = 0; which < 2; which++) {
        char path[TDI_BACKUP_PATH];
        td_state found;
        backup_path(which, path);
        if (tdi_state_read(&found, path, NULL) != TD_OK)
            continue;
        sequence[which] = json_integer_value(json_object_get(json_object_get(found.root, "run"), "sequence"));
        tdi_state_release(&found);
    }
    return sequence[1] > sequence[0];
}

enum { FLIPPED = -1, NO_BEGINNING = -2, HALF = -3 };

/* Cut after some bytes, or in the middle; a bit of it; its first block lost. */
static void damage(int which, int how)
{
    static const char zeros[512];
    char path[TDI_BACKUP_PATH];
    struct stat facts;
    backup_path(which, path);
    assert_int_equal(stat(path, &facts), 0);
    if (how != FLIPPED && how != NO_BEGINNING) {
        assert_int_equal(truncate(path, how < 0 ? facts.st_size / 2 : how), 0);
        return;
    }
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    if (how == NO_BEGINNING) {
        fwrite(zeros, 1, sizeof zeros, file);
    } else {
        fseek(file, facts.st_size / 2, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, facts.st_size / 2, SEEK_SET);
        fputc(byte ^ 64, file);
    }
    fclose(file);
}

static void the_last_good_one_is_found(void **state)
{
    (void)state;
    static const int damages[] = {FLIPPED, NO_BEGINNING, HALF, 0, 20, 40, 100, 300};
    run r = {.kind = SMALL_DROPOUT, .save_freq = 2, .patient = true};
    clear();
    outcome whole = go(&r);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        clear();
        r.stop_at = 9;
        outcome stopped = go(&r);
        damage(newest(), damages[i]);
        r.stop_at = 0;
        outcome resumed = go(&r);
        assert_int_equal(r.resumed, 1);
        assert_non_null(strstr(warnings, "backup-"));
        expect_equal(&whole, &resumed);
        free(stopped.weights);
        free(resumed.weights);
    }
    clear();
    r.stop_at = 9;
    outcome stopped = go(&r);
    damage(0, HALF);
    damage(1, HALF);
    outcome refused = go(&r);
    assert_int_equal(refused.status, TD_BAD_FILE);
    assert_non_null(strstr(refused.error, "no backup in"));
    free(stopped.weights);
    free(refused.weights);
    free(whole.weights);
}

/* Two whole files of a backup's name, and what begins like neither. */
static void what_is_no_backup_is_not_overwritten(void **state)
{
    (void)state;
    static const char *const others[] = {"my own notes", "PK\3\4, and then of another kind"};
    for (int which = 0; which < 2; which++) {
        char path[TDI_BACKUP_PATH];
        size_t size;
        run r = {.kind = SMALL_MLP};
        clear();
        mkdir(scratch_path("backups"), 0777);
        backup_path(which, path);
        scratch_write(strstr(path, "backups/"), others[which], strlen(others[which]));
        outcome refused = go(&r);
        assert_int_equal(refused.status, TD_INVALID_ARGUMENT);
        assert_int_equal(refused.iteration, 0);
        assert_non_null(strstr(refused.error, "is no backup, and a backup would take its place; move it away"));
        assert_non_null(strstr(refused.error, path));
        assert_int_equal(td_backup_remove(scratch_path("backups")), TD_OK);
        char *kept = scratch_read(strstr(path, "backups/"), &size);
        assert_memory_equal(kept, others[which], size);
        assert_int_equal(size, strlen(others[which]));
        free(kept);
        free(refused.weights);
        unlink(path);
    }
    clear();
}

static td_status fill_disk(void *user, td_training *training)
{
    (void)user;
    if (td_training_epoch(training) != 1)
        return TD_OK;
    wait_for_backup(0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1024, RLIM_INFINITY});
    return TD_OK;
}

static void a_full_disk_ends_nothing(void **state)
{
    (void)state;
    run r = {.kind = SMALL_MLP, .keep = TD_NO};
    clear();
    r.more = td_callback_create(&(td_callback_functions){.epoch_begin = fill_disk}, NULL);
    outcome o = go(&r);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    assert_int_equal(o.status, TD_OK);
    assert_non_null(strstr(warnings, "the training goes on"));
    r.more = NULL;
    outcome again = go(&r); /* from the backup of epoch 1, which stands */
    assert_int_equal(r.resumed, 1);
    expect_equal(&o, &again);
    free(o.weights);
    free(again.weights);
}

/* ---- before the first step ---- */

/* The backup that there is then, under another name too. */
static td_status keep_first(void *user, td_training *training)
{
    char path[TDI_BACKUP_PATH];
    (void)user;
    backup_path(0, path);
    if (td_training_epoch(training) > 0 || link(path, scratch_path("first.npz")) == 0)
        return TD_OK;
    return td_training_fail(training, TD_INTERNAL, "there is no backup yet");
}

static td_status note_epoch(void *user, td_training *training, td_epoch *epoch)
{
    (void)training;
    fprintf(user, "%d\n", epoch->epoch);
    return TD_OK;
}

static void visit_notes(void *user, td_training *training, td_state *state)
{
    (void)training;
    td_state_file(state, "file", NULL, user);
}

static outcome go_noting(run *r, td_callback_functions functions)
{
    FILE *file = fopen(scratch_path("notes"), "a+");
    functions.epoch_end = note_epoch;
    functions.state = visit_notes;
    functions.name = "notes";
    r->more = td_callback_create(&functions, file);
    outcome o = go(r);
    fclose(file);
    assert_int_equal(o.status, TD_OK);
    return o;
}

/* A run killed before its second backup has appended to files what the next one appends again: they are cut back to
 * what stood in them before, and no further. */
static void nothing_is_before_the_first_backup(void **state)
{
    (void)state;
    run r = {.kind = SMALL_MLP};
    char path[TDI_BACKUP_PATH];
    size_t size, size_again;
    clear();
    FILE *file = fopen(scratch_path("notes"), "w");
    fputs("what another run wrote\n", file);
    fclose(file);
    outcome whole = go_noting(&r, (td_callback_functions){.epoch_begin = keep_first});
    char *notes = scratch_read("notes", &size);
    mkdir(scratch_path("backups"), 0777);
    backup_path(0, path);
    assert_int_equal(rename(scratch_path("first.npz"), path), 0);
    outcome resumed = go_noting(&r, (td_callback_functions){0});
    char *notes_again = scratch_read("notes", &size_again);
    assert_int_equal(r.resumed, 1);
    expect_equal(&whole, &resumed);
    assert_int_equal(size, size_again);
    assert_memory_equal(notes, notes_again, size);
    unlink(scratch_path("notes"));
    clear();
    free(notes);
    free(notes_again);
    free(whole.weights);
    free(resumed.weights);
}

/* ---- what is left ---- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void the_backup_is_removed_unless_kept(void **state)
{
    (void)state;
    char path[2][TDI_BACKUP_PATH];
    backup_path(0, path[0]);
    backup_path(1, path[1]);
    run r = {.kind = SMALL_MLP, .save_freq = 2, .patient = true};
    clear();
    free(go(&r).weights);
    assert_false(exists(scratch_path("backups")));
    r.keep = TD_NO;
    free(go(&r).weights);
    assert_true(exists(path[0]) && exists(path[1]));
    int64_t iteration = 0;
    for (int i = 0; i < 2; i++) { /* nothing is left to do */
        outcome o = go(&r);
        assert_int_equal(o.status, TD_OK);
        assert_true(!iteration || iteration == o.iteration);
        iteration = o.iteration;
        free(o.weights);
    }
    clear();
    r.once = TD_NO;
    r.patient = false;
    free(go(&r).weights);
    assert_true(exists(path[0]) && !exists(path[1]));
    clear();
}

/* ---- one's own callback ---- */

typedef struct own {
    double sum, best;
    int64_t epochs;
    float window[3];
    FILE *file;
} own;

static td_status own_epoch(void *user, td_training *training, td_epoch *epoch)
{
    own *self = user;
    (void)training;
    self->sum += epoch->logs.entry[0].value;
    self->window[epoch->epoch % 3] = (float)epoch->logs.entry[0].value;
    self->epochs++;
    fprintf(self->file, "%d\n", epoch->epoch);
    return TD_OK;
}

static void own_state(void *user, td_training *training, td_state *state)
{
    own *self = user;
    (void)training;
    td_state_number(state, "sum", &self->sum);
    td_state_number(state, "best", &self->best);
    td_state_count(state, "epochs", &self->epochs);
    td_state_floats(state, "window", self->window, 3);
    td_state_file(state, "notes", scratch_path("notes"), self->file);
}

static own own_run(int64_t stop_at)
{
    own o = {.best = INFINITY, .file = fopen(scratch_path("notes"), "a+")};
    run r = {.kind = SMALL_MLP, .stop_at = stop_at};
    r.more =
        td_callback_create(&(td_callback_functions){.epoch_end = own_epoch, .name = "own", .state = own_state}, &o);
    free(go(&r).weights);
    fclose(o.file);
    return o;
}

static void ones_own_callback_is_restored(void **state)
{
    (void)state;
    size_t size, again;
    clear();
    own whole = own_run(0);
    char *notes = scratch_read("notes", &size);
    unlink(scratch_path("notes"));
    own_run(8);
    FILE *file = fopen(scratch_path("notes"), "a");
    fputs("written after the backup\n", file);
    fclose(file);
    own resumed = own_run(0);
    assert_true(whole.sum == resumed.sum && resumed.best == INFINITY);
    assert_int_equal(whole.epochs, resumed.epochs);
    assert_memory_equal(whole.window, resumed.window, sizeof whole.window);
    char *notes_again = scratch_read("notes", &again);
    assert_int_equal(size, again);
    assert_memory_equal(notes, notes_again, size);
    unlink(scratch_path("notes"));
    /* Another file of the name is kept beside. */
    own_run(8);
    scratch_write("notes", "not it at all, but longer", 25);
    own_run(0);
    free(notes_again);
    notes_again = scratch_read("notes.1", &again);
    assert_true(again == 25 && memcmp(notes_again, "not it at all, but longer", 25) == 0);
    free(notes_again);
    notes_again = scratch_read("notes", &again);
    assert_true(again > 0 && again < size && memcmp(notes_again, notes + size - again, again) == 0);
    assert_non_null(strstr(warnings, "is not as it was when the backup was made: it is kept as "));
    unlink(scratch_path("notes"));
    unlink(scratch_path("notes.1"));
    free(notes);
    free(notes_again);
}

/* ---- TensorBoard's files ---- */

/* The bytes of the one file in a folder, which is removed. */
static int64_t take_events(const char *folder)
{
    char path[1024];
    struct stat facts = {0};
    int files = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        if (strncmp(entry->d_name, "events.", 7) == 0) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            assert_int_equal(stat(path, &facts), 0);
            unlink(path);
            files++;
        }
    closedir(list);
    assert_int_equal(files, 1);
    return facts.st_size;
}

static void sizes_of(int64_t sizes[3])
{
    static const char *const folders[] = {"board/train", "board/validation", "board"};
    for (int i = 0; i < 3; i++) {
        sizes[i] = take_events(scratch_path(folders[i]));
        rmdir(scratch_path(folders[i]));
    }
}

static void tensorboard_goes_on_in_its_files(void **state)
{
    (void)state;
    run r = {.kind = SMALL_MLP, .save_freq = 1000};
    int64_t whole[3], resumed[3];
    clear();
    for (int shard = 0; shard < 3; shard++) {
        r.stop_at = shard == 1 ? 12 : 0;
        r.more = td_tensorboard(scratch_path("board"), .update_freq = 2);
        free(go(&r).weights);
        if (shard != 1)
            sizes_of(shard ? resumed : whole);
    }
    assert_memory_equal(whole, resumed, sizeof whole);
}

/* ---- the writer ---- */

static void the_newest_is_what_is_written(void **state)
{
    (void)state;
    enum { GIVEN = 200 };
    tdi_backup_writer *writer;
    tdi_error error = {0};
    static float values[5000];
    mkdir(scratch_path("backups"), 0777);
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch_path("backups"));
    assert_int_equal(tdi_backup_writer_create(folder, -1, true, &writer, &error), TD_OK);
    for (int64_t i = 1; i <= GIVEN; i++) {
        td_state *to = tdi_backup_writer_take(writer);
        tdi_state_begin(to);
        tdi_state_enter(to, "run", NULL);
        td_state_count(to, "sequence", &i);
        for (int k = 0; k < 5000; k++)
            values[k] = (float)i;
        td_state_floats(to, "values", values, 5000);
        tdi_backup_writer_give(writer, to);
    }
    tdi_backup_writer_finish(writer);
    assert_int_equal(tdi_backup_writer_outcome(writer, &error), TD_OK);
    tdi_backup_writer_free(writer);
    char path[TDI_BACKUP_PATH];
    td_state found;
    backup_path(newest(), path);
    assert_int_equal(tdi_state_read(&found, path, &error), TD_OK);
    int64_t sequence = 0;
    tdi_state_enter(&found, "run", NULL);
    td_state_count(&found, "sequence", &sequence);
    td_state_floats(&found, "values", values, 5000);
    assert_int_equal(sequence, GIVEN);
    assert_true(values[0] == GIVEN && values[4999] == GIVEN);
    tdi_state_release(&found);
    clear();
}

static int drop_all(void **state)
{
    clear();
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_run_goes_on),
        cmocka_unit_test(the_number_of_replicas_may_change),
        cmocka_unit_test(columns_are_those_of_before),
        cmocka_unit_test(kernels_are_those_of_before),
        cmocka_unit_test(rules_are_those_of_before),
        cmocka_unit_test(another_run_is_refused),
        cmocka_unit_test(a_folder_in_use_is_refused),
        cmocka_unit_test(the_last_good_one_is_found),
        cmocka_unit_test(what_is_no_backup_is_not_overwritten),
        cmocka_unit_test(a_full_disk_ends_nothing),
        cmocka_unit_test(the_backup_is_removed_unless_kept),
        cmocka_unit_test(ones_own_callback_is_restored),
        cmocka_unit_test(tensorboard_goes_on_in_its_files),
        cmocka_unit_test(the_newest_is_what_is_written),
        cmocka_unit_test(nothing_is_before_the_first_backup),
    };
    return cmocka_run_group_tests(tests, scratch_create, drop_all);
}
