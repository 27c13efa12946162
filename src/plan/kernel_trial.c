/* kernel_trial.c - kernels against the clock: the very calls of a step, on buffers of their own, on as many threads as
 * will run such steps at the same time, so that what they share (cache, memory) is shared.
 *
 * Candidates take turns, and of each the best round counts: what disturbs the machine then disturbs none of them more.
 * There are rounds until enough of them were not disturbed by other processes, or too many were. Memory goes from one
 * contest to the next: the system takes long to hand out more. */
#include <math.h>
#include <string.h>

#include "base/bfloat16.h"
#include "base/text.h"
#include "plan/choose.h"

enum { ROUNDS = 3, MOST_ROUNDS = 6, MOST_REPETITIONS = 64 };
static const double shortest_round = 4e-4; /* seconds */
static const double hopeless = 1.5;        /* times the best, in an undisturbed round: not timed again */

typedef struct contestant {
    tdi_prepared *workers; /* [workers] */
    char **scratch;        /* [threads] */
    float *sums;           /* for a division by depth: [workers][sums_each] */
    int64_t sums_each;
    int repetitions;
    double seconds; /* the best so far of one run */
} contestant;

typedef struct contest {
    tdi_plan *plan;
    const tdi_node *node;
    tdi_arena *arena;
    int workers, threads;
    tdi_barrier start;
    const contestant *turn;
    double *elapsed; /* [threads] */
    tdi_control control;
    atomic_bool failed[2]; /* a contestant's library: it would look fast */
} contest;

/* ---- memory ---- */

/* Of those that nobody uses the smallest that is large enough, else the largest; NULL: all are used. */
static tdi_spare *best_spare(tdi_plan *plan, size_t size)
{
    tdi_spare *best = NULL;
    for (int i = 0; i < plan->spares.count; i++) {
        tdi_spare *spare = &plan->spares.at[i];
        bool fits = spare->size >= size, best_fits = best && best->size >= size;
        bool better = !best || (fits ? !best_fits || spare->size < best->size : !best_fits && spare->size > best->size);
        if (!spare->used && better)
            best = spare;
    }
    return best;
}

static char *buffer(contest *c, size_t size)
{
    tdi_device *device = c->plan->spec.device;
    tdi_spare *spare = best_spare(c->plan, size);
    if (!spare) {
        if (!tdi_push(&c->plan->spares, ((tdi_spare){.memory = NULL})))
            return NULL;
        spare = &c->plan->spares.at[c->plan->spares.count - 1];
    }
    if (!spare->memory || spare->size < size) {
        if (spare->memory)
            device->release(device, spare->memory);
        *spare = (tdi_spare){device->allocate(device, size), size, false};
    }
    spare->used = spare->memory;
    return spare->memory;
}

static void give_back(const tdi_plan *plan)
{
    for (int i = 0; i < plan->spares.count; i++)
        plan->spares.at[i].used = false;
}

void tdi_spares_release(tdi_plan *plan)
{
    for (int i = 0; i < plan->spares.count; i++)
        if (plan->spares.at[i].memory)
            plan->spec.device->release(plan->spec.device, plan->spares.at[i].memory);
    tdi_vec_free(&plan->spares);
}

/* Numbers of ordinary size: neither zero pages nor denormals. */
static char *operand(contest *c, const tdi_value *value)
{
    size_t size = (size_t)tdi_value_bytes(value);
    char *memory = buffer(c, size);
    float *floats = (float *)(void *)memory;
    tdi_bfloat16 *halves = (tdi_bfloat16 *)(void *)memory;
    for (size_t i = 0; memory && value->dtype == TD_BFLOAT16 && i < size / sizeof *halves; i++)
        halves[i] = tdi_narrow((float)(i % 17) * 0.125f - 1.0f);
    for (size_t i = 0; memory && value->dtype == TD_FLOAT32 && i < size / sizeof *floats; i++)
        floats[i] = (float)(i % 17) * 0.125f - 1.0f;
    return memory;
}

