/* Threads that meet on one core part. The system's own part is played here, by four cores and threads that move only
 * when they must: the real one's balancing would have its say in who is where.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cores.h"
#include "base/thread.h"

enum { CORES = 4, MEETINGS = 50 };

static _Thread_local int core;
static _Thread_local unsigned forbidden; /* a bit per core: none at a thread's start */
static _Thread_local unsigned intruded;  /* what another process forbids, once, right after the thread itself did */
static atomic_int settings, moves;

int sched_getcpu(void)
{
    return core;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *allowed)
{
    (void)process;
    memset(allowed, 0, size);
    for (size_t i = 0; i < CORES; i++)
        if (!(forbidden >> i & 1))
            CPU_SET(i, allowed);
    return 0;
}

int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *allowed)
{
    (void)process, (void)size;
    atomic_fetch_add(&settings, 1);
    forbidden = 0;
    for (size_t i = 0; i < CORES; i++)
        forbidden |= (unsigned)!CPU_ISSET(i, allowed) << i;
    if (forbidden >> core & 1) {
        core = __builtin_ctz(~forbidden);
        atomic_fetch_add(&moves, 1);
    }
    if (intruded)
        forbidden = intruded;
    intruded = 0;
    return 0;
}

typedef struct crowd {
    tdi_barrier start, parting; /* whoever meets at the start stays where he is */
    tdi_lockstep lockstep;
    int core[2], apart;
    unsigned forbidden[2];
} crowd;

static void note(crowd *c, int index)
{
    c->core[index] = core;
    c->forbidden[index] |= forbidden;
    tdi_barrier_wait(&c->start);
    if (index == 0)
        c->apart += c->core[0] != c->core[1];
    tdi_barrier_wait(&c->start);
}

static void meet_at_barrier(void *argument, int index)
{
    crowd *c = argument;
    for (int i = 0; i < MEETINGS; i++) {
        core = 1;
        tdi_barrier_wait(&c->parting);
        note(c, index);
    }
}

/* One waits for the other, who comes only when the first has made room: a hang, unless it does. */
static void meet_in_lockstep(void *argument, int index)
{
    crowd *c = argument;
    for (int i = 0; i < MEETINGS; i++) {
        core = 1;
        tdi_lockstep_advance(&c->lockstep, index);
        tdi_barrier_wait(&c->start);
        int before = atomic_load(&moves);
        tdi_barrier_wait(&c->start);
        while (index == 1 && atomic_load(&moves) == before)
            sched_yield();
        tdi_lockstep_advance(&c->lockstep, index);
        tdi_lockstep_wait(&c->lockstep, index);
        note(c, index);
    }
}

static void meet_apart(void *argument, int index)
{
    crowd *c = argument;
    core = index;
    for (int i = 0; i < MEETINGS; i++) {
        tdi_barrier_wait(&c->parting);
        tdi_lockstep_advance(&c->lockstep, index);
        tdi_lockstep_wait(&c->lockstep, index);
        note(c, index);
    }
}

static crowd run_crowd(void (*meet)(void *argument, int index))
{
    tdi_team *team;
    tdi_error error = {0};
    static crowd c;
    c = (crowd){.start = {.count = 2}, .parting = {.count = 2, .spin = true}};
    atomic_store(&settings, 0);
    atomic_store(&moves, 0);
    assert_int_equal(tdi_lockstep_create(&c.lockstep, 2, true, &error), TD_OK);
    assert_int_equal(tdi_team_create(2, &team, &error), TD_OK);
    tdi_team_run(team, 2, meet, &c);
    tdi_team_free(team);
    tdi_lockstep_release(&c.lockstep);
    return c;
}

static void check_that_they_part(void (*meet)(void *argument, int index))
{
    crowd c = run_crowd(meet);
    assert_int_equal(c.apart, MEETINGS);
    assert_int_equal(atomic_load(&moves), MEETINGS);
    assert_true(c.forbidden[0] == 0 && c.forbidden[1] == 0);
}

static void test_they_part_as_they_meet(void **state)
{
    (void)state;
    check_that_they_part(meet_at_barrier);
}

static void test_they_part_in_lockstep(void **state)
{
    (void)state;
    check_that_they_part(meet_in_lockstep);
}

static void test_who_is_alone_stays(void **state)
{
    (void)state;
    crowd c = run_crowd(meet_apart);
    assert_int_equal(c.apart, MEETINGS);
    assert_int_equal(atomic_load(&settings), 0);
}

static void test_where_to(void **state)
{
    (void)state;
    core = 1;
    tdi_core_leave(1 << 0 | 1 << 1);
    assert_int_equal(core, 2);
    tdi_core_leave(1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
    assert_int_equal(core, 2);
    forbidden = 1 << 0 | 1 << 1;
    tdi_core_leave(1 << 2);
    assert_true(core == 3 && forbidden == (1 << 0 | 1 << 1));
    forbidden = 0;
}

static void test_what_others_forbid_meanwhile(void **state)
{
    (void)state;
    core = 0;
    intruded = 1 << 2;
    tdi_core_leave(1 << 0);
    assert_true(core == 1 && forbidden == 1 << 2);
    forbidden = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_they_part_as_they_meet),
                                       cmocka_unit_test(test_they_part_in_lockstep),
                                       cmocka_unit_test(test_who_is_alone_stays), cmocka_unit_test(test_where_to),
                                       cmocka_unit_test(test_what_others_forbid_meanwhile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
