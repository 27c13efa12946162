/* thread.c - events over a futex, barriers, teams. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cores.h"
#include "base/text.h"
#include "base/vec.h"

/* SPINS take about 20 to 50 us: longer than threads of one step are apart, shorter than a scheduler's slice. */
enum { SPINS = 1000, FEW_SPINS = 100 };
/* About 200 us: as long as it takes to wake a thread. */
enum { YIELDS = 1000 };

static const double slice = 1e-3; /* seconds: who yields for longer has yielded to another process */
static const double hogged = 1.0; /* seconds for which a thread does not yield after that */

/* ---- events ---- */

static void pause_briefly(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *most)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
}

void tdi_event_add(tdi_event *event, uint32_t amount)
{
    atomic_fetch_add(&event->value, amount);
    if (atomic_load(&event->sleepers))
        futex(&event->value, FUTEX_WAKE, INT32_MAX, NULL);
}

static bool reached(tdi_event *event, uint32_t target, uint32_t *seen)
{
    *seen = atomic_load(&event->value);
    return (int32_t)(*seen - target) >= 0;
}

static bool reached_spinning(tdi_event *event, uint32_t target, int spins)
{
    uint32_t seen;
    for (int i = 0; i < spins; i++) {
        if (reached(event, target, &seen))
            return true;
        pause_briefly();
    }
    return false;
}

/* Yielding keeps a thread on its core, where sleeping lets it wake on that of the thread it waited for. But another
 * process on the same core takes a whole slice at each yield; it gives way sooner to a thread that was asleep. */
static bool reached_yielding(tdi_event *event, uint32_t target)
{
    static _Thread_local double hogged_until;
    uint32_t seen;
    double now = tdi_seconds();
    for (int i = 0; i < YIELDS && now >= hogged_until; i++) {
        if (reached(event, target, &seen))
            return true;
        double before = now;
        sched_yield();
        now = tdi_seconds();
        if (now - before > slice)
            hogged_until = now + hogged;
    }
    return reached(event, target, &seen);
}

static void sleep_until(tdi_event *event, uint32_t target, const struct timespec *most)
{
    uint32_t seen;
    atomic_fetch_add(&event->sleepers, 1);
    while (!reached(event, target, &seen))
        futex(&event->value, FUTEX_WAIT, seen, most);
    atomic_fetch_sub(&event->sleepers, 1);
}

static void wait_until(tdi_event *event, uint32_t target, bool spin, const struct timespec *most)
{
    if (reached_spinning(event, target, spin ? SPINS : 1) || (spin && reached_yielding(event, target)))
        return;
    sleep_until(event, target, most);
}

void tdi_event_wait(tdi_event *event, uint32_t target, bool spin)
{
    wait_until(event, target, spin, NULL);
}

bool tdi_barrier_spins(const tdi_barrier *barrier)
{
    return barrier->spin && !atomic_load_explicit(&barrier->crowded, memory_order_relaxed);
}

static uint64_t add_core(tdi_barrier *barrier)
{
    uint64_t core = tdi_core();
    return atomic_fetch_or_explicit(&barrier->cores, core ? core : UINT64_MAX, memory_order_relaxed);
}

/* Leaves the core if another thread has come to this meeting on it. Cores that have no bit count as different. */
static void take_core(tdi_barrier *barrier)
{
    uint64_t taken = add_core(barrier);
    if (taken == UINT64_MAX || !(taken & tdi_core()))
        return;
    tdi_core_leave(taken);
    add_core(barrier);
}

static void note_crowd(tdi_barrier *barrier)
{
    uint64_t cores = atomic_exchange_explicit(&barrier->cores, 0, memory_order_relaxed);
    bool crowded = __builtin_popcountll(cores) < (int)barrier->count && barrier->count <= 64 && cores != UINT64_MAX;
    if (crowded != atomic_load_explicit(&barrier->crowded, memory_order_relaxed))
        atomic_store_explicit(&barrier->crowded, crowded, memory_order_relaxed);
}

