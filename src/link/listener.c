/* listener.c - a port, and the handshakes under way at it. */
#define _GNU_SOURCE
#include "link/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "link/address.h"

struct tdi_listener {
    tdi_listener_spec spec;
    tdi_sinks sinks;
    tdi_loop_source source;
    tdi_timer rest;                         /* while descriptors are short */
    tdi_link *shaking[TDI_MOST_HANDSHAKES]; /* their places are their numbers */
    uint64_t since[TDI_MOST_HANDSHAKES];    /* the how manyeth connection each is */
    uint64_t accepted;
    double quiet_until; /* of `refused` */
};

static void tell_refused(tdi_listener *listener, const tdi_error *why)
{
    double now = tdi_seconds();
    if (!listener->spec.refused || now < listener->quiet_until)
        return;
    listener->quiet_until = now + 1;
    listener->spec.refused(listener->spec.user, why);
}

/* ---- handshakes ---- */

static void on_opened(void *user, int place)
{
    tdi_listener *listener = user;
    tdi_link *link = listener->shaking[place];
    listener->shaking[place] = NULL;
    listener->spec.opened(listener->spec.user, link);
}

static void on_lost(void *user, int place, const tdi_error *why)
{
    tdi_listener *listener = user;
    tdi_link *link = listener->shaking[place];
    listener->shaking[place] = NULL;
    tell_refused(listener, why);
    tdi_link_free(link);
}

/* The connection that has had the most time; -1: there is none. */
static int oldest_place(tdi_listener *listener)
{
    int oldest = -1;
    for (int i = 0; i < TDI_MOST_HANDSHAKES; i++)
        if (listener->shaking[i] && (oldest < 0 || listener->since[i] < listener->since[oldest]))
            oldest = i;
    return oldest;
}

static bool drop_oldest(tdi_listener *listener)
{
    int place = oldest_place(listener);
    tdi_error why = {0};
    if (place < 0)
        return false;
    tdi_fail(&why, TD_IO, "%s: gave way to newer connections before it had proved that it knows the secret",
             tdi_link_name(listener->shaking[place]));
    on_lost(listener, place, &why);
    return true;
}

static int free_place(tdi_listener *listener)
{
    if (tdi_listener_handshakes(listener) == TDI_MOST_HANDSHAKES)
        drop_oldest(listener);
    int place = 0;
    while (listener->shaking[place])
        place++;
    return place;
}

static void begin_handshake(tdi_listener *listener, int fd, const tdi_endpoint *from)
{
    char name[TDI_ENDPOINT_TEXT];
    tdi_error error = {0};
    int place = free_place(listener);
    tdi_link **link = &listener->shaking[place];
    tdi_endpoint_text(from, name);
    tdi_socket_send_at_once(fd);
    if (tdi_link_create(listener->spec.security, fd, TDI_LINK_SERVER, name, link, &error) != TD_OK) {
        tell_refused(listener, &error);
        return;
    }
    listener->since[place] = ++listener->accepted;
    tdi_link_set_sinks(*link, &listener->sinks, place, on_opened);
    if (listener->spec.handshake_limit > 0)
        tdi_link_limit_handshake(*link, listener->spec.handshake_limit);
    if (tdi_link_attach(*link, listener->spec.loop, &error) != TD_OK)
        on_lost(listener, place, &error);
}

/* ---- the port ---- */

static void listen_again(void *user, double now)
{
    const tdi_listener *listener = user;
    (void)now;
    tdi_loop_change(listener->spec.loop, listener->source, EPOLLIN);
}

/* Descriptors or memory are short: a connection that waits would make the loop spin. */
static void rest(tdi_listener *listener)
{
    tdi_loop_change(listener->spec.loop, listener->source, 0);
    tdi_loop_set_timer(listener->spec.loop, &listener->rest, tdi_seconds() + 0.05);
}

static bool is_short(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

/* As many as have handshakes at a time, so that the loop gets round to them. */
static void accept_connections(void *user, uint32_t events)
{
    tdi_listener *listener = user;
    (void)events;
    for (int i = 0; i < TDI_MOST_HANDSHAKES / 4; i++) {
        tdi_endpoint from = {.size = sizeof from.at};
        int fd = accept4(listener->spec.fd, (struct sockaddr *)&from.at, &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            begin_handshake(listener, fd, &from);
        else if (is_short(errno) && !drop_oldest(listener)) {
            rest(listener);
            return;
        } else if (errno == EAGAIN)
            return;
    }
}

td_status tdi_listener_create(const tdi_listener_spec *spec, tdi_listener **listener, tdi_error *error)
{
    tdi_listener *made = *listener = calloc(1, sizeof *made);
    if (!made) {
        close(spec->fd);
        return tdi_no_memory(error);
    }
    made->spec = *spec;
    made->sinks = (tdi_sinks){.user = made, .lost = on_lost};
    made->rest = (tdi_timer){.fire = listen_again, .user = made};
    td_status status = tdi_loop_add(spec->loop, spec->fd, EPOLLIN, accept_connections, made, &made->source, error);
    if (status != TD_OK) {
        tdi_listener_free(made);
        *listener = NULL;
    }
    return status;
}

void tdi_listener_free(tdi_listener *listener)
{
    if (!listener)
        return;
    for (int i = 0; i < TDI_MOST_HANDSHAKES; i++)
        tdi_link_free(listener->shaking[i]);
    tdi_loop_stop_timer(listener->spec.loop, &listener->rest);
    tdi_loop_remove(listener->spec.loop, listener->source);
    close(listener->spec.fd);
    free(listener);
}

int tdi_listener_handshakes(const tdi_listener *listener)
{
    int count = 0;
    for (int i = 0; i < TDI_MOST_HANDSHAKES; i++)
        count += listener->shaking[i] != NULL;
    return count;
}
