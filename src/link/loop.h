/* loop.h - one thread that waits for many descriptors and for times, and can be woken by others.
 *
 * All calls but tdi_loop_wake come from the loop's thread, callbacks' too. A callback may add and remove anything,
 * itself included: what has been removed is not called any more, even where it was ready in the same round.
 *
 *     tdi_loop_add(loop, fd, EPOLLIN, accept_one, listener, &source, error);
 *     tdi_loop_set_timer(loop, &beat, tdi_seconds() + 0.1);
 *     while (!done && tdi_loop_run(loop, -1, error) == TD_OK)
 *         ;
 */
#ifndef TDI_LINK_LOOP_H
#define TDI_LINK_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

typedef struct tdi_loop tdi_loop;

/* A descriptor in the loop; 0: none. Never used twice. */
typedef uint64_t tdi_loop_source;

/* Something that happens at a time, once. The caller's, who sets the first two members, zeroes the others, and stops it
 * before its memory goes. */
typedef struct tdi_timer tdi_timer;
struct tdi_timer {
    void (*fire)(void *user, double now); /* may set it again */
    void *user;
    double at;             /* tdi_seconds() */
    tdi_timer *next, **in; /* the loop's list; in: NULL while it is not set */
};

td_status tdi_loop_create(tdi_loop **loop, tdi_error *error);
void tdi_loop_free(tdi_loop *loop); /* descriptors stay open; NULL is accepted */

/* Calls ready(user, events) whenever `events` (EPOLLIN, EPOLLOUT) are there, or the descriptor has failed (EPOLLERR,
 * EPOLLHUP). Level-triggered. Remove it before the descriptor is closed. */
td_status tdi_loop_add(tdi_loop *loop, int fd, uint32_t events, void (*ready)(void *user, uint32_t events), void *user,
                       tdi_loop_source *source, tdi_error *error);
void tdi_loop_change(tdi_loop *loop, tdi_loop_source source, uint32_t events);
void tdi_loop_remove(tdi_loop *loop, tdi_loop_source source); /* 0 is accepted */

/* A time that has passed fires in the next round. A timer that is set already gets another time. */
void tdi_loop_set_timer(tdi_loop *loop, tdi_timer *timer, double at);
void tdi_loop_stop_timer(tdi_loop *loop, tdi_timer *timer); /* one that is not set, too */

/* One round: waits until something is ready, a timer is due, it is woken, or `longest` seconds (below 0: no limit) are
 * over, and calls what there is to call. TD_IO: it cannot wait. */
td_status tdi_loop_run(tdi_loop *loop, double longest, tdi_error *error);

/* A descriptor that is readable while there is something for the next round to do; -1: there is something at once. For
 * whoever waits for other things too. */
int tdi_loop_descriptor(const tdi_loop *loop);

/* Ends the wait of this or the next round. From any thread, and from a signal handler. */
void tdi_loop_wake(tdi_loop *loop);

#endif