void tdi_barrier_wait(tdi_barrier *barrier)
{
    if (barrier->count < 2)
        return;
    uint32_t generation = atomic_load(&barrier->released.value);
    if (barrier->spin)
        take_core(barrier);
    if (atomic_fetch_add(&barrier->arrived.value, 1) + 1 == barrier->count) {
        if (barrier->spin)
            note_crowd(barrier);
        atomic_store(&barrier->arrived.value, 0);
        tdi_event_add(&barrier->released, 1);
    } else {
        tdi_event_wait(&barrier->released, generation + 1, tdi_barrier_spins(barrier));
    }
}

/* ---- lockstep ---- */

td_status tdi_lockstep_create(tdi_lockstep *lockstep, int threads, bool spin, tdi_error *error)
{
    size_t size = (size_t)threads * sizeof(tdi_lockstep_count);
    *lockstep =
        (tdi_lockstep){.threads = threads, .spin = spin, .counts = aligned_alloc(sizeof(tdi_lockstep_count), size)};
    if (!lockstep->counts)
        return tdi_no_memory(error);
    memset(lockstep->counts, 0, size);
    return TD_OK;
}

void tdi_lockstep_release(tdi_lockstep *lockstep)
{
    free(lockstep->counts);
}

/* A plain store rather than an atomic addition: the thread does not wait until the others' caches have given up the
 * line. Who is about to sleep may miss it, and therefore never sleeps for long. */
void tdi_lockstep_advance(tdi_lockstep *lockstep, int thread)
{
    tdi_event *own = &lockstep->counts[thread].steps;
    uint32_t steps = atomic_load_explicit(&own->value, memory_order_relaxed) + 1;
    atomic_store_explicit(&lockstep->counts[thread].core, tdi_core(), memory_order_relaxed);
    atomic_store_explicit(&own->value, steps, memory_order_release);
    if (atomic_load_explicit(&own->sleepers, memory_order_relaxed))
        futex(&own->value, FUTEX_WAKE, INT32_MAX, NULL);
}

static void wait_for_thread(tdi_lockstep *lockstep, int thread, uint32_t steps)
{
    static const struct timespec while_asleep = {.tv_nsec = 200 * 1000};
    tdi_lockstep_count *count = &lockstep->counts[thread];
    if (reached_spinning(&count->steps, steps, lockstep->spin ? FEW_SPINS : 1))
        return;
    uint64_t core = atomic_load_explicit(&count->core, memory_order_relaxed);
    if (lockstep->spin && (core & tdi_core()))
        tdi_core_leave(core);
    wait_until(&count->steps, steps, lockstep->spin, &while_asleep);
}

void tdi_lockstep_wait(tdi_lockstep *lockstep, int thread)
{
    uint32_t own = atomic_load_explicit(&lockstep->counts[thread].steps.value, memory_order_relaxed);
    for (int i = 0; i < lockstep->threads; i++)
        if (i != thread)
            wait_for_thread(lockstep, i, own);
}

/* ---- floating point ---- */

typedef unsigned long long float_mode;

static float_mode flush_denormals(void)
{
#if defined(__x86_64__)
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040); /* FTZ, DAZ */
    return mode;
#elif defined(__aarch64__)
    float_mode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1ull << 24));
    return mode;
#else
    return 0;
#endif
}

static void restore_float_mode(float_mode mode)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}

/* ---- threads ---- */

typedef struct thread_call {
    void *(*function)(void *argument);
    void *argument;
} thread_call;

static void *thread_main(void *argument)
{
    thread_call call = *(thread_call *)argument;
    free(argument);
    flush_denormals();
    return call.function(call.argument);
}

/* The new thread blocks all signals, so that they reach the user's threads only. */
static int start_quietly(pthread_t *thread, thread_call *call)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, thread_main, call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

td_status tdi_thread_start(pthread_t *thread, void *(*function)(void *argument), void *argument, tdi_error *error)
{
    thread_call *call = malloc(sizeof *call);
    if (!call)
        return tdi_no_memory(error);
    *call = (thread_call){function, argument};
    int failed = start_quietly(thread, call);
    if (!failed)
        return TD_OK;
    free(call);
    return tdi_fail(error, TD_NO_MEMORY, "cannot start another thread: %s; ask for fewer devices or threads",
                    strerror(failed));
}

