/* How many threads share each op of a step, and that steps are the same however many there are: more than there are
 * cores here, so that they sleep where they wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "profile/explain.h"
#include "runtime/runtime_struct.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 64, SIDE = 28, SAMPLE = SIDE * SIDE, CLASSES = 10, STEPS = 3, MANY_ROWS = 1 << 20 };

#ifdef __SANITIZE_THREAD__
static const int thread_counts[] = {3}; /* more, on a core or two, take minutes there, and show no other race */
#else
static const int thread_counts[] = {3, 4, 8, 16};
#endif
enum { COUNTS = sizeof thread_counts / sizeof *thread_counts };

static float x[SAMPLES * SAMPLE], y[SAMPLES];

/* Smooth, all of them: a sum next to zero, rounded otherwise, would have another derivative of ReLU. */
static td_tensor *guide(td_tensor *in)
{
    td_tensor *out = td_dense(td_flatten(in), 256, .activation = TD_TANH);
    return td_dense(td_dense(out, 256, .activation = TD_TANH), CLASSES);
}

static td_tensor *tiny(td_tensor *in)
{
    return td_dense(td_dense(td_global_average_pooling2d(in), 16, .activation = TD_TANH), CLASSES);
}

static td_tensor *normalized(td_tensor *in)
{
    td_tensor *out = td_batch_normalization(td_dense(td_flatten(in), 96, .activation = TD_TANH));
    out = td_dropout(out, 0.25f);
    return td_dense(td_dense(out, 64, .activation = TD_TANH, .kernel_regularizer = {.l2 = 1e-3f}), CLASSES);
}

static td_tensor *steps(td_tensor *in)
{
    td_tensor *rows = td_reshape(in, TD_SHAPE(SIDE, SIDE));
    return td_dense(td_lstm(td_lstm(rows, 128, .return_sequences = TD_YES), 64), CLASSES);
}

/* With few samples threads share convolutions, and the gradients of both their inputs, by channels. */
static td_tensor *images(td_tensor *in)
{
    td_tensor *out = td_conv2d(in, 64, 3, .strides = {2, 2}, .padding = TD_SAME, .activation = TD_TANH);
    out = td_batch_normalization(td_conv2d(out, 96, 3, .padding = TD_SAME));
    out = td_conv2d(td_activation_layer(out, TD_TANH), 64, 1, .strides = {2, 2}, .activation = TD_TANH);
    out = td_average_pooling2d(td_conv2d(out, 64, 5, .padding = TD_SAME), 2);
    return td_dense(td_flatten(out), CLASSES);
}

typedef struct net {
    const char *name;
    td_tensor *(*make)(td_tensor *in);
    int64_t batch;
} net;

/* The few rows of an LSTM are shared by units, whose threads wait for each other at every step; many by rows. */
static const net nets[] = {{"guide", guide, 32}, {"tiny", tiny, 8},   {"normalized", normalized, 21},
                           {"units", steps, 2},  {"rows", steps, 64}, {"images", images, 2}};
enum { NETS = sizeof nets / sizeof *nets };

static td_model *make_undivided(td_context *context, const net *net)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, 1));
    td_tensor *out = net->make(in);
    td_model *model = td_model_create(in, out, .seed = 3);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.05f, .momentum = 0.9f),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY),
               .strategy = td_mirrored(test_devices(0)));
    assert_string_equal(td_error(context), "");
    return model;
}

static td_model *make_divided(td_context *context, const net *net, const tdi_division *division)
{
    td_model *model = make_undivided(context, net);
    assert_int_equal(tdi_configure(model, (tdi_configuration){.division = *division}, MANY_ROWS, NULL), TD_OK);
    tdi_runtime *runtime = tdi_runtime_own(model);
    runtime->is_trial = true;
    for (int mode = 0; mode < TDI_MODES; mode++)
        tdi_fix_threads(runtime, (tdi_mode)mode, false);
    return model;
}

/* A model whose steps so many workers make, each by `threads` threads that share its ops. */
static td_model *make_model(td_context *context, const net *net, int workers, int threads)
{
    tdi_division d = {.replicas = 1, .shards = workers, .groups = 1, .workers = workers, .threads = threads};
    return make_divided(context, net, &d);
}

/* ---- bits ---- */

static void train_step(td_model *model, const net *net, int step)
{
    int64_t first = step * net->batch % SAMPLES;
    first = first + net->batch > SAMPLES ? 0 : first;
    assert_int_equal(td_train_on_batch(model, net->batch, x + first * SAMPLE, y + first, NULL), TD_OK);
}

