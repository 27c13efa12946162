/* kernel_trial.c - kernels as candidates of a contest (tune/contest.h).
 *
 * Why: a kernel that takes a call says how sure it is to be the best (`confidence`). Where it is not, the plan asks
 * which of the candidates, up to the first that is sure of itself, is the fastest for the very call of the step.
 *
 * Design: each candidate is prepared with the step's shapes and shares, on buffers of its own. All threads that will
 * run such steps at the same time (workers * threads) run it at the same time, since they share caches and memory
 * bandwidth. The buffers are kept for the next contest of the same plan, because the system takes long to hand out
 * more.
 *
 * Limits: operands are made-up numbers that stay the same from run to run, so a small call is timed with its operands
 * in the caches, whatever the step would leave there. */
#include <math.h>
#include <string.h>

#include "base/bfloat16.h"
#include "base/text.h"
#include "plan/choose.h"
#include "tune/contest.h"

enum { ROUNDS = 3, MOST_REPETITIONS = 64 };
static const double shortest_round = 4e-4; /* seconds */
static const double hopeless = 1.5;        /* times the best's time */

typedef struct candidate {
    tdi_prepared *workers; /* [workers] */
    char **scratch;        /* [threads] */
    float *sums;           /* of a division by depth: [workers][sums_each] */
    int64_t sums_each;
    int repetitions; /* of a turn, so that the clock can see it */
} candidate;

typedef struct trial {
    tdi_plan *plan;
    const tdi_node *node;
    const tdi_kernel *const *kernels; /* [count] */
    int count;
    candidate all[TDI_MAX_CANDIDATES];
    tdi_arena *arena;
    int workers, threads;
    tdi_barrier start;
    const candidate *turn;
    double *elapsed; /* [threads] */
    tdi_control control;
    atomic_bool failed[2]; /* a kernel's library ran out of memory: it would look fast */
} trial;

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