/* ---- teams ---- */

typedef struct member {
    tdi_team *team;
    int index;
    uint32_t run; /* the latest that it has seen */
    pthread_t thread;
} member;

/* Members find in `order` which run is the latest and for how many threads it is, in one piece: a member that a run has
 * no use for may wake so late that the next one has been ordered, and must not take the size of one for that of the
 * other. Who takes part cannot be late, since the run does not end without it. */
struct tdi_team {
    tdi_event begun, finished;
    _Atomic uint64_t order; /* run << 32 | threads; no threads: the team ends */
    _Atomic int cores;      /* that the process may use */
    uint32_t runs;          /* ordered so far */
    uint32_t to_finish;     /* how often members finish until all runs so far are done */
    void (*function)(void *argument, int index);
    void *argument;
    tdi_vec(member *) others; /* but the caller, who is number 0 */
};

bool tdi_team_spins(const tdi_team *team, int threads)
{
    return threads <= atomic_load_explicit(&team->cores, memory_order_relaxed);
}

static void *member_main(void *argument)
{
    member *self = argument;
    tdi_team *team = self->team;
    int threads = self->index + 1; /* of the latest run */
    for (;;) {
        if (!reached_spinning(&team->begun, self->run + 1, tdi_team_spins(team, threads) ? SPINS : 1))
            sleep_until(&team->begun, self->run + 1, NULL);
        uint64_t order = atomic_load(&team->order);
        self->run = (uint32_t)(order >> 32);
        threads = (int)(uint32_t)order;
        if (threads == 0)
            return NULL;
        if (self->index >= threads)
            continue;
        team->function(team->argument, self->index);
        tdi_event_add(&team->finished, 1);
    }
}

static td_status add_member(tdi_team *team, tdi_error *error)
{
    member *added = malloc(sizeof *added);
    if (!added || !tdi_push(&team->others, added)) {
        free(added);
        return tdi_no_memory(error);
    }
    *added = (member){.team = team, .index = team->others.count, .run = team->runs};
    td_status status = tdi_thread_start(&added->thread, member_main, added, error);
    if (status != TD_OK) {
        free(added);
        team->others.count--;
    }
    return status;
}

td_status tdi_team_grow(tdi_team *team, int threads, tdi_error *error)
{
    atomic_store_explicit(&team->cores, tdi_cores_allowed(), memory_order_relaxed);
    while (team->others.count + 1 < threads)
        TDI_TRY(add_member(team, error));
    return TD_OK;
}

td_status tdi_team_create(int threads, tdi_team **team, tdi_error *error)
{
    *team = aligned_alloc(_Alignof(tdi_team), sizeof **team);
    if (!*team)
        return tdi_no_memory(error);
    memset(*team, 0, sizeof **team);
    td_status status = tdi_team_grow(*team, threads, error);
    if (status != TD_OK) {
        tdi_team_free(*team);
        *team = NULL;
    }
    return status;
}

static void order_run(tdi_team *team, int threads)
{
    atomic_store(&team->order, (uint64_t)++team->runs << 32 | (uint32_t)threads);
    tdi_event_add(&team->begun, 1);
}

void tdi_team_free(tdi_team *team)
{
    if (!team)
        return;
    order_run(team, 0);
    for (int i = 0; i < team->others.count; i++) {
        pthread_join(team->others.at[i]->thread, NULL);
        free(team->others.at[i]);
    }
    tdi_vec_free(&team->others);
    free(team);
}

void tdi_team_run(tdi_team *team, int threads, void (*function)(void *argument, int index), void *argument)
{
    float_mode mode = flush_denormals();
    team->function = function;
    team->argument = argument;
    team->to_finish += (uint32_t)threads - 1;
    order_run(team, threads);
    function(argument, 0);
    tdi_event_wait(&team->finished, team->to_finish, tdi_team_spins(team, threads));
    restore_float_mode(mode);
}

void tdi_run_alone(void (*function)(void *argument, int index), void *argument)
{
    float_mode mode = flush_denormals();
    function(argument, 0);
    restore_float_mode(mode);
}
