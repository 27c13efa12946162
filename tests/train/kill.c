/* A run that is killed with SIGKILL at random moments, some while a backup is being written, and resumed each time,
 * ends with the weights and the log of the run that never was, bit for bit. TANDEM_KILLS is how many times each (200).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tandem/tandem.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 8, EPOCHS = 4, SAVE_FREQ = 3, STEPS = 20 };

typedef struct setting {
    const char *devices[2]; /* each start takes one of them */
    int shards;
    enum { ARRAYS, STREAM, ENDLESS } source;
} setting;

typedef struct place {
    char backups[256], weights[256], log[256];
    char torn[256]; /* the name of what the last kill left half written; "": nothing */
} place;

static place place_in(const char *name)
{
    place p = {.torn = ""};
    snprintf(p.backups, sizeof p.backups, "%s-backups", scratch_path(name));
    snprintf(p.weights, sizeof p.weights, "%s-weights.npy", scratch_path(name));
    snprintf(p.log, sizeof p.log, "%s-log.csv", scratch_path(name));
    return p;
}

static void place_clear(const place *p)
{
    td_backup_remove(p->backups);
    unlink(p->weights);
    unlink(p->log);
}

/* ---- the run ---- */

static td_model *make_model(td_context *context, td_strategy strategy)
{
    td_tensor *x = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *y = td_batch_normalization(td_conv2d(x, 3, 3, .padding = TD_SAME));
    y = td_dropout(td_flatten(td_activation_layer(y, TD_RELU)), 0.3f);
    y = td_dense(td_dense(y, 33, .activation = TD_TANH), SMALL_CLASSES);
    td_model *model = td_model_create(x, y, .name = "killed", .seed = 12);
    if (model)
        td_compile(model, .optimizer = td_adam(.learning_rate = 0.01f),
                   .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY),
                   .strategy = strategy);
    return model;
}

/* So that there is time to be killed in. */
static td_status linger(void *user, td_training *training, const td_logs *logs)
{
    (void)user;
    (void)training;
    (void)logs;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return TD_OK;
}

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

/* The samples in turn, round and round or to their end. */
static td_status next(void *user, void *const *to_x, void *const *to_y)
{
    int64_t *at = user, sample = *at % SAMPLES;
    if (*at >= SAMPLES && at[1] == STREAM)
        return TD_STOPPED;
    memcpy(to_x[0], x + sample * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    memcpy(to_y[0], y + sample, sizeof *y);
    ++*at;
    return TD_OK;
}

static td_status restart(void *user)
{
    *(int64_t *)user = 0;
    return TD_OK;
}

static td_data *make_data(const setting *s)
{
    static int64_t stream[2]; /* where it is, and which */
    const td_shape shape = TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
    small_data(SAMPLES, x, y);
    stream[1] = s->source;
    if (s->source == ARRAYS)
        return td_arrays(SAMPLES, x, shape, .y = y);
    return td_generator(shape, .next = next, .restart = s->source == STREAM ? restart : NULL, .user = stream);
}

static int run(const place *p, const char *devices, const setting *s)
{
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, td_mirrored(devices, .shards = s->shards));
    td_data *data = td_augment(make_data(s), .flip = TD_FLIP_HORIZONTAL, .crop = 1, .rotation = 0.1f, .value_max = 3);
    bool endless = s->source == ENDLESS;
    td_status status =
        td_fit(model, data, .epochs = EPOCHS, .batch_size = BATCH, .validation_split = endless ? 0 : 40,
               .validation = endless ? make_data(&(setting){0}) : NULL, .steps_per_epoch = endless ? STEPS : 0,
               .shuffle_buffer = s->source == ARRAYS ? 0 : 20,
               .callbacks = TD_CALLBACKS(
                   td_backup_and_restore(p->backups, .save_freq = SAVE_FREQ, .delete_checkpoint = TD_NO),
                   td_reduce_lr_on_plateau(.patience = TD_SET(1), .min_delta = TD_SET(0.2f), .factor = TD_SET(0.5f)),
                   td_csv_logger(p->log), td_callback_create(&(td_callback_functions){.batch_end = linger}, NULL),
                   td_early_stopping(.patience = 3, .restore_best_weights = TD_YES)));
    int64_t count = 0;
    float *weights = status == TD_OK ? small_weights(model, &count) : NULL;
    if (weights)
        status = td_save_npy(context, p->weights, weights, &TD_SHAPE(count));
    if (status != TD_OK)
        fprintf(stderr, "%s\n", td_error(context));
    free(weights);
    td_context_free(context);
    return status == TD_OK ? 0 : 1;
}