static char *buffer(trial *t, size_t size)
{
    tdi_device *device = t->plan->spec.device;
    tdi_spare *spare = best_spare(t->plan, size);
    if (!spare) {
        if (!tdi_push(&t->plan->spares, ((tdi_spare){.memory = NULL})))
            return NULL;
        spare = &t->plan->spares.at[t->plan->spares.count - 1];
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
static char *operand(trial *t, const tdi_value *value)
{
    size_t size = (size_t)tdi_value_bytes(value);
    char *memory = buffer(t, size);
    float *floats = (float *)(void *)memory;
    tdi_bfloat16 *halves = (tdi_bfloat16 *)(void *)memory;
    for (size_t i = 0; memory && value->dtype == TD_BFLOAT16 && i < size / sizeof *halves; i++)
        halves[i] = tdi_narrow((float)(i % 17) * 0.125f - 1.0f);
    for (size_t i = 0; memory && value->dtype == TD_FLOAT32 && i < size / sizeof *floats; i++)
        floats[i] = (float)(i % 17) * 0.125f - 1.0f;
    return memory;
}

/* The threads of a worker read and write the same values; workers have their own. */
static td_status make_operands(trial *t, const tdi_call *like, char **operands, tdi_error *error)
{
    for (int i = 0; i < like->n_in; i++)
        if (t->node->in[i]) {
            operands[i] = operand(t, &like->in[i]);
            if (!operands[i])
                return tdi_no_memory(error);
        }
    operands[like->n_in] = operand(t, &like->out);
    return operands[like->n_in] ? TD_OK : tdi_no_memory(error);
}

static void bind_call(const trial *t, const candidate *one, int thread, char *const *operands, tdi_call *call)
{
    static const tdi_shard shard = {.shards = 1, .group_count = 1};
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < call->n_in; i++)
        in[i].data = operands[i];
    call->out.data = operands[call->n_in];
    call->scratch = one->scratch[thread];
    call->sums = one->sums ? one->sums + thread / t->plan->spec.threads * one->sums_each : NULL;
    call->control = &t->control;
    call->failed = (atomic_bool *)(uintptr_t)t->failed;
    call->shard = &shard;
}

static void bind_calls(const trial *t, const candidate *one, int worker, char *const *operands)
{
    const tdi_prepared *prepared = &one->workers[worker];
    for (int thread = 0; thread < t->plan->spec.threads; thread++) {
        int index = worker * t->plan->spec.threads + thread; /* among those of all workers */
        bind_call(t, one, index, operands, &prepared->calls[thread]);
        if (prepared->finish)
            bind_call(t, one, index, operands, &prepared->finish[thread]);
    }
}

/* ---- candidates ---- */

static td_status prepare(trial *t, const tdi_kernel *kernel, candidate *one, tdi_error *error)
{
    one->workers = TDI_NEW_ARRAY(t->arena, tdi_prepared, t->workers);
    one->scratch = TDI_NEW_ARRAY(t->arena, char *, t->threads);
    one->repetitions = 1;
    if (!one->workers || !one->scratch)
        return tdi_no_memory(error);
    for (int w = 0; w < t->workers; w++)
        TDI_TRY(tdi_prepare_kernel(t->plan, kernel, t->node, t->arena, &one->workers[w], error));
    int64_t elements = tdi_shape_elements(&one->workers[0].calls[0].out.shape);
    if (one->workers[0].finish) {
        one->sums_each = elements * t->plan->spec.threads;
        one->sums = (float *)(void *)buffer(t, (size_t)(one->sums_each * t->workers) * sizeof(float));
        if (!one->sums)
            return tdi_no_memory(error);
    }
    for (int thread = 0; thread < t->threads; thread++) {
        one->scratch[thread] = buffer(t, one->workers[thread / t->plan->spec.threads].scratch_bytes);
        if (!one->scratch[thread])
            return tdi_no_memory(error);
    }
    return TD_OK;
}

static td_status prepare_all(trial *t, tdi_error *error)
{
    for (int i = 0; i < t->count; i++)
        TDI_TRY(prepare(t, t->kernels[i], &t->all[i], error));
    char **operands = TDI_NEW_ARRAY(t->arena, char *, t->node->n_in + 1);
    if (!operands)
        return tdi_no_memory(error);
    for (int w = 0; w < t->workers; w++) {
        TDI_TRY(make_operands(t, &t->all[0].workers[w].calls[0], operands, error));
        for (int i = 0; i < t->count; i++)
            bind_calls(t, &t->all[i], w, operands);
    }
    return TD_OK;
}

/* ---- the clock ---- */

/* By depth the second half waits for the first ones of all threads, and the next first half for the second ones. */
static void run_call(trial *t, const tdi_prepared *prepared, int thread)
{
    const tdi_call *call = &prepared->calls[thread], *finish = prepared->finish ? &prepared->finish[thread] : NULL;
    if (call->run)
        call->run(call);
    if (!finish)
        return;
    tdi_barrier_wait(&t->start);
    if (finish->run)
        finish->run(finish);
    tdi_barrier_wait(&t->start);
}

static void run_thread(void *argument, int index)
{
    trial *t = argument;
    tdi_device *device = t->plan->spec.device;
    int state = device->enter_thread ? device->enter_thread(device) : 0, threads = t->plan->spec.threads;
    tdi_barrier_wait(&t->start);
    double begun = tdi_seconds();
    for (int i = 0; i < t->turn->repetitions; i++)
        run_call(t, &t->turn->workers[index / threads], index % threads);
    t->elapsed[index] = tdi_seconds() - begun;
    if (device->leave_thread)
        device->leave_thread(device, state);
}

/* The seconds of one run are the slowest thread's. */
static td_status take_turn(trial *t, int i, double *seconds, tdi_error *error)
{
    double most = 0;
    t->turn = &t->all[i];
    tdi_team_run(t->plan->spec.chooser->team, t->threads, run_thread, t);
    for (int thread = 0; thread < t->threads; thread++)
        most = t->elapsed[thread] > most ? t->elapsed[thread] : most;
    *seconds = most / t->all[i].repetitions;
    return atomic_load(&t->failed[0]) ? tdi_no_memory(error) : TD_OK;
}

/* The first turn, in which nothing is in the caches, says how often a run must be repeated for the clock to see it; of
 * a short run the second turn does. */
static td_status warm_up(trial *t, tdi_error *error)
{
    for (int i = 0; i < t->count; i++) {
        double seconds;
        TDI_TRY(take_turn(t, i, &seconds, error));
        if (seconds < shortest_round)
            TDI_TRY(take_turn(t, i, &seconds, error));
        double wanted = shortest_round / (seconds > 1e-9 ? seconds : 1e-9) + 1;
        t->all[i].repetitions = wanted < MOST_REPETITIONS ? (int)wanted : MOST_REPETITIONS;
    }
    return TD_OK;
}

/* ---- the contest ---- */

static td_status begin(tdi_contest *contest, tdi_error *error)
{
    trial *t = contest->context;
    const tdi_chooser *chooser = t->plan->spec.chooser;
    t->workers = chooser->workers;
    t->threads = t->workers * t->plan->spec.threads;
    t->control = (tdi_control){.rows = 1, .inverse_rows = 1, .weights = 1};
    if (t->node->op->numbers)
        t->node->op->numbers(t->node->attrs, &t->control);
    t->start.count = (uint32_t)t->threads;
    t->start.spin = tdi_team_spins(chooser->team, t->threads);
    t->arena = tdi_arena_create();
    t->elapsed = t->arena ? TDI_NEW_ARRAY(t->arena, double, t->threads) : NULL;
    if (!t->elapsed)
        return tdi_no_memory(error);
    TDI_TRY(prepare_all(t, error));
    return warm_up(t, error);
}

static td_status run(tdi_contest *contest, int i, double *seconds, tdi_error *error)
{
    return take_turn(contest->context, i, seconds, error);
}

static void end(tdi_contest *contest)
{
    trial *t = contest->context;
    for (int i = 0; i < t->count; i++)
        for (int w = 0; t->all[i].workers && w < t->workers; w++)
            if (t->all[i].workers[w].calls)
                tdi_calls_release(t->plan, t->all[i].workers[w].kernel, t->all[i].workers[w].calls);
    give_back(t->plan);
    tdi_arena_free(t->arena);
}

td_status tdi_kernel_trial(tdi_plan *plan, const tdi_node *node, const tdi_kernel *const *kernels,
                           const tdi_tuned *question, const tdi_tuned **answer, tdi_error *error)
{
    const tdi_chooser *chooser = plan->spec.chooser;
    trial t = {.plan = plan, .node = node, .kernels = kernels, .count = question->count};
    tdi_contest contest = {
        .rounds = ROUNDS, .hopeless = hopeless, .context = &t, .begin = begin, .run = run, .end = end};
    return tdi_contest_answer(chooser->cache, chooser->context, question, &contest, answer, error);
}