/* The weights behind some steps, and what they predict. */
static float *train(const net *net, int workers, int threads, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, net, workers, threads);
    for (int step = 0; step < STEPS; step++)
        train_step(model, net, step);
    float *weights = small_weights(model, count), *all = realloc(weights, (size_t)(*count + CLASSES * net->batch) * 4);
    assert_non_null(all);
    assert_int_equal(td_predict_on_batch(model, net->batch, x, all + *count), TD_OK);
    *count += CLASSES * net->batch;
    td_context_free(context);
    return all;
}

static void check_division(const net *net, int workers, int threads, const float *one)
{
    int64_t count;
    float *first = train(net, workers, threads, &count), *again = train(net, workers, threads, &count);
    double difference = relative_difference(first, one, count);
    if (!(difference < 2e-6))
        fail_msg("%s, %d rows, %d workers of %d threads: off by %g", net->name, (int)net->batch, workers, threads,
                 difference);
    assert_memory_equal(first, again, (size_t)count * sizeof(float));
    free(first);
    free(again);
}

static void threads_make_what_one_makes(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++) {
        int64_t count;
        float *one = train(&nets[n], 1, 1, &count);
        for (int i = 0; i < COUNTS; i++)
            check_division(&nets[n], 1, thread_counts[i], one);
        free(one);
    }
}

/* As fewer rows than cores are trained by. */
static void workers_with_threads_make_what_one_makes(void **state)
{
    (void)state;
    static const int divisions[][2] = {{2, 2}, {2, 3}, {2, 8}, {4, 2}};
    const net *images = &nets[NETS - 1];
    for (int64_t batch = 2; batch <= 5; batch += 3) {
        int64_t count;
        net few = {images->name, images->make, batch};
        float *one = train(&few, 1, 1, &count);
        for (int i = 0; i < (int)(sizeof divisions / sizeof *divisions); i++)
            check_division(&few, divisions[i][0], divisions[i][1], one);
        free(one);
    }
}

/* Replicas with batch statistics of their own, in so many shards: whole steps, and one in halves. */
static float *train_replicas(const net *net, int replicas, int shards, int threads, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    tdi_division d = {
        .replicas = replicas, .shards = shards, .groups = replicas, .workers = shards, .threads = threads};
    td_model *model = make_divided(context, net, &d);
    td_logs logs;
    for (int step = 0; step < STEPS; step++)
        train_step(model, net, step);
    assert_int_equal(td_compute_gradients(model, net->batch, x, y, &logs), TD_OK);
    assert_int_equal(td_apply_gradients(model), TD_OK);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

/* Several replicas to a shard, one, or two shards to each: the same numbers. */
static void replicas_share_shards(void **state)
{
    (void)state;
    enum { REPLICAS = 6 };
    static const int divisions[][2] = {{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {12, 1}};
    static const net normal[] = {{"normalized", normalized, 25}, {"images", images, 25}};
    for (size_t n = 0; n < 2; n++) {
        int64_t count;
        float *separate = train_replicas(&normal[n], REPLICAS, REPLICAS, 1, &count);
        for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++) {
            float *made = train_replicas(&normal[n], REPLICAS, divisions[i][0], divisions[i][1], &count);
            double difference = relative_difference(made, separate, count);
            if (!(difference < 5e-6))
                fail_msg("%s, %d shards of %d threads: off by %g", normal[n].name, divisions[i][0], divisions[i][1],
                         difference);
            free(made);
        }
        free(separate);
    }
}

/* Of one sample cores make each its share, by rules: the suite asks no clock. */
static void a_lone_row_is_trained_by_all_cores(void **state)
{
    (void)state;
    int64_t count;
    net lone = {"one image", images, 1};
    td_context *context = td_context_create(NULL);
    td_model *model = make_undivided(context, &lone);
    for (int step = 0; step < STEPS; step++)
        train_step(model, &lone, step);
    const tdi_division *d = &tdi_runtime_own(model)->division;
    assert_true(d->shards == 1 && d->workers == 1 && d->threads == tdi_cores_allowed());
    float *one = train(&lone, 1, 1, &count), *all = small_weights(model, &count);
    assert_true(relative_difference(all, one, count) < 2e-6);
    free(one);
    free(all);
    td_context_free(context);
}

/* The second of two steps by all threads, or by one thread for all: in turn they find the rows and the control of the
 * step before, which was of the same batch. */
static float *train_twice(const net *net, int threads, bool in_turn, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, net, 1, threads);
    tdi_plan *plans[TDI_MAX_SHARDS];
    train_step(model, net, 0);
    if (in_turn) {
        tdi_mode_state *mode = &tdi_runtime_own(model)->modes[TDI_TRAIN];
        assert_int_equal(tdi_runtime_prepare(tdi_runtime_own(model), TDI_TRAIN, net->batch, plans, NULL), TD_OK);
        assert_int_equal(tdi_plans_run_in_turn(plans, 1, 1, mode->steps + 1, mode->communicators), TD_OK);
    } else {
        train_step(model, net, 0);
    }
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void one_thread_makes_what_threads_make(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++)
        for (int i = 0; i < COUNTS && nets[n].make != normalized; i++) { /* dropout draws anew */
            int64_t count;
            float *threads = train_twice(&nets[n], thread_counts[i], false, &count);
            float *one = train_twice(&nets[n], thread_counts[i], true, &count);
            assert_memory_equal(threads, one, (size_t)count * sizeof(float));
            free(threads);
            free(one);
        }
}