static pid_t start(const place *p, const char *devices, const setting *s)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run(p, devices, s));
    return child;
}

/* ---- killing it ---- */

/* A write that was begun after the last kill; `name` receives its file's. */
static bool is_writing(const place *p, char name[256])
{
    DIR *list = opendir(p->backups);
    const struct dirent *entry;
    bool found = false;
    while (list && !found && (entry = readdir(list))) {
        found = strncmp(entry->d_name, ".tandem-", 8) == 0 && strcmp(entry->d_name, p->torn) != 0;
        snprintf(name, 256, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    return found;
}

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)}, NULL);
}

static bool is_running(pid_t child)
{
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == 0;
}

/* For so many seconds, or until the child is done. */
static void pause_beside(pid_t child, double seconds)
{
    double until = tdi_seconds() + seconds;
    while (tdi_seconds() < until && is_running(child))
        pause_for(fmin(1e-3, fmax(until - tdi_seconds(), 0)));
}

/* True when the child was killed, and not done before. Every other time the kill waits for a backup to be begun. */
static bool kill_at_random(pid_t child, place *p, double longest, tdi_random *random, int *in_write)
{
    int status;
    char name[256];
    pause_beside(child, longest * tdi_random_uniform(random));
    if (tdi_random_below(random, 2)) {
        while (!is_writing(p, name) && is_running(child))
            pause_for(5e-5);
        pause_for(3e-4 * tdi_random_uniform(random));
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    if (is_writing(p, name)) {
        memcpy(p->torn, name, sizeof name);
        ++*in_write;
    }
    return WIFSIGNALED(status);
}

static void finish(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static char *content(const char *path, size_t *size)
{
    char *bytes = malloc(1 << 20);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void expect_same(const char *a, const char *b)
{
    size_t size_a, size_b;
    char *bytes_a = content(a, &size_a), *bytes_b = content(b, &size_b);
    if (size_a != size_b || memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s and %s differ", a, b);
    free(bytes_a);
    free(bytes_b);
}

static int kills_wanted(void)
{
    const char *given = getenv("TANDEM_KILLS");
    return given ? atoi(given) : 200;
}

static void kill_often(const setting *s)
{
    place whole = place_in("whole"), killed = place_in("killed");
    tdi_random random = tdi_random_create(5, (uint64_t)s->shards + 3 * (uint64_t)s->source);
    int kills = 0, in_write = 0, ends = 0;
    double began = tdi_seconds();
    finish(start(&whole, s->devices[0], s));
    double longest = tdi_seconds() - began;
    bool from_its_start = true;
    int wanted = kills_wanted(), wanted_in_write = (wanted + 19) / 20;
    while (kills < wanted || (in_write < wanted_in_write && kills < 20 * wanted)) {
        const char *devices = s->devices[tdi_random_below(&random, 2)];
        double started = tdi_seconds();
        if (kill_at_random(start(&killed, devices, s), &killed, longest, &random, &in_write)) {
            kills++;
            from_its_start = false;
            continue;
        }
        if (from_its_start) /* the first run of all may have been a slow one */
            longest = fmin(longest, tdi_seconds() - started);
        from_its_start = true;
        expect_same(whole.weights, killed.weights);
        expect_same(whole.log, killed.log);
        place_clear(&killed);
        ends++;
    }
    finish(start(&killed, s->devices[1], s));
    expect_same(whole.weights, killed.weights);
    expect_same(whole.log, killed.log);
    print_message("%d kills, %d of them within a write, in %d runs, %.1f s\n", kills, in_write, ends + 1,
                  tdi_seconds() - began);
    assert_true(in_write >= wanted_in_write);
    place_clear(&whole);
    place_clear(&killed);
}

static void one_replica(void **state)
{
    (void)state;
    kill_often(&(setting){{test_devices(1), test_devices(1)}, 0, ARRAYS});
}

static void two_replicas(void **state)
{
    (void)state;
    kill_often(&(setting){{test_devices(2), test_devices(2)}, 0, ARRAYS});
}

static void replicas_that_change(void **state)
{
    (void)state;
    kill_often(&(setting){{test_devices(1), test_devices(2)}, 2, ARRAYS});
}

/* A new process has the stream from its beginning. */
static void streams(void **state)
{
    (void)state;
    kill_often(&(setting){{test_devices(1), test_devices(1)}, 0, STREAM});
    kill_often(&(setting){{test_devices(1), test_devices(2)}, 2, ENDLESS});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_replica),
        cmocka_unit_test(two_replicas),
        cmocka_unit_test(replicas_that_change),
        cmocka_unit_test(streams),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
