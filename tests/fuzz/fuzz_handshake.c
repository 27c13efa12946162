/* fuzz_handshake.c - any bytes from whoever connects, or from whom one has connected to: refused in a sentence. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void on_opened(void *user, int peer)
{
    (void)user;
    (void)peer;
    abort(); /* nobody proves by chance that he knows the key */
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    (void)peer;
    if (why->status == TD_OK || !why->message[0])
        abort();
    ++*(int *)user;
}

static tdi_security *make_security(void)
{
    tdi_secret secret = {.size = 32};
    tdi_security *security;
    if (tdi_security_create(&secret, "fuzz", &security, NULL) != TD_OK)
        abort();
    return security;
}

static void try_on(tdi_security *security, tdi_link_role role, const uint8_t *bytes, size_t size)
{
    int fds[2], lost = 0;
    tdi_sinks sinks = {.user = &lost, .lost = on_lost};
    tdi_link *link;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0 ||
        tdi_link_create(security, fds[0], role, "peer", &link, NULL) != TD_OK)
        abort();
    tdi_link_set_sinks(link, &sinks, 0, on_opened);
    tdi_link_pump(link);
    for (size_t sent = 0; sent < size && !lost;) {
        ssize_t count = send(fds[1], bytes + sent, size - sent, MSG_NOSIGNAL);
        sent += count > 0 ? (size_t)count : 0;
        tdi_link_pump(link);
    }
    close(fds[1]);
    tdi_link_pump(link);
    if (lost != 1)
        abort();
    tdi_link_free(link);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static tdi_security *security;
    if (!security)
        security = make_security();
    try_on(security, TDI_LINK_SERVER, bytes, size);
    try_on(security, TDI_LINK_CLIENT, bytes, size);
    return 0;
}
