/* td_request_stop while samples are being made: those under way are awaited and no other is begun, whatever the call
 * is at; what was not whole is not trained on, and a run that goes on from its backup is the run that never stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "base/machine.h"
#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 4096, BATCH = 1024, NEVER = 1 << 30 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

/* A generator whose calls wait, from one of them on, until the test lets them go. */
typedef struct gate {
    int64_t samples, at, calls;
    int64_t held; /* the first call that waits */
    bool holds_restart, open;
    int waiting;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} gate;

static gate gate_of(int64_t samples, int64_t held)
{
    return (gate){
        .samples = samples, .held = held, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

static void wait_at(gate *of)
{
    of->waiting++;
    pthread_cond_broadcast(&of->changed);
    while (!of->open)
        pthread_cond_wait(&of->changed, &of->lock);
}

static void give(int64_t sample, void *const *to_x, void *const *to_y)
{
    if (to_x[0])
        memcpy(to_x[0], x + sample * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    if (to_y[0])
        memcpy(to_y[0], y + sample, sizeof *y);
}

static td_status any(void *user, int64_t sample, void *const *to_x, void *const *to_y)
{
    gate *of = user;
    pthread_mutex_lock(&of->lock);
    if (of->calls++ >= of->held)
        wait_at(of);
    pthread_mutex_unlock(&of->lock);
    give(sample, to_x, to_y);
    return TD_OK;
}

static td_status next(void *user, void *const *to_x, void *const *to_y)
{
    gate *of = user;
    return of->at == of->samples ? TD_STOPPED : any(user, of->at++, to_x, to_y);
}

static td_status restart(void *user)
{
    gate *of = user;
    of->at = 0;
    if (!of->holds_restart)
        return TD_OK;
    pthread_mutex_lock(&of->lock);
    wait_at(of);
    pthread_mutex_unlock(&of->lock);
    return TD_OK;
}

/* ---- calls ---- */

typedef struct call {
    td_context *context;
    td_model *model;
    td_data *data;
    td_status (*make)(struct call *call);
    td_status status;
    float *output;
} call;

static td_status make_fit(call *c)
{
    return td_fit(c->model, c->data, .batch_size = BATCH, .shuffle = TD_NO);
}

static td_status make_later_epoch(call *c)
{
    return td_fit(c->model, c->data, .batch_size = BATCH, .initial_epoch = 2, .epochs = 3, .steps_per_epoch = 1);
}

static td_status make_adapted_fit(call *c)
{
    return td_fit(c->model, c->data, .batch_size = BATCH, .adapt = TD_YES);
}

static td_status make_backed_up_fit(call *c)
{
    td_status status =
        td_fit(c->model, c->data, .callbacks = TD_CALLBACKS(td_backup_and_restore(scratch_path("asked"))));
    td_backup_remove(scratch_path("asked"));
    return status;
}

static td_status make_validated_fit(call *c)
{
    td_data *train = td_arrays(8, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    return td_fit(c->model, train, .validation = c->data, .batch_size = BATCH);
}

static td_status make_evaluate(call *c)
{
    return td_evaluate(c->model, c->data, NULL, .batch_size = BATCH);
}

static td_status make_predict(call *c)
{
    return td_predict(c->model, c->data, c->output, SAMPLES * SMALL_CLASSES, .batch_size = SAMPLES);
}

static void *make_call(void *argument)
{
    call *c = argument;
    c->status = c->make(c);
    return NULL;
}

static td_model *model_with_normalization(td_context *context)
{
    td_tensor *input = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *output = td_dense(td_flatten(td_normalization(input)), SMALL_CLASSES);
    td_model *model = td_model_create(input, output, .seed = 12);
    assert_int_equal(td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                .strategy = td_mirrored(test_devices(0))),
                     TD_OK);
    return model;
}

/* Each thread ends the call that it is in, if it is in one, and begins no other. */
static void expect_stop(gate *of, td_data *data, td_status (*make)(call *), int64_t most)
{
    pthread_t thread;
    call c = {.context = td_context_create(NULL), .data = data, .make = make, .output = malloc(sizeof x)};
    c.model = model_with_normalization(c.context);
    assert_int_equal(pthread_create(&thread, NULL, make_call, &c), 0);
    pthread_mutex_lock(&of->lock);
    while (!of->waiting)
        pthread_cond_wait(&of->changed, &of->lock);
    td_request_stop(c.context);
    of->open = true;
    pthread_cond_broadcast(&of->changed);
    pthread_mutex_unlock(&of->lock);
    pthread_join(thread, NULL);
    assert_int_equal(c.status, TD_STOPPED);
    assert_string_equal(td_error(c.context), "");
    assert_true(of->calls <= most);
    free(c.output);
    td_context_free(c.context);
}

static td_shape shape(void)
{
    return TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
}

static td_status copy(void *user, const td_map_sample *sample)
{
    (void)user;
    memcpy(sample->to_x[0], sample->x[0], SMALL_SAMPLE * sizeof *x);
    return TD_OK;
}

static void test_any_sample(void **state)
{
    (void)state;
    td_status (*const calls[])(call *) = {make_fit,           make_evaluate,      make_predict,
                                          make_validated_fit, make_backed_up_fit, make_adapted_fit};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int stage = 0; stage < 3; stage++) {
            gate of = gate_of(SAMPLES, 10);
            td_data *data = td_generator(shape(), .read = any, .samples = SAMPLES, .user = &of);
            if (stage == 1)
                data = td_augment(td_repeat(data, 1), .crop = 1);
            if (stage == 2)
                data = td_map(data, .function = copy);
            expect_stop(&of, data, calls[i], of.held + tdi_cores_allowed());
        }
}

static void test_a_stream(void **state)
{
    (void)state;
    td_status (*const calls[])(call *) = {make_fit, make_evaluate, make_predict, make_validated_fit};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int counted = 0; counted < 2; counted++)
            for (int64_t held = counted ? SAMPLES - 1 : 0; held < SAMPLES; held += 1500) {
                gate of = gate_of(SAMPLES, held);
                td_data *data = td_generator(shape(), .next = next, .restart = restart, .user = &of,
                                             .samples = counted ? 0 : SAMPLES);
                expect_stop(&of, data, calls[i], held + 1);
            }
}

static void test_a_stream_s_beginning(void **state)
{
    (void)state;
    for (int counted = 0; counted < 2; counted++) {
        gate of = gate_of(SAMPLES, NEVER);
        of.holds_restart = true;
        td_data *data =
            td_generator(shape(), .next = next, .restart = restart, .user = &of, .samples = counted ? 0 : SAMPLES);
        expect_stop(&of, data, make_fit, 0);
    }
}

/* Two epochs are taken from the stream and left before the third begins. */
static void test_what_is_taken_and_left(void **state)
{
    (void)state;
    gate of = gate_of(SAMPLES, 1500);
    expect_stop(&of, td_generator(shape(), .next = next, .user = &of), make_later_epoch, of.held + 1);
}

/* ---- going on ---- */

enum { FEW = 43, FEW_AT_ONCE = 8, EPOCHS = 3 };

static td_status make_short_fit(call *c)
{
    return td_fit(c->model, c->data, .batch_size = FEW_AT_ONCE, .epochs = EPOCHS, .shuffle_buffer = 5, .seed = 3,
                  .callbacks = TD_CALLBACKS(td_backup_and_restore(scratch_path("backups"))));
}

static float *trained(td_data *data)
{
    int64_t count;
    call c = {.context = td_context_create(NULL), .data = data};
    c.model = model_with_normalization(c.context);
    assert_int_equal(make_short_fit(&c), TD_OK);
    float *weights = small_weights(c.model, &count);
    td_context_free(c.context);
    return weights;
}

static void test_a_run_goes_on(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        gate free_of = gate_of(FEW, NEVER);
        td_generator_args args = {.x_shape = shape(), .samples = FEW};
        args.read = stream ? NULL : any;
        args.next = stream ? next : NULL;
        args.restart = stream ? restart : NULL;
        args.user = &free_of;
        float *whole = trained(td_generator_(&args));
        for (int64_t held = 3; held < EPOCHS * FEW; held += 17) {
            gate of = gate_of(FEW, held);
            args.user = &of;
            expect_stop(&of, td_generator_(&args), make_short_fit, held + tdi_cores_allowed());
            args.user = &free_of;
            float *resumed = trained(td_generator_(&args));
            assert_memory_equal(whole, resumed, (SMALL_SAMPLE + 1) * SMALL_CLASSES * sizeof *whole);
            free(resumed);
        }
        free(whole);
    }
}