/* The lanes of a worker read and write the same values; workers have their own. */
static td_status make_operands(contest *c, const tdi_call *like, char **operands, tdi_error *error)
{
    for (int i = 0; i < like->n_in; i++)
        if (c->node->in[i]) {
            operands[i] = operand(c, &like->in[i]);
            if (!operands[i])
                return tdi_no_memory(error);
        }
    operands[like->n_in] = operand(c, &like->out);
    return operands[like->n_in] ? TD_OK : tdi_no_memory(error);
}

static void bind_call(const contest *c, const contestant *one, int thread, char *const *operands, tdi_call *call)
{
    static const tdi_part part = {.parts = 1, .group_count = 1};
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < call->n_in; i++)
        in[i].data = operands[i];
    call->out.data = operands[call->n_in];
    call->scratch = one->scratch[thread];
    call->sums = one->sums ? one->sums + thread / c->plan->spec.lanes * one->sums_each : NULL;
    call->control = &c->control;
    call->failed = (atomic_bool *)(uintptr_t)c->failed;
    call->part = &part;
}

static void bind_calls(const contest *c, const contestant *one, int worker, char *const *operands)
{
    const tdi_prepared *prepared = &one->workers[worker];
    for (int lane = 0; lane < c->plan->spec.lanes; lane++) {
        int thread = worker * c->plan->spec.lanes + lane;
        bind_call(c, one, thread, operands, &prepared->calls[lane]);
        if (prepared->finish)
            bind_call(c, one, thread, operands, &prepared->finish[lane]);
    }
}

/* ---- contestants ---- */

static td_status enter(contest *c, const tdi_kernel *kernel, contestant *one, tdi_error *error)
{
    one->workers = TDI_NEW_ARRAY(c->arena, tdi_prepared, c->workers);
    one->scratch = TDI_NEW_ARRAY(c->arena, char *, c->threads);
    one->repetitions = 1;
    if (!one->workers || !one->scratch)
        return tdi_no_memory(error);
    for (int w = 0; w < c->workers; w++)
        TDI_TRY(tdi_prepare_kernel(c->plan, kernel, c->node, c->arena, &one->workers[w], error));
    int64_t elements = tdi_shape_elements(&one->workers[0].calls[0].out.shape);
    if (one->workers[0].finish) {
        one->sums_each = elements * c->plan->spec.lanes;
        one->sums = (float *)(void *)buffer(c, (size_t)(one->sums_each * c->workers) * sizeof(float));
        if (!one->sums)
            return tdi_no_memory(error);
    }
    for (int t = 0; t < c->threads; t++) {
        one->scratch[t] = buffer(c, one->workers[t / c->plan->spec.lanes].scratch_bytes);
        if (!one->scratch[t])
            return tdi_no_memory(error);
    }
    return TD_OK;
}

static td_status enter_all(contest *c, const tdi_kernel *const *candidates, int count, contestant *all,
                           tdi_error *error)
{
    for (int i = 0; i < count; i++)
        TDI_TRY(enter(c, candidates[i], &all[i], error));
    char **operands = TDI_NEW_ARRAY(c->arena, char *, c->node->n_in + 1);
    if (!operands)
        return tdi_no_memory(error);
    for (int w = 0; w < c->workers; w++) {
        TDI_TRY(make_operands(c, &all[0].workers[w].calls[0], operands, error));
        for (int i = 0; i < count; i++)
            bind_calls(c, &all[i], w, operands);
    }
    return TD_OK;
}

static void leave_all(contest *c, contestant *all, int count)
{
    for (int i = 0; i < count; i++)
        for (int w = 0; all[i].workers && w < c->workers; w++)
            if (all[i].workers[w].calls)
                tdi_calls_release(c->plan, all[i].workers[w].kernel, all[i].workers[w].calls);
}

/* ---- the clock ---- */

/* By depth the second half waits for the first ones of all, and the next first half for the second ones. */
static void run_once(contest *c, const tdi_prepared *prepared, int lane)
{
    const tdi_call *call = &prepared->calls[lane], *finish = prepared->finish ? &prepared->finish[lane] : NULL;
    if (call->run)
        call->run(call);
    if (!finish)
        return;
    tdi_barrier_wait(&c->start);
    if (finish->run)
        finish->run(finish);
    tdi_barrier_wait(&c->start);
}

