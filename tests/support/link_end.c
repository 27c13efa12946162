/* link_end.c - ends of links that keep what happens to them. */
#define _GNU_SOURCE
#include "support/link_end.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/text.h"

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    link_end *end = user;
    (void)peer;
    if (end->holds)
        return TDI_HOLD;
    if (end->drops && frame->kind == end->drops)
        return TDI_DROP;
    if (end->longest && frame->length > end->longest) {
        tdi_fail(error, TD_INVALID_ARGUMENT, "sent %u bytes, more than are expected", frame->length);
        return TDI_REFUSE;
    }
    *place = end->place = malloc(frame->length ? frame->length : 1);
    assert_non_null(end->place);
    return TDI_TAKE;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    link_end *end = user;
    (void)peer;
    assert_ptr_equal(place, end->place);
    end->place = NULL;
    assert_true(tdi_push(&end->got, ((received){*frame, place})));
    if (end->on_arrived)
        end->on_arrived(end, &end->got.at[end->got.count - 1]);
}

static void on_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    (void)peer;
    (void)frame;
    (void)payload;
    ((link_end *)user)->sent++;
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    link_end *end = user;
    (void)peer;
    assert_int_not_equal(why->status, TD_OK);
    end->why = *why;
    end->lost++;
}

static void on_opened(void *user, int peer)
{
    (void)peer;
    ((link_end *)user)->opened++;
}

tdi_security *link_security(unsigned char byte)
{
    tdi_secret secret = {.size = 32};
    tdi_security *security;
    tdi_error error = {0};
    memset(secret.bytes, byte, secret.size);
    if (tdi_security_create(&secret, "run", &security, &error) != TD_OK)
        fail_msg("%s", error.message);
    return security;
}

void link_end_open(link_end *end, tdi_security *security, int fd, tdi_link_role role)
{
    end->sinks = (tdi_sinks){end, on_place, on_arrived, on_sent, on_lost};
    assert_int_equal(
        tdi_link_create(security, fd, role, role == TDI_LINK_SERVER ? "the client" : "the server", &end->link, NULL),
        TD_OK);
    tdi_link_set_sinks(end->link, &end->sinks, 7, on_opened);
}

void link_end_close(link_end *end)
{
    tdi_link_free(end->link);
    for (int i = 0; i < end->got.count; i++)
        free(end->got.at[i].payload);
    tdi_vec_free(&end->got);
    free(end->place);
    end->link = NULL;
    end->place = NULL;
}

void link_pair_open(link_end ends[2], tdi_security *client, tdi_security *server)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    link_end_open(&ends[0], client, fds[0], TDI_LINK_CLIENT);
    link_end_open(&ends[1], server, fds[1], TDI_LINK_SERVER);
}

static struct pollfd awaited(const link_end *end)
{
    uint32_t events = end->link ? tdi_link_events(end->link) : 0;
    bool waits = end->link && events && tdi_link_get_state(end->link) != TDI_LINK_LOST;
    return (struct pollfd){.fd = waits ? tdi_link_descriptor(end->link) : -1,
                           .events = (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0))};
}

bool link_pump_until(link_end *a, link_end *b, bool (*condition)(const void *argument), const void *argument)
{
    double end = tdi_seconds() + 60;
    while (!condition(argument)) {
        bool more = a->link && tdi_link_pump(a->link);
        more = (b->link && tdi_link_pump(b->link)) || more;
        struct pollfd both[2] = {awaited(a), awaited(b)};
        if (!more && !condition(argument) && poll(both, 2, 100) < 0 && errno != EINTR)
            return false;
        if (tdi_seconds() > end)
            return false;
    }
    return true;
}

static bool both_opened(const void *argument)
{
    const link_end *ends = argument;
    return (ends[0].opened && ends[1].opened) || ends[0].lost || ends[1].lost;
}

void link_pair_shake(link_end ends[2])
{
    assert_true(link_pump_until(&ends[0], &ends[1], both_opened, ends));
    if (ends[0].lost || ends[1].lost)
        fail_msg("%s / %s", ends[0].why.message, ends[1].why.message);
}

bool link_both_lost(const void *argument)
{
    const link_end *ends = argument;
    return ends[0].lost && ends[1].lost;
}