/* ---- numbers ---- */

static char *explain(const net *net, int threads, bool json)
{
    char *text = NULL;
    size_t size = 0;
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, net, 1, threads);
    FILE *out = open_memstream(&text, &size);
    tdi_explain_spec spec = {.mode = TDI_TRAIN, .batch = net->batch, .json = json};
    assert_int_equal(tdi_explain(model, &spec, out, NULL), TD_OK);
    fclose(out);
    td_context_free(context);
    return text;
}

static json_t *list_steps(const net *net, int threads)
{
    char *text = explain(net, threads, true);
    json_t *root = json_loads(text, 0, NULL), *list = json_incref(json_object_get(root, "steps"));
    assert_non_null(list);
    json_decref(root);
    free(text);
    return list;
}

static bool is(const json_t *step, const char *key, const char *text)
{
    return strcmp(json_string_value(json_object_get(step, key)), text) == 0;
}

/* Of the layer's only such op of that pass. */
static int threads_of(const json_t *list, const char *layer, const char *op, const char *pass)
{
    size_t i;
    json_t *step;
    json_array_foreach(list, i, step)
    {
        if (is(step, "layer", layer) && is(step, "op", op) && is(step, "pass", pass))
            return (int)json_integer_value(json_object_get(step, "lanes"));
    }
    fail_msg("no %s of %s", op, layer);
    return 0;
}

static int most_threads(const json_t *list)
{
    size_t i;
    json_t *step;
    int most = 0;
    json_array_foreach(list, i, step)
    {
        int threads = (int)json_integer_value(json_object_get(step, "lanes"));
        most = threads > most ? threads : most;
    }
    return most;
}

static void an_op_gets_the_threads_it_deserves(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        int threads = thread_counts[i];
        json_t *large = list_steps(&nets[0], threads), *small = list_steps(&nets[1], threads);
        assert_int_equal(most_threads(large), threads);
        assert_int_equal(most_threads(small), 1);
        assert_int_equal(threads_of(large, "dense", "matmul", "forward"), threads);
        int last = threads_of(large, "dense_2", "matmul", "forward");
        assert_true(threads < 4 ? last <= threads : last > 1 && last <= 8);
        json_decref(large);
        json_decref(small);
    }
}

/* They update the rows of a weight that they read before. */
static void weights_stay_with_their_threads(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        json_t *list = list_steps(&nets[0], thread_counts[i]);
        int forward = threads_of(list, "dense_1", "matmul", "forward");
        assert_int_equal(threads_of(list, "dense_1", "matmul", "backward"), forward);
        assert_int_equal(threads_of(list, "dense_1", "matmul_update", "update"), forward);
        json_decref(list);
    }
}

/* By units as many as have a vector of them to make, and more where steps are not waited for. */
static void steps_get_the_threads_they_deserve(void **state)
{
    (void)state;
    json_t *units = list_steps(&nets[3], 16), *rows = list_steps(&nets[4], 16);
    int few = threads_of(units, "lstm", "lstm", "forward");
    assert_true(few > 1 && few <= 8);
    assert_true(threads_of(rows, "lstm", "lstm", "forward") > few);
    json_decref(units);
    json_decref(rows);
}

static void fewer_threads_are_said(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        char *text = explain(&nets[0], thread_counts[i], false), few[64];
        snprintf(few, sizeof few, "columns over 8 of %d threads", thread_counts[i]);
        assert_true((strstr(text, few) != NULL) == (thread_counts[i] > 8));
        free(text);
    }
}

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * SAMPLE; i++)
        x[i] = (float)((unsigned)i * 2654435761u % 1000) * 2e-3f - 1;
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)(i % CLASSES);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_make_what_one_makes),
        cmocka_unit_test(workers_with_threads_make_what_one_makes),
        cmocka_unit_test(replicas_share_shards),
        cmocka_unit_test(a_lone_row_is_trained_by_all_cores),
        cmocka_unit_test(one_thread_makes_what_threads_make),
        cmocka_unit_test(an_op_gets_the_threads_it_deserves),
        cmocka_unit_test(weights_stay_with_their_threads),
        cmocka_unit_test(steps_get_the_threads_they_deserve),
        cmocka_unit_test(fewer_threads_are_said),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