static void run_turn(void *argument, int index)
{
    contest *c = argument;
    tdi_device *device = c->plan->spec.device;
    int state = device->enter_thread ? device->enter_thread(device) : 0, lanes = c->plan->spec.lanes;
    tdi_barrier_wait(&c->start);
    double begun = tdi_seconds();
    for (int i = 0; i < c->turn->repetitions; i++)
        run_once(c, &c->turn->workers[index / lanes], index % lanes);
    c->elapsed[index] = tdi_seconds() - begun;
    if (device->leave_thread)
        device->leave_thread(device, state);
}

/* Seconds of one run, the slowest thread's. */
static double take_turn(contest *c, const contestant *one)
{
    double most = 0;
    c->turn = one;
    tdi_team_run(c->plan->spec.chooser->team, c->threads, run_turn, c);
    for (int t = 0; t < c->threads; t++)
        most = c->elapsed[t] > most ? c->elapsed[t] : most;
    return most / one->repetitions;
}

static double best_of(const contestant *all, int count)
{
    double best = all[0].seconds;
    for (int i = 1; i < count; i++)
        best = all[i].seconds < best ? all[i].seconds : best;
    return best;
}

/* The first turn, which nothing is ready for, says how often a run must be repeated to be seen by the clock; of a short
 * run the second. */
static void warm_up(contest *c, contestant *all, int count)
{
    for (int i = 0; i < count; i++) {
        double seconds = take_turn(c, &all[i]);
        if (seconds < shortest_round)
            seconds = take_turn(c, &all[i]);
        double wanted = shortest_round / (seconds > 1e-9 ? seconds : 1e-9) + 1;
        all[i].repetitions = wanted < MOST_REPETITIONS ? (int)wanted : MOST_REPETITIONS;
        all[i].seconds = INFINITY;
    }
}

/* `all_of_them`: no round was good yet, by which some were hopeless. */
static void take_turns(contest *c, contestant *all, int count, bool all_of_them)
{
    for (int i = 0; i < count; i++) {
        if (!all_of_them && all[i].seconds > hopeless * best_of(all, count))
            continue;
        double seconds = take_turn(c, &all[i]);
        all[i].seconds = seconds < all[i].seconds ? seconds : all[i].seconds;
    }
}

/* False: disturbed too often. */
static bool compete(contest *c, contestant *all, int count)
{
    int good = 0;
    warm_up(c, all, count);
    for (int round = 0; good < ROUNDS && round < MOST_ROUNDS; round++) {
        tdi_watch watch = tdi_watch_begin();
        take_turns(c, all, count, good == 0);
        good += !tdi_watch_was_disturbed(&watch);
    }
    return good == ROUNDS;
}

td_status tdi_measure(tdi_plan *plan, const tdi_node *node, const tdi_kernel *const *kernels, tdi_choice *choice,
                      tdi_error *error)
{
    const tdi_chooser *chooser = plan->spec.chooser;
    int count = choice->count;
    contest c = {.plan = plan, .node = node, .workers = chooser->workers};
    contestant all[TDI_MAX_CANDIDATES] = {{0}};
    c.control = (tdi_control){.rows = 1, .inverse_rows = 1, .weights = 1};
    if (node->op->numbers)
        node->op->numbers(node->attrs, &c.control);
    c.threads = c.workers * plan->spec.lanes;
    c.start.count = (uint32_t)c.threads;
    c.start.spin = tdi_team_spins(chooser->team, c.threads);
    c.arena = tdi_arena_create();
    c.elapsed = c.arena ? TDI_NEW_ARRAY(c.arena, double, c.threads) : NULL;
    td_status status = c.elapsed ? enter_all(&c, kernels, count, all, error) : tdi_no_memory(error);
    if (status == TD_OK)
        choice->unsure = !compete(&c, all, count);
    if (atomic_load(&c.failed[0]))
        status = tdi_no_memory(error);
    for (int i = 0; i < count; i++)
        choice->candidates[i].us = all[i].seconds * 1e6;
    leave_all(&c, all, count);
    give_back(plan);
    tdi_arena_free(c.arena);
    return status;
}
