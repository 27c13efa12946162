/* fuzz_frame.c - any bytes as frames, from a peer that has the key: taken, dropped, held or refused, never a crash, and
 * never a byte beyond a place. */
#define _GNU_SOURCE
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PLACE = 4096 };

typedef struct receiver {
    unsigned char *place; /* of the length that was announced */
    int holds;
} receiver;

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    receiver *r = user;
    const tdi_frame_expected expected = {*frame, PLACE};
    unsigned char again[TDI_FRAME_BYTES];
    (void)peer;
    tdi_frame_encode(frame, again);
    tdi_frame back = tdi_frame_decode(again);
    if (memcmp(&back, frame, sizeof back) != 0)
        abort();
    if (frame->kind % 4 == 1 && r->holds++ % 2 == 0)
        return TDI_HOLD;
    if (frame->kind % 4 == 2)
        return TDI_DROP;
    if (tdi_frame_check(frame, &expected, error) != TD_OK)
        return TDI_REFUSE;
    free(r->place);
    *place = r->place = malloc(frame->length ? frame->length : 1);
    return r->place ? TDI_TAKE : TDI_REFUSE;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    const receiver *r = user;
    (void)peer;
    if (place != r->place || frame->length > PLACE)
        abort();
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    (void)user;
    (void)peer;
    if (why->status == TD_OK || !why->message[0])
        abort();
}

static tdi_security *make_security(void)
{
    tdi_secret secret = {.size = 32};
    tdi_security *security;
    if (tdi_security_create(&secret, "fuzz", &security, NULL) != TD_OK)
        abort();
    return security;
}

static void shake(SSL *sender, tdi_link *link)
{
    for (int i = 0; i < 10 && (SSL_do_handshake(sender) != 1 || tdi_link_get_state(link) == TDI_LINK_SHAKING); i++) {
        ERR_clear_error();
        tdi_link_pump(link);
    }
    if (tdi_link_get_state(link) != TDI_LINK_OPEN)
        abort();
}

/* Sends the bytes as they are; the first says how many go into a record. */
static void send_bytes(SSL *sender, tdi_link *link, const uint8_t *bytes, size_t size)
{
    size_t piece = 1 + bytes[0] * (size_t)16, sent = 1;
    while (sent < size && tdi_link_get_state(link) == TDI_LINK_OPEN) {
        size_t count = size - sent < piece ? size - sent : piece;
        ERR_clear_error();
        if (SSL_write(sender, bytes + sent, (int)count) > 0)
            sent += count;
        tdi_link_resume(link);
        tdi_link_pump(link);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static tdi_security *security;
    receiver r = {.holds = 0};
    tdi_sinks sinks = {&r, on_place, on_arrived, NULL, on_lost};
    int fds[2], io_error = 0;
    tdi_link *link;
    if (!security)
        security = make_security();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0 ||
        tdi_link_create(security, fds[0], TDI_LINK_SERVER, "peer", &link, NULL) != TD_OK)
        abort();
    SSL *sender = tdi_security_connection(security, fds[1], false, &io_error);
    tdi_link_set_sinks(link, &sinks, 0, NULL);
    shake(sender, link);
    if (size > 1)
        send_bytes(sender, link, bytes, size);
    close(fds[1]);
    for (int i = 0; i < 3; i++) {
        tdi_link_resume(link);
        tdi_link_pump(link);
    }
    tdi_link_free(link);
    SSL_free(sender);
    free(r.place);
    return 0;
}
