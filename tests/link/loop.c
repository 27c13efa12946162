/* The loop: what is ready is called, what has been removed is not, timers fire in order, others wake it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/text.h"
#include "link/loop.h"

enum { PIPES = 100 };

typedef struct watcher {
    tdi_loop *loop;
    int fds[2];
    tdi_loop_source source;
    int calls;
    struct watcher *all; /* NULL, or PIPES of them: whoever is called first removes all */
} watcher;

static void on_ready(void *user, uint32_t events)
{
    watcher *w = user;
    char byte;
    w->calls++;
    assert_true(events & EPOLLIN);
    assert_int_equal(read(w->fds[0], &byte, 1), 1);
    for (int i = 0; w->all && i < PIPES; i++)
        tdi_loop_remove(w->loop, w->all[i].source);
}

static void watch_pipes(tdi_loop *loop, watcher *watchers, bool remove_all)
{
    for (int i = 0; i < PIPES; i++) {
        watcher *w = &watchers[i];
        *w = (watcher){.loop = loop, .all = remove_all ? watchers : NULL};
        assert_int_equal(pipe(w->fds), 0);
        assert_int_equal(tdi_loop_add(loop, w->fds[0], EPOLLIN, on_ready, w, &w->source, NULL), TD_OK);
        assert_int_equal(write(w->fds[1], "x", 1), 1);
    }
}

static int calls_of(watcher *watchers)
{
    int calls = 0;
    for (int i = 0; i < PIPES; i++) {
        calls += watchers[i].calls;
        close(watchers[i].fds[0]);
        close(watchers[i].fds[1]);
    }
    return calls;
}

static void run_rounds(tdi_loop *loop, int rounds)
{
    for (int i = 0; i < rounds; i++)
        assert_int_equal(tdi_loop_run(loop, 0, NULL), TD_OK);
}

static void what_is_ready_is_called(void **state)
{
    tdi_loop *loop = *state;
    watcher watchers[PIPES];
    watch_pipes(loop, watchers, false);
    run_rounds(loop, 5);
    for (int i = 0; i < PIPES; i++)
        tdi_loop_remove(loop, watchers[i].source);
    assert_int_equal(calls_of(watchers), PIPES);
}

static void what_was_removed_is_not(void **state)
{
    tdi_loop *loop = *state;
    watcher watchers[PIPES];
    watch_pipes(loop, watchers, true);
    run_rounds(loop, 5);
    assert_int_equal(calls_of(watchers), 1);
    tdi_loop_source old = watchers[0].source;
    watch_pipes(loop, watchers, false); /* in the same places */
    tdi_loop_remove(loop, old);
    tdi_loop_change(loop, old, 0);
    run_rounds(loop, 5);
    assert_int_equal(calls_of(watchers), PIPES);
}

typedef struct bell {
    tdi_loop *loop;
    tdi_timer timer;
    int *order, number, fired;
    struct bell *stops; /* another, when it fires */
    double again;       /* 0: no */
} bell;

static void on_fire(void *user, double now)
{
    bell *a = user;
    assert_true(now >= a->timer.at);
    a->fired = ++*a->order;
    if (a->stops)
        tdi_loop_stop_timer(a->loop, &a->stops->timer);
    if (a->again > 0)
        tdi_loop_set_timer(a->loop, &a->timer, a->again);
}

static void timers_fire_in_order(void **state)
{
    tdi_loop *loop = *state;
    int order = 0;
    double now = tdi_seconds();
    bell bells[4];
    for (int i = 0; i < 4; i++) {
        bells[i] = (bell){.loop = loop, .order = &order, .number = i};
        bells[i].timer = (tdi_timer){.fire = on_fire, .user = &bells[i]};
        tdi_loop_set_timer(loop, &bells[i].timer, now + 0.02 - 0.005 * i);
    }
    bells[1].stops = &bells[0];
    tdi_loop_set_timer(loop, &bells[2].timer, 0); /* moved */
    while (order < 3)
        assert_int_equal(tdi_loop_run(loop, -1, NULL), TD_OK);
    assert_true(tdi_seconds() >= now + 0.015);
    run_rounds(loop, 3);
    assert_true(bells[2].fired == 1 && bells[3].fired == 2 && bells[1].fired == 3 && bells[0].fired == 0);
}

/* Both are due at once, and one puts the other off. */
static void a_due_timer_can_be_put_off(void **state)
{
    tdi_loop *loop = *state;
    int order = 0;
    bell first = {.loop = loop, .order = &order}, second = {.loop = loop, .order = &order};
    first.timer = (tdi_timer){.fire = on_fire, .user = &first};
    second.timer = (tdi_timer){.fire = on_fire, .user = &second};
    first.stops = &second;
    tdi_loop_set_timer(loop, &second.timer, 2);
    tdi_loop_set_timer(loop, &first.timer, 1);
    run_rounds(loop, 3);
    assert_true(first.fired == 1 && second.fired == 0);
}

/* One that sets itself to now fires once a round. */
static void a_timer_does_not_hold_up_the_loop(void **state)
{
    tdi_loop *loop = *state;
    int order = 0;
    bell a = {.loop = loop, .order = &order, .again = 1e-9};
    a.timer = (tdi_timer){.fire = on_fire, .user = &a};
    tdi_loop_set_timer(loop, &a.timer, 0);
    assert_int_equal(tdi_loop_descriptor(loop), -1);
    run_rounds(loop, 3);
    assert_int_equal(order, 3);
    tdi_loop_stop_timer(loop, &a.timer);
    assert_true(tdi_loop_descriptor(loop) >= 0);
}

static void *wake_from_beside(void *loop)
{
    tdi_loop_wake(loop);
    return NULL;
}

static void others_wake_it(void **state)
{
    tdi_loop *loop = *state;
    pthread_t thread;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(pthread_create(&thread, NULL, wake_from_beside, loop), 0);
        assert_int_equal(tdi_loop_run(loop, -1, NULL), TD_OK); /* would last for ever */
        pthread_join(thread, NULL);
    }
    struct pollfd descriptor = {.fd = tdi_loop_descriptor(loop), .events = POLLIN};
    assert_int_equal(poll(&descriptor, 1, 0), 0);
    tdi_loop_wake(loop);
    assert_int_equal(poll(&descriptor, 1, 0), 1);
}

static int create(void **state)
{
    tdi_loop *loop;
    td_status status = tdi_loop_create(&loop, NULL);
    *state = loop;
    return status == TD_OK ? 0 : -1;
}

static int release(void **state)
{
    tdi_loop_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_ready_is_called, create, release),
        cmocka_unit_test_setup_teardown(what_was_removed_is_not, create, release),
        cmocka_unit_test_setup_teardown(timers_fire_in_order, create, release),
        cmocka_unit_test_setup_teardown(a_due_timer_can_be_put_off, create, release),
        cmocka_unit_test_setup_teardown(a_timer_does_not_hold_up_the_loop, create, release),
        cmocka_unit_test_setup_teardown(others_wake_it, create, release)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
