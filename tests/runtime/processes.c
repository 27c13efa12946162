/* processes.c - several processes train a model in step: the bits of one process with as many shards, whoever computes
 * which of them; all end at the same step, and what fails in one ends all with its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/tandem.h>

#include "runtime/runtime_struct.h"
#include "support/devices.h"
#include "support/processes.h"
#include "support/small.h"

enum { BATCH = 10, SAMPLES = 43, EPOCHS = 2 }; /* the last batch has 3 rows */

static const char *devices;
static process_wires wires;
static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES], spoilt[SAMPLES * SMALL_SAMPLE];

typedef struct net {
    const char *name;
    small_kind kind;
    bool per_replica; /* batch statistics of each shard */
    td_optimizer optimizer;
} net;

static const net nets[] = {
    {"dense, momentum", SMALL_MLP, false, {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .momentum = 0.9f}},
    {"convolution, Adam", SMALL_CNN, false, {.kind = TD_OPTIMIZER_ADAM}},
    {"statistics per replica", SMALL_NORM, true, {.kind = TD_OPTIMIZER_ADAM}},
    {"merged statistics", SMALL_SYNC, false, {.kind = TD_OPTIMIZER_ADAM}},
    {"dropout, averages", SMALL_DROPOUT, false, {.kind = TD_OPTIMIZER_ADAM, .use_ema = TD_YES}},
    {"LSTM, clipped", SMALL_LSTM, false, {.kind = TD_OPTIMIZER_ADAM, .global_clipnorm = 0.1f}},
    {"clipped each", SMALL_SYNC, false, {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .clipnorm = 0.1f}},
    {"accumulated", SMALL_CNN, false, {.kind = TD_OPTIMIZER_ADAM, .gradient_accumulation_steps = 2}},
};
enum { NETS = sizeof nets / sizeof *nets };

typedef struct deal {
    int processes, first[MOST_PROCESSES + 1];
} deal;

/* Shards alone, and in a row: of powers of two, which a process adds up to one piece, and of others; 3, 1 and 4 of 8
 * are three pieces, one, and another. */
static const deal deals[] = {{2, {0, 1, 2}},  {2, {0, 1, 3}},       {3, {0, 1, 3, 6}},
                             {2, {0, 4, 8}},  {3, {0, 1, 4, 8}},    {3, {0, 3, 4, 8}},
                             {2, {0, 5, 11}}, {4, {0, 1, 2, 6, 7}}, {5, {0, 1, 2, 3, 4, 5}}};
enum { DEALS = sizeof deals / sizeof *deals };

typedef struct result {
    float *weights;
    int64_t count;
    td_status status;
    td_logs logs; /* of the last epoch */
    char sentence[512];
} result;

typedef struct run {
    const net *net;
    group_process *processes; /* NULL: one process alone */
    group_process *alone;
    result results[MOST_PROCESSES];
    int spoils;      /* this process has NaN among its data; -1: none has */
    bool stops_soon; /* the first process is stopped from outside */
} run;

static td_model *make_model(td_context *context, const run *r, int process)
{
    td_model *model = small_model(context, r->net->kind, r->net->optimizer, (td_strategy){.devices = devices});
    assert_string_equal(td_error(context), "");
    model->compiled.strategy = &(r->processes ? &r->processes[process] : r->alone)->strategy;
    return model;
}

