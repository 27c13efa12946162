/* exchange.c - what processes exchange, without a model: many steps of several workers each, in which little and much
 * travels; and processes that go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "support/processes.h"

enum { FEW = 100, MANY = 150 * 1000, ARENA = FEW + MANY + 28, MOST_SHARDS = 8, MOST_WORKERS = 3, SLOT = 24 };
enum { LITTLE, MUCH, SLOTS, MEETING, COLLECTIVES };

static const tdi_transfer little = {0, FEW}, much = {128, MANY}, slots = {64, SLOT};
static tdi_collective list[COLLECTIVES] = {
    {TDI_REDUCE, 1, &little}, {TDI_REDUCE, 1, &much}, {TDI_GATHER, 1, &slots}, {.kind = TDI_MEET}};

typedef struct program program;
typedef struct worker {
    program *of;
    int rank;
} worker;

/* A process's own. */
struct program {
    group_process *process;
    tdi_collectives collectives;
    int workers, steps;
    float *gradients[MOST_SHARDS], *sums;
    char *exchange;
    tdi_communicator *handles[MOST_WORKERS];
    worker each[MOST_WORKERS];
};

static float *floats(void)
{
    float *memory = calloc(ARENA, sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static void program_open(program *p, group_process *process, int workers, int steps)
{
    const tdi_deal *deal = process->deal;
    *p = (program){.process = process, .collectives = {list, COLLECTIVES, COLLECTIVES}, .steps = steps};
    p->workers = process->division.own < workers ? process->division.own : workers;
    p->sums = floats();
    p->exchange = (char *)floats();
    for (int s = deal->first_shard[deal->self]; s < deal->first_shard[deal->self + 1]; s++)
        p->gradients[s] = floats();
    const tdi_group_spec group = {.workers = p->workers,
                                  .threads = p->workers,
                                  .collectives = &p->collectives,
                                  .shards = deal->shards,
                                  .gradients = p->gradients,
                                  .sums = &p->sums,
                                  .exchange = &p->exchange};
    assert_int_equal(tdi_exchange_connect(process->exchange, deal, &group, p->handles, NULL), TD_OK);
}

static void program_release(program *p)
{
    for (int w = 0; w < p->workers; w++)
        p->handles[w]->release(p->handles[w]);
}

static void program_free(program *p)
{
    for (int s = 0; s < MOST_SHARDS; s++)
        free(p->gradients[s]);
    free(p->sums);
    free(p->exchange);
}

static float value_at(int shard, int64_t i, int step)
{
    uint32_t bits = (uint32_t)(shard * 7919 + step * 104729 + (int)i) * 2654435761u;
    return ((float)(bits >> 8) - 8388608.0f) * (bits & 64 ? 1e-6f : 1.0f);
}

static void compute(program *p, int first, int end, int step)
{
    for (int s = first; s < end; s++) {
        for (int64_t i = 0; i < ARENA; i++)
            p->gradients[s][i] = value_at(s, i, step);
        memset(p->exchange + slots.offset + s * SLOT, s + step, SLOT);
    }
}

static void expect_sum(const program *p, int64_t i, int step)
{
    float values[MOST_SHARDS], *of[MOST_SHARDS];
    for (int s = 0; s < p->process->deal->shards; s++) {
        values[s] = value_at(s, i, step);
        of[s] = &values[s];
    }
    float sum = tdi_tree_sum(of, p->process->deal->shards, 0);
    assert_memory_equal(&p->sums[i], &sum, sizeof sum);
}

static void expect_all(const program *p, int step)
{
    for (int64_t i = 0; i < FEW; i++)
        expect_sum(p, i, step);
    for (int64_t i = much.offset; i < much.offset + much.size; i += 97)
        expect_sum(p, i, step);
    for (int s = 0; s < p->process->deal->shards; s++)
        assert_int_equal(p->exchange[slots.offset + s * SLOT + SLOT - 1], (char)(s + step));
}

static void *work(void *argument)
{
    const worker *w = argument;
    program *p = w->of;
    tdi_communicator *c = p->handles[w->rank];
    const tdi_division *d = &p->process->division;
    int first = d->own_first + d->own * w->rank / p->workers, end = d->own_first + d->own * (w->rank + 1) / p->workers;
    for (int step = 1; step <= p->steps; step++) {
        compute(p, first, end, step);
        for (int id = 0; id < COLLECTIVES; id++)
            c->begin(c, id);
        for (int id = 0; id < COLLECTIVES; id++)
            assert_int_equal(c->finish(c, id, (uint32_t)step), TDI_ARRIVED);
        expect_all(p, step);
        c->end_step(c);
    }
    return NULL;
}

typedef struct task {
    group_process *processes;
    int workers, steps;
} task;

static void run_process(void *argument, int self)
{
    const task *t = argument;
    pthread_t threads[MOST_WORKERS];
    program p;
    program_open(&p, &t->processes[self], t->workers, t->steps);
    for (int w = 0; w < p.workers; w++) {
        p.each[w] = (worker){&p, w};
        assert_int_equal(pthread_create(&threads[w], NULL, work, &p.each[w]), 0);
    }
    for (int w = 0; w < p.workers; w++)
        pthread_join(threads[w], NULL);
    program_release(&p);
    program_free(&p);
}

static const struct {
    int processes, workers, first[MOST_PROCESSES + 1];
} groups[] = {{2, 1, {0, 1, 2}}, {2, 2, {0, 2, 5}}, {3, 2, {0, 1, 4, 8}}, {4, 3, {0, 1, 2, 3, 7}}};

static void sums_are_those_of_the_tree(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        group_process processes[MOST_PROCESSES];
        task t = {processes, groups[g].workers, 12};
        double waited = 0;
        processes_open(processes, groups[g].processes, groups[g].first, 1, groups[g].workers, WIRES_TLS);
        processes_run(groups[g].processes, run_process, &t);
        for (int p = 0; p < groups[g].processes; p++) {
            waited += tdi_exchange_waited(processes[p].exchange);
            assert_true(tdi_exchange_sent(processes[p].exchange) > 0);
            assert_null(tdi_exchange_failure(processes[p].exchange));
        }
        assert_true(waited > 0);
        processes_close(processes, groups[g].processes);
    }
}

/* Two programs in turn: the second connects while frames of the other process may have come for it. */
static void programs_take_turns(void **state)
{
    (void)state;
    group_process processes[MOST_PROCESSES];
    task t = {processes, 1, 2};
    processes_open(processes, 2, (int[]){0, 1, 3}, 1, 1, WIRES_TLS);
    for (int i = 0; i < 3; i++)
        processes_run(2, run_process, &t);
    processes_close(processes, 2);
}

/* The last process goes in the midst of a step, without a word. */
static void leave_or_wait(void *argument, int self)
{
    const task *t = argument;
    program p;
    program_open(&p, &t->processes[self], 1, 1);
    tdi_communicator *c = p.handles[0];
    bool leaves = self == t->workers - 1;
    compute(&p, self, self + 1, 1);
    c->begin(c, LITTLE);
    if (!leaves) {
        c->begin(c, MUCH);
        assert_int_equal(c->finish(c, MUCH, 1), TDI_BROKEN);
        assert_int_equal(c->finish(c, MUCH, 1), TDI_BROKEN);
        assert_true(c->failure(c)->status != TD_OK && *c->failure(c)->message);
        tdi_error error;
        tdi_error_init(&error);
        assert_int_not_equal(tdi_exchange_gather(t->processes[self].exchange, p.sums, 8, &error), TD_OK);
        assert_string_equal(error.message, c->failure(c)->message);
    }
    program_release(&p);
    if (leaves) {
        tdi_exchange_free(t->processes[self].exchange);
        t->processes[self].exchange = NULL;
    }
    program_free(&p);
}

static void who_goes_ends_the_others_step(void **state)
{
    (void)state;
    for (int count = 2; count <= 4; count++) {
        group_process processes[MOST_PROCESSES];
        task t = {processes, count, 1};
        processes_open(processes, count, (int[]){0, 1, 2, 3, 4}, 1, 1, WIRES_TLS);
        processes_run(count, leave_or_wait, &t);
        processes_close(processes, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_those_of_the_tree),
                                       cmocka_unit_test(programs_take_turns),
                                       cmocka_unit_test(who_goes_ends_the_others_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
