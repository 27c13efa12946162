/* Plain SGD updates the rows of a table that a step read, and gives the bits of the update of the whole table, which a
 * step in halves makes. What changes other rows too, or wants the gradient, keeps the whole table's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/explain.h"
#include "runtime/runtime_struct.h"
#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 700, POSITIONS = 6, SAMPLES = 64, CLASSES = 3, STEPS = 4, MANY_ROWS = 1 << 20 };

static float x[STEPS][SAMPLES * POSITIONS], y[SAMPLES];

/* Half of the numbers are among the first eight: rows that are met again and again. */
static void fill(void)
{
    tdi_random random = tdi_random_create(5, 0);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < SAMPLES * POSITIONS; i++)
            x[step][i] = (float)tdi_random_below(&random, i % 2 ? 8 : ROWS);
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)(i % CLASSES);
}

typedef struct net {
    int64_t width;
    td_optimizer optimizer;
    td_regularizer regularizer;
    int shards; /* 0: one */
} net;

/* The dense layer stays as it is, so that only the table is compared. */
static td_model *make(td_context *context, const net *net, int threads)
{
    td_tensor *in = td_input(context, TD_SHAPE(POSITIONS));
    td_tensor *rows = td_embedding(in, ROWS, net->width, .embeddings_regularizer = net->regularizer);
    td_model *model = td_model_create(in, td_dense(td_flatten(rows), CLASSES, .trainable = TD_NO), .seed = 3);
    td_compile(model, .optimizer = net->optimizer, .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .strategy = td_mirrored(test_devices(0)));
    assert_string_equal(td_error(context), "");
    int shards = net->shards ? net->shards : 1;
    tdi_division division = {.replicas = 1, .shards = shards, .groups = 1, .workers = shards, .threads = threads};
    assert_int_equal(tdi_configure(model, (tdi_configuration){.division = division}, MANY_ROWS, NULL), TD_OK);
    tdi_runtime *runtime = tdi_runtime_own(model);
    runtime->is_trial = true;
    for (int mode = 0; mode < TDI_MODES; mode++)
        tdi_fix_threads(runtime, (tdi_mode)mode, false);
    return model;
}

static float *train(const net *net, int threads, int64_t batch, bool in_halves, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = make(context, net, threads);
    for (int step = 0; step < STEPS; step++) {
        if (!in_halves) {
            assert_int_equal(td_train_on_batch(model, batch, x[step], y, NULL), TD_OK);
            continue;
        }
        assert_int_equal(td_compute_gradients(model, batch, x[step], y, NULL), TD_OK);
        assert_int_equal(td_apply_gradients(model), TD_OK);
    }
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void bits_are_those_of_the_whole_table(void **state)
{
    (void)state;
    const net nets[] = {
        {.width = 5, .optimizer = td_sgd(.learning_rate = 0.3f)},
        {.width = 16, .optimizer = td_sgd(.learning_rate = 0.3f, .clipvalue = 0.01f)},
        {.width = 100, .optimizer = td_sgd(.learning_rate = 0.3f)},
        {.width = 16, .optimizer = td_sgd(.learning_rate = 0.3f, .use_ema = TD_YES, .ema_overwrite_frequency = 2)}};
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++)
        for (int threads = 1; threads <= 3; threads++)
            for (int64_t batch = 1; batch <= SAMPLES; batch += SAMPLES - 1) {
                int64_t count;
                float *rows = train(&nets[n], threads, batch, false, &count);
                small_expect_same(rows, train(&nets[n], threads, batch, true, &count), count);
                free(rows);
            }
}

static bool explains(const net *net, int64_t batch, bool json, const char *words)
{
    char *text = NULL;
    size_t size = 0;
    td_context *context = td_context_create(NULL);
    td_model *model = make(context, net, 2);
    FILE *out = open_memstream(&text, &size);
    tdi_explain_spec spec = {.mode = TDI_TRAIN, .batch = batch, .json = json};
    assert_int_equal(tdi_explain(model, &spec, out, NULL), TD_OK);
    fclose(out);
    bool said = strstr(text, words);
    free(text);
    td_context_free(context);
    return said;
}

static bool is_fused(const net *net)
{
    return explains(net, 8, false, "embedding: scatter_add went into sgd");
}

static void other_updates_are_of_the_whole_table(void **state)
{
    (void)state;
    td_optimizer plain = td_sgd(), others[] = {td_sgd(.momentum = 0.9f),
                                               td_sgd(.weight_decay = 0.01f),
                                               td_sgd(.clipnorm = 1.0f),
                                               td_sgd(.global_clipnorm = 1.0f),
                                               td_sgd(.gradient_accumulation_steps = 2),
                                               td_adam()};
    assert_true(is_fused(&(net){.width = 16, .optimizer = plain}));
    assert_false(is_fused(&(net){.width = 16, .optimizer = plain, .regularizer = {.l2 = 0.1f}}));
    assert_false(is_fused(&(net){.width = 16, .optimizer = plain, .shards = 2}));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(is_fused(&(net){.width = 16, .optimizer = others[i]}));
}

/* Two samples read so many rows at most: they, what is taken from them, and the numbers; and they are written. */
static void only_rows_that_were_read_count(void **state)
{
    (void)state;
    enum { WIDTH = 16, BATCH = 2 };
    char bytes[64];
    int64_t rows = (int64_t)BATCH * POSITIONS * WIDTH * 4;
    snprintf(bytes, sizeof bytes, "\"bytes\": %lld", (long long)(3 * rows + BATCH * POSITIONS * 4));
    assert_true(explains(&(net){.width = WIDTH, .optimizer = td_sgd()}, BATCH, true, bytes));
}

int main(void)
{
    fill();
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_the_whole_table),
                                       cmocka_unit_test(other_updates_are_of_the_whole_table),
                                       cmocka_unit_test(only_rows_that_were_read_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