static void train_one(void *argument, int process)
{
    run *r = argument;
    result *to = &r->results[process];
    td_epoch last = {0};
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, r, process);
    td_callback *stop[] = {r->stops_soon && process == 0 ? small_stop_soon() : NULL, NULL};
    td_data *data = td_arrays(SAMPLES, r->spoils == process ? spoilt : x,
                              TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    td_data *validation = td_arrays(SAMPLES - 4, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    to->status = td_fit(model, data, .epochs = r->stops_soon ? 1000000 : EPOCHS, .batch_size = BATCH, .seed = 5,
                        .validation = validation, .callbacks = stop[0] ? stop : NULL, .last = &last);
    snprintf(to->sentence, sizeof to->sentence, "%s", td_error(context));
    to->logs = last.logs;
    to->weights = small_weights(model, &to->count);
    td_context_free(context);
}

static void release(run *r, int processes)
{
    for (int p = 0; p < processes; p++)
        free(r->results[p].weights);
}

static void expect_same_logs(const td_logs *a, const td_logs *b)
{
    assert_int_equal(a->count, b->count);
    assert_true(a->count >= 4);
    for (int i = 0; i < a->count; i++) {
        assert_string_equal(a->entry[i].name, b->entry[i].name);
        assert_true(a->entry[i].value == b->entry[i].value);
    }
}

/* The same division, all of it in one process. */
static void train_alone(const net *net, const deal *deal, int groups, run *r)
{
    int first[] = {0, deal->first[deal->processes]};
    group_process alone = {.strategy = tdi_mirrored};
    *r = (run){.net = net, .alone = &alone, .spoils = -1};
    processes_open(&alone, 1, first, groups, 2, wires);
    alone.strategy.exchange = NULL;
    alone.strategy.can_break = false;
    alone.strategy.connect = tdi_mirrored.connect;
    train_one(r, 0);
    assert_string_equal(r->results[0].sentence, "");
    processes_close(&alone, 1);
}

static int groups_of(const net *net, const deal *deal)
{
    return net->per_replica ? deal->first[deal->processes] : 1;
}

static void check(const net *net, const deal *deal, int workers)
{
    run alone, group = {.net = net, .spoils = -1};
    group_process processes[MOST_PROCESSES];
    train_alone(net, deal, groups_of(net, deal), &alone);
    processes_open(processes, deal->processes, deal->first, groups_of(net, deal), workers, wires);
    group.processes = processes;
    processes_run(deal->processes, train_one, &group);
    for (int p = 0; p < deal->processes; p++) {
        const result *got = &group.results[p];
        if (*got->sentence)
            fail_msg("%s, process %d of %d: %s", net->name, p, deal->processes, got->sentence);
        assert_int_equal(got->count, alone.results[0].count);
        if (memcmp(got->weights, alone.results[0].weights, (size_t)got->count * sizeof(float)) != 0)
            fail_msg("%s: the weights of process %d of %d differ", net->name, p, deal->processes);
        expect_same_logs(&got->logs, &alone.results[0].logs);
        assert_true(tdi_exchange_sent(processes[p].exchange) > 0);
    }
    processes_close(processes, deal->processes);
    release(&group, deal->processes);
    release(&alone, 1);
}

static void processes_make_what_one_makes(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++)
        for (int d = 0; d < DEALS; d++)
            check(&nets[n], &deals[d], 1 + (n + d) % 3);
}

static void all_stop_behind_the_same_step(void **state)
{
    (void)state;
    run r = {.net = &nets[0], .spoils = -1, .stops_soon = true};
    group_process processes[MOST_PROCESSES];
    processes_open(processes, 2, (int[]){0, 1, 2}, 1, 1, wires);
    r.processes = processes;
    processes_run(2, train_one, &r);
    for (int p = 0; p < 2; p++)
        assert_int_equal(r.results[p].status, TD_STOPPED);
    assert_memory_equal(r.results[0].weights, r.results[1].weights, (size_t)r.results[0].count * sizeof(float));
    processes_close(processes, 2);
    release(&r, 2);
}

/* The loss of one process's shard is no number: all end. */
static void what_fails_in_one_ends_all(void **state)
{
    (void)state;
    run r = {.net = &nets[1], .spoils = 1};
    group_process processes[MOST_PROCESSES];
    processes_open(processes, 3, (int[]){0, 1, 2, 3}, 1, 1, wires);
    r.processes = processes;
    processes_run(3, train_one, &r);
    for (int p = 0; p < 3; p++) {
        assert_int_equal(r.results[p].status, TD_NOT_FINITE);
        assert_non_null(strstr(r.results[p].sentence, "the loss is not a finite number at step"));
    }
    processes_close(processes, 3);
    release(&r, 3);
}

/* ---- what is under way when ---- */