/* ---- a validation stream that cannot begin again ---- */

static td_status stop_at_second(void *user, td_training *training, td_epoch *epoch)
{
    (void)training;
    if (epoch->epoch == 1)
        td_request_stop(user);
    return TD_OK;
}

static td_status fit_validated(td_context *context, bool stops, const char *name)
{
    gate of = gate_of(SAMPLES, NEVER);
    char backups[64], log[64];
    snprintf(backups, sizeof backups, "%s-backups", name);
    snprintf(log, sizeof log, "%s.csv", name);
    td_callback *asks =
        td_callback_create(&(td_callback_functions){.epoch_end = stops ? stop_at_second : NULL}, context);
    td_data *train = td_arrays(8, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    return td_fit(model_with_normalization(context), train, .epochs = 4, .batch_size = FEW_AT_ONCE,
                  .validation =
                      td_generator(TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .next = next, .user = &of),
                  .validation_steps = 3,
                  .callbacks = TD_CALLBACKS(td_csv_logger(scratch_path(log), .append = TD_YES), asks,
                                            td_backup_and_restore(scratch_path(backups))));
}

static void read_log(const char *name, char *text, size_t size)
{
    char log[64];
    snprintf(log, sizeof log, "%s.csv", name);
    FILE *file = fopen(scratch_path(log), "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void test_validation_goes_on(void **state)
{
    (void)state;
    const char *const names[] = {"whole", "parts"};
    char logs[2][2048];
    for (int i = 0; i < 2; i++) {
        td_context *context = td_context_create(NULL);
        if (i)
            assert_int_equal(fit_validated(context, true, names[i]), TD_STOPPED);
        td_context *again = td_context_create(NULL);
        assert_int_equal(fit_validated(again, false, names[i]), TD_OK);
        td_context_free(context);
        td_context_free(again);
        read_log(names[i], logs[i], sizeof logs[i]);
    }
    assert_string_equal(logs[0], logs[1]);
}

int main(void)
{
    small_data(SAMPLES, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_sample),           cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_a_stream_s_beginning), cmocka_unit_test(test_what_is_taken_and_left),
        cmocka_unit_test(test_a_run_goes_on),        cmocka_unit_test(test_validation_goes_on),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
