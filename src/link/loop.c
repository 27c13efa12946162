/* loop.c - epoll, timers, and an eventfd to be woken by.
 *
 * epoll hands back a number, not a pointer: the place of a source in the table and how often that place has been used.
 * So what is left of a round for a source that has been removed in it finds nobody.
 *
 * Timers are few, hundreds at most, so the next one is looked for. */
#define _GNU_SOURCE
#include "link/loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"

enum { ROUND = 64 };

typedef struct source {
    int fd;        /* -1: the place is free */
    uint32_t uses; /* of the place */
    void (*ready)(void *user, uint32_t events);
    void *user;
} source;

struct tdi_loop {
    int epoll, wake;
    tdi_vec(source) sources;
    tdi_timer *timers; /* in no order */
};

/* ---- sources ---- */

static tdi_loop_source number_of(const tdi_loop *loop, const source *found)
{
    return (tdi_loop_source)found->uses << 32 | (uint32_t)(found - loop->sources.at);
}

static source *find_source(tdi_loop *loop, tdi_loop_source number)
{
    uint32_t place = (uint32_t)number;
    source *found = place < (uint32_t)loop->sources.count ? &loop->sources.at[place] : NULL;
    return found && found->fd >= 0 && found->uses == number >> 32 ? found : NULL;
}

static source *free_place(tdi_loop *loop)
{
    for (int i = 0; i < loop->sources.count; i++)
        if (loop->sources.at[i].fd < 0)
            return &loop->sources.at[i];
    return tdi_push(&loop->sources, ((source){.fd = -1})) ? &loop->sources.at[loop->sources.count - 1] : NULL;
}

td_status tdi_loop_add(tdi_loop *loop, int fd, uint32_t events, void (*ready)(void *user, uint32_t events), void *user,
                       tdi_loop_source *number, tdi_error *error)
{
    *number = 0;
    source *place = free_place(loop);
    if (!place)
        return tdi_no_memory(error);
    *place = (source){fd, place->uses + 1, ready, user};
    struct epoll_event event = {.events = events, .data.u64 = number_of(loop, place)};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        place->fd = -1;
        return tdi_fail(error, TD_IO, "a connection cannot be waited for: %s", strerror(errno));
    }
    *number = event.data.u64;
    return TD_OK;
}

void tdi_loop_change(tdi_loop *loop, tdi_loop_source number, uint32_t events)
{
    const source *found = find_source(loop, number);
    struct epoll_event event = {.events = events, .data.u64 = number};
    if (found)
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_MOD, found->fd, &event);
}

void tdi_loop_remove(tdi_loop *loop, tdi_loop_source number)
{
    source *found = find_source(loop, number);
    if (!found)
        return;
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, found->fd, NULL);
    found->fd = -1;
}

/* ---- timers ---- */

void tdi_loop_stop_timer(tdi_loop *loop, tdi_timer *timer)
{
    (void)loop;
    if (!timer->in)
        return;
    *timer->in = timer->next;
    if (timer->next)
        timer->next->in = timer->in;
    timer->in = NULL;
}

void tdi_loop_set_timer(tdi_loop *loop, tdi_timer *timer, double at)
{
    tdi_loop_stop_timer(loop, timer);
    *timer = (tdi_timer){timer->fire, timer->user, at, loop->timers, &loop->timers};
    if (timer->next)
        timer->next->in = &timer->next;
    loop->timers = timer;
}

static tdi_timer *next_timer(const tdi_loop *loop)
{
    tdi_timer *next = loop->timers;
    for (tdi_timer *timer = next; timer; timer = timer->next)
        if (timer->at < next->at)
            next = timer;
    return next;
}

static void add_last(tdi_timer **list, tdi_timer *timer)
{
    while (*list)
        list = &(*list)->next;
    timer->next = NULL;
    timer->in = list;
    *list = timer;
}

/* Those that were set when it begins: what is set meanwhile waits for the next round, lest one that sets itself again
 * keeps the loop from its descriptors. */
static void fire_timers(tdi_loop *loop)
{
    double now = tdi_seconds();
    tdi_timer *due = NULL;
    for (tdi_timer *timer; (timer = next_timer(loop)) && timer->at <= now;) {
        tdi_loop_stop_timer(loop, timer);
        add_last(&due, timer);
    }
    while (due) {
        tdi_timer *timer = due;
        tdi_loop_stop_timer(loop, timer);
        timer->fire(timer->user, now);
    }
}

/* ---- rounds ---- */

static void drain_wake(void *user, uint32_t events)
{
    const tdi_loop *loop = user;
    uint64_t count;
    (void)events;
    (void)!read(loop->wake, &count, sizeof count);
}

void tdi_loop_wake(tdi_loop *loop)
{
    int kept = errno;
    uint64_t one = 1;
    (void)!write(loop->wake, &one, sizeof one);
    errno = kept;
}

td_status tdi_loop_create(tdi_loop **loop, tdi_error *error)
{
    tdi_loop *made = *loop = calloc(1, sizeof *made);
    tdi_loop_source wake;
    if (!made)
        return tdi_no_memory(error);
    made->epoll = epoll_create1(EPOLL_CLOEXEC);
    made->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    td_status status = made->epoll < 0 || made->wake < 0
                           ? tdi_fail(error, TD_IO, "connections cannot be waited for: %s", strerror(errno))
                           : tdi_loop_add(made, made->wake, EPOLLIN, drain_wake, made, &wake, error);
    if (status != TD_OK) {
        tdi_loop_free(made);
        *loop = NULL;
    }
    return status;
}

void tdi_loop_free(tdi_loop *loop)
{
    if (!loop)
        return;
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->wake >= 0)
        close(loop->wake);
    while (loop->timers)
        tdi_loop_stop_timer(loop, loop->timers);
    tdi_vec_free(&loop->sources);
    free(loop);
}

/* Rounded up: a wait that ended before the timer's time would be followed by others of no length. */
static int wait_of(const tdi_loop *loop, double longest)
{
    const tdi_timer *next = next_timer(loop);
    double wait = next ? next->at - tdi_seconds() : -1;
    if (next && wait < 0)
        wait = 0;
    if (longest >= 0 && (!next || longest < wait))
        wait = longest;
    return !next && longest < 0 ? -1 : (int)ceil(fmin(wait, 1e6) * 1000);
}

td_status tdi_loop_run(tdi_loop *loop, double longest, tdi_error *error)
{
    struct epoll_event events[ROUND];
    int count = epoll_wait(loop->epoll, events, ROUND, wait_of(loop, longest));
    if (count < 0 && errno != EINTR)
        return tdi_fail(error, TD_IO, "connections cannot be waited for: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        const source *found = find_source(loop, events[i].data.u64);
        if (found)
            found->ready(found->user, events[i].events);
    }
    fire_timers(loop);
    return TD_OK;
}

int tdi_loop_descriptor(const tdi_loop *loop)
{
    return wait_of(loop, -1) == 0 ? -1 : loop->epoll;
}
