/* States of one architecture take turns in one plan: each ends as the model that is trained alone with its weights, its
 * numbers and its seed, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/runtime_struct.h"
#include "support/small.h"
#include "train/batch_feed.h"

enum { ROWS = 8, STEPS = 5, TURN = 2 /* steps before the other's turn */ };

static float x[STEPS * ROWS * SMALL_SAMPLE], y[STEPS * ROWS];

/* What one of the two is, as it is made to train alone. */
typedef struct member {
    td_optimizer optimizer;
    float dropout;
    uint64_t seed;
} member;

typedef struct net {
    const char *name;
    td_tensor *(*make)(td_tensor *in, float dropout);
    member members[2];
} net;

static td_tensor *images(td_tensor *in, float dropout)
{
    in = td_batch_normalization(td_conv2d(in, 3, 3, .activation = TD_RELU));
    return td_dense(td_dropout(td_dense(td_flatten(in), 19), dropout), SMALL_CLASSES);
}

static td_tensor *steps(td_tensor *in, float dropout)
{
    in = td_reshape(in, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH * SMALL_CHANNELS));
    return td_dense(td_lstm(in, 12, .stateful = TD_YES, .dropout = dropout), SMALL_CLASSES);
}

static const net nets[] = {
    {"images",
     images,
     {{{.kind = TD_OPTIMIZER_ADAM, .learning_rate = 0.01f}, 0.25f, 3},
      {{.kind = TD_OPTIMIZER_ADAM,
        .learning_rate = 0.003f,
        .beta_1 = {1, 0.8f},
        .beta_2 = {1, 0.99f},
        .epsilon = {1, 1e-5f},
        .weight_decay = 0.02f,
        .clipvalue = 0.5f},
       0.5f,
       4}}},
    {"averages",
     images,
     {{{.kind = TD_OPTIMIZER_ADAM, .use_ema = TD_YES, .global_clipnorm = 1}, 0.25f, 3},
      {{.kind = TD_OPTIMIZER_ADAM,
        .use_ema = TD_YES,
        .ema_momentum = {1, 0.6f},
        .ema_overwrite_frequency = 2,
        .global_clipnorm = 0.1f},
       0.25f,
       3}}},
    {"steps",
     steps,
     {{{.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.1f, .momentum = 0.9f}, 0.1f, 5},
      {{.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.02f, .momentum = 0.5f}, 0.3f, 5}}},
};

static td_model *make(td_context *context, const net *net, const member *member, int workers, int threads)
{
    td_tensor *in = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .batch_size = ROWS);
    td_model *model = td_model_create(in, net->make(in, member->dropout), .seed = member->seed);
    td_compile(model, .optimizer = member->optimizer, .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS);
    assert_string_equal(td_error(context), "");
    model->compiled.by_rules = true;
    tdi_configuration configuration = {
        .division = {.replicas = 1, .shards = workers, .groups = 1, .workers = workers, .threads = threads}};
    assert_int_equal(tdi_configure(model, configuration, ROWS, NULL), TD_OK);
    assert_int_equal(tdi_model_need_slots(model, NULL), TD_OK);
    return model;
}

static void run(tdi_runtime *runtime, tdi_mode mode, int step, uint64_t seed)
{
    tdi_array_feed feed = {.slots = {x + step * ROWS * SMALL_SAMPLE, y + step * ROWS}, .per_row = {SMALL_SAMPLE, 1}};
    tdi_error error = {0};
    tdi_job job = {
        .mode = mode, .feed = tdi_feed_arrays(&feed), .steps = 1, .batch = ROWS, .samples = ROWS, .seed = seed};
    assert_int_equal(tdi_runtime_run(runtime, &job, &error), TD_OK);
}

static double loss_of(tdi_runtime *runtime, uint64_t seed)
{
    td_logs logs = {0};
    tdi_runtime_reset_sums(runtime, TDI_EVALUATE);
    run(runtime, TDI_EVALUATE, 0, seed);
    tdi_runtime_logs(runtime, TDI_EVALUATE, "", &logs);
    return logs.entry[0].value;
}

static void expect_same(const net *net, int which, const tdi_model_state *a, const tdi_model_state *b)
{
    size_t total = (size_t)a->architecture->total, trained = (size_t)a->architecture->trained;
    if (memcmp(tdi_model_state_values(a), tdi_model_state_values(b), total * sizeof(float)) != 0)
        fail_msg("%s: the values of member %d are not what they are alone", net->name, which);
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (tdi_model_state_slots(a, s))
            assert_memory_equal(tdi_model_state_slots(a, s), tdi_model_state_slots(b, s), trained * sizeof(float));
    assert_int_equal(a->iteration, b->iteration);
}

static void check(const net *net, int workers, int threads)
{
    td_context *context = td_context_create(NULL), *contexts[2];
    td_model *alone[2], *shared = make(context, net, &net->members[0], workers, threads);
    tdi_model_state *states[2];
    double losses[2];
    for (int i = 0; i < 2; i++) {
        contexts[i] = td_context_create(NULL);
        alone[i] = make(contexts[i], net, &net->members[i], workers, threads);
        assert_int_equal(tdi_model_state_copy(alone[i]->state, true, &states[i], NULL), TD_OK);
        states[i]->dropout[0] = net->members[i].dropout;
        for (int step = 0; step < STEPS; step++)
            run(tdi_runtime_own(alone[i]), TDI_TRAIN, step, net->members[i].seed);
        losses[i] = loss_of(tdi_runtime_own(alone[i]), net->members[i].seed);
    }
    for (int first = 0; first < STEPS; first += TURN)
        for (int i = 0; i < 2; i++) {
            tdi_runtime_put_state(tdi_runtime_own(shared), states[i]);
            for (int step = first; step < first + TURN && step < STEPS; step++)
                run(tdi_runtime_own(shared), TDI_TRAIN, step, net->members[i].seed);
        }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++) {
            tdi_runtime_put_state(tdi_runtime_own(shared), states[i]);
            if (round == 0)
                assert_true(loss_of(tdi_runtime_own(shared), net->members[i].seed) == losses[i]);
            else
                expect_same(net, i, states[i], alone[i]->state);
        }
    td_context_free(context);
    for (int i = 0; i < 2; i++) {
        tdi_model_state_free(states[i]);
        td_context_free(contexts[i]);
    }
}

static void each_ends_as_it_does_alone(void **state)
{
    (void)state;
    small_data(STEPS * ROWS, x, y);
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        check(&nets[n], 1, 1);
        check(&nets[n], 1, 2);
        check(&nets[n], 2, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_ends_as_it_does_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