/* Two buckets of gradients that are reduced, since a regularizer is added to their sums. */
static td_model *wide_model(td_context *context, const tdi_strategy *strategy)
{
    td_tensor *in = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *hidden = td_dense(td_flatten(in), 400, .activation = TD_RELU, .kernel_regularizer = {.l2 = 0.01f});
    hidden = td_dense(hidden, 300, .activation = TD_RELU, .kernel_regularizer = {.l2 = 0.01f});
    td_model *model = td_model_create(in, td_dense(hidden, SMALL_CLASSES), .seed = 3);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .strategy = {.devices = devices});
    assert_string_equal(td_error(context), "");
    model->compiled.strategy = strategy;
    return model;
}

/* All reductions have begun before the first is waited for. */
static void expect_begun_before_finished(const tdi_program *program)
{
    int begun = 0, finished = 0;
    for (int i = 0; i < program->schedule.count; i++) {
        const tdi_scheduled *step = &program->schedule.at[i];
        if (step->kind == TDI_STEP_KERNEL || program->collectives.at[step->collective].kind != TDI_REDUCE)
            continue;
        assert_true(step->kind != TDI_STEP_BEGIN || finished == 0);
        begun += step->kind == TDI_STEP_BEGIN;
        finished += step->kind == TDI_STEP_FINISH;
    }
    assert_int_equal(begun, finished);
    assert_true(begun >= 2);
}

static int64_t events_named(const tdi_trace *trace, const char *name)
{
    int64_t found = 0, lost;
    for (int t = 0; t < tdi_trace_tracks(trace); t++)
        for (int64_t i = 0; i < tdi_trace_count(trace, t, &lost); i++)
            found += strcmp(tdi_trace_event_at(trace, t, i)->label->name, name) == 0;
    return found;
}

static void train_traced(void *argument, int process)
{
    enum { STEPS = (SAMPLES + BATCH - 1) / BATCH };
    td_context *context = td_context_create(NULL);
    td_model *model = wide_model(context, &((group_process *)argument)[process].strategy);
    assert_int_equal(td_trace_begin(context, 0), TD_OK);
    td_data *data = td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    assert_int_equal(td_fit(model, data, .epochs = 1, .batch_size = BATCH), TD_OK);
    const tdi_program *program = &tdi_runtime_own(model)->modes[TDI_TRAIN].program;
    int64_t reductions = 0;
    for (int id = 0; id < program->collectives.count; id++)
        reductions += program->collectives.at[id].kind == TDI_REDUCE;
    expect_begun_before_finished(program);
    assert_int_equal(events_named(context->trace, "gradients"), STEPS * reductions);
    assert_true(events_named(context->trace, "wait for gradients") > 0);
    td_context_free(context);
}

static void a_trace_shows_what_is_under_way(void **state)
{
    (void)state;
    group_process processes[MOST_PROCESSES];
    processes_open(processes, 2, (int[]){0, 1, 3}, 1, 2, wires);
    processes_run(2, train_traced, processes);
    processes_close(processes, 2);
}

/* Those of each kind once more, by shared memory. */
static void wires_of_ucx_bring_the_same(void **state)
{
    tdi_error error = {0};
    (void)state;
    if (!tdi_ucx_version(&error)) {
        print_message("%s\n", error.message);
        skip();
    }
    wires = WIRES_UCX;
    for (int n = 0; n < NETS; n++)
        check(&nets[n], &deals[n % DEALS], 1 + n % 2);
    what_fails_in_one_ends_all(state);
    all_stop_behind_the_same_step(state);
    wires = WIRES_TLS;
}

static int begin(void **state)
{
    (void)state;
    devices = test_devices(0);
    small_data(SAMPLES, x, y);
    memcpy(spoilt, x, sizeof x);
    for (int i = 0; i < SAMPLES; i++)
        spoilt[i * SMALL_SAMPLE] = NAN;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_make_what_one_makes), cmocka_unit_test(all_stop_behind_the_same_step),
        cmocka_unit_test(what_fails_in_one_ends_all),    cmocka_unit_test(a_trace_shows_what_is_under_way),
        cmocka_unit_test(wires_of_ucx_bring_the_same),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
