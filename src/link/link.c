/* link.c - TLS over a socket, and frames over TLS.
 *
 * OpenSSL reads ahead, so a link may hold bytes of which its descriptor knows nothing: a pump goes on until OpenSSL has
 * no more, or until its share of the thread's time is over, and then says so.
 *
 * AES-GCM's keys are good for some 400 GB (RFC 8446, 5.5), which a fast network carries in minutes, so each side renews
 * its own long before that. */
#define _GNU_SOURCE
#include "link/link.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "link/outbox.h"
#include "link/refusal.h"

enum { NAME_SIZE = 400, SHARE = 1 << 20 };

struct tdi_link {
    SSL *ssl;
    int fd, io_error;
    tdi_link_state state;
    char name[NAME_SIZE];
    const tdi_sinks *sinks;
    int peer;
    void (*opened)(void *user, int peer);
    tdi_error why;

    tdi_outbox outbox;
    bool read_stuck, write_stuck; /* what it last tried waits for the socket to take bytes */
    bool ending, said_end, peer_ended;
    uint64_t renew_after, written; /* bytes since the keys were renewed */

    unsigned char header[TDI_FRAME_BYTES];
    size_t header_read;
    tdi_frame frame;
    void *place;
    uint32_t payload_read;
    bool in_payload, dropping, held;
    bool unread; /* OpenSSL may have bytes, or the socket, though the loop does not say so */

    bool pumping, freed, resumed;
    double handshake_limit, handshake_ends;
    tdi_loop *loop;
    tdi_loop_source source;
    uint32_t watched; /* events */
    tdi_timer timer;
};

/* ---- making and ending ---- */

td_status tdi_link_create(tdi_security *security, int fd, tdi_link_role role, const char *name, tdi_link **link,
                          tdi_error *error)
{
    tdi_link *made = *link = calloc(1, sizeof *made);
    if (made)
        made->ssl = tdi_security_connection(security, fd, role == TDI_LINK_SERVER, &made->io_error);
    if (!made || !made->ssl) {
        close(fd);
        free(made);
        *link = NULL;
        return tdi_no_memory(error);
    }
    made->fd = fd;
    made->renew_after = (uint64_t)1 << 35;
    tdi_link_limit_handshake(made, TDI_HANDSHAKE_SECONDS);
    snprintf(made->name, sizeof made->name, "%s", name);
    return TD_OK;
}

static void destroy(tdi_link *link)
{
    tdi_link_detach(link);
    tdi_outbox_clear(&link->outbox);
    SSL_free(link->ssl);
    close(link->fd);
    free(link);
}

void tdi_link_free(tdi_link *link)
{
    if (!link)
        return;
    link->state = TDI_LINK_LOST;
    link->freed = true;
    if (!link->pumping)
        destroy(link);
}

void tdi_link_set_sinks(tdi_link *link, const tdi_sinks *sinks, int peer, void (*opened)(void *user, int peer))
{
    link->sinks = sinks;
    link->peer = peer;
    link->opened = opened;
}

/* Keeps the first failure; the pump tells it. */
__attribute__((format(printf, 3, 4))) static void fail(tdi_link *link, td_status status, const char *format, ...)
{
    char sentence[sizeof link->why.message];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    tdi_fail(&link->why, status, "%s: %s", link->name, sentence);
}

static bool has_failed(const tdi_link *link)
{
    return link->why.status != TD_OK || link->freed;
}

static void tell_lost(tdi_link *link)
{
    link->state = TDI_LINK_LOST;
    tdi_outbox_clear(&link->outbox);
    tdi_link_detach(link);
    if (link->sinks && link->sinks->lost)
        link->sinks->lost(link->sinks->user, link->peer, &link->why);
}

/* ---- OpenSSL's outcomes ---- */

/* Whether the operation is to be tried again when the socket is ready; else it has failed, or the peer has ended. */
static bool is_to_be_retried(tdi_link *link, int result, bool *stuck)
{
    int reason = SSL_get_error(link->ssl, result);
    *stuck = reason == SSL_ERROR_WANT_WRITE;
    link->peer_ended = link->peer_ended || reason == SSL_ERROR_ZERO_RETURN;
    return reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE;
}

static void fail_transfer(tdi_link *link)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    bool in_frame = link->header_read > 0 || link->in_payload;
    if (link->said_end &&
        (link->peer_ended || link->io_error || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING))
        fail(link, TD_STOPPED, "the connection has been closed");
    else if (link->peer_ended && !in_frame)
        fail(link, TD_STOPPED, "has closed the connection");
    else if (link->io_error && link->io_error != ECONNRESET && link->io_error != EPIPE)
        fail(link, TD_IO, "the connection has failed: %s", strerror(link->io_error));
    else if (link->io_error || link->peer_ended || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING ||
             !reason)
        fail(link, TD_IO, "the connection was cut%s", in_frame ? " in the midst of a frame" : "");
    else
        fail(link, TD_IO, "sent what is not of this connection (%s)", reason);
}

/* ---- the handshake ---- */

/* The key, or nothing: a peer that got through by a certificate is none of the run. */
static void open_link(tdi_link *link)
{
    if (!SSL_session_reused(link->ssl) || SSL_version(link->ssl) != TLS1_3_VERSION) {
        fail(link, TD_INVALID_ARGUMENT, "refused: it has not proved that it knows the secret");
        return;
    }
    link->state = TDI_LINK_OPEN;
    if (link->loop)
        tdi_loop_stop_timer(link->loop, &link->timer);
    if (link->opened)
        link->opened(link->sinks->user, link->peer);
}

static void fail_by_time(tdi_link *link)
{
    if (BIO_number_read(SSL_get_rbio(link->ssl)) > 0)
        fail(link, TD_IO, "has not proved within %g s that it knows the secret", link->handshake_limit);
    else if (SSL_is_server(link->ssl))
        fail(link, TD_IO, "connected, and said nothing within %g s", link->handshake_limit);
    else
        fail(link, TD_IO, "does not answer within %g s; is a firewall in between?", link->handshake_limit);
}

static void shake(tdi_link *link)
{
    ERR_clear_error();
    link->write_stuck = false;
    int result = SSL_do_handshake(link->ssl);
    if (result == 1)
        open_link(link);
    else if (!is_to_be_retried(link, result, &link->write_stuck))
        tdi_refusal(link->name, SSL_is_server(link->ssl), link->io_error, link->peer_ended, &link->why);
    else if (tdi_seconds() >= link->handshake_ends)
        fail_by_time(link);
    ERR_clear_error();
}

void tdi_link_limit_handshake(tdi_link *link, double seconds)
{
    link->handshake_limit = seconds;
    link->handshake_ends = tdi_seconds() + seconds;
    if (link->loop && link->state == TDI_LINK_SHAKING)
        tdi_loop_set_timer(link->loop, &link->timer, link->handshake_ends);
}

/* ---- frames in ---- */

static void begin_frame(tdi_link *link)
{
    link->frame = tdi_frame_decode(link->header);
    link->header_read = 0;
    link->in_payload = link->held = true; /* until the sink has said where the payload goes */
    link->payload_read = 0;
}

static void ask_for_place(tdi_link *link)
{
    tdi_error refusal = {0};
    link->place = NULL;
    tdi_sink_answer answer = link->sinks->place(link->sinks->user, link->peer, &link->frame, &link->place, &refusal);
    link->held = answer == TDI_HOLD;
    link->dropping = answer == TDI_DROP;
    if (answer == TDI_REFUSE)
        fail(link, TD_INVALID_ARGUMENT, "%s",
             refusal.message[0] ? refusal.message : "sent a frame that nobody expects");
}

static void end_frame(tdi_link *link)
{
    link->in_payload = false;
    if (!link->dropping)
        link->sinks->arrived(link->sinks->user, link->peer, &link->frame, link->place);
}

/* Reads up to `size` bytes; 0: there are none now, or it has failed. */
static size_t read_bytes(tdi_link *link, void *bytes, size_t size)
{
    size_t count = 0;
    ERR_clear_error();
    link->read_stuck = false;
    int result = SSL_read_ex(link->ssl, bytes, size, &count);
    if (result <= 0 && !is_to_be_retried(link, result, &link->read_stuck))
        fail_transfer(link);
    return result > 0 ? count : 0;
}

static size_t read_header(tdi_link *link)
{
    size_t count = read_bytes(link, link->header + link->header_read, sizeof link->header - link->header_read);
    link->header_read += count;
    if (link->header_read == sizeof link->header)
        begin_frame(link);
    return count;
}

static size_t read_payload(tdi_link *link)
{
    unsigned char dropped[TDI_RECORD_BYTES];
    size_t left = link->frame.length - link->payload_read;
    unsigned char *place = link->dropping ? dropped : (unsigned char *)link->place + link->payload_read;
    if (link->dropping && left > sizeof dropped)
        left = sizeof dropped;
    size_t count = read_bytes(link, place, left);
    link->payload_read += (uint32_t)count;
    return count;
}

/* One step; false: nothing more can be read now. */
static bool read_on(tdi_link *link, size_t *moved)
{
    if (link->in_payload && link->held) {
        ask_for_place(link);
        if (link->held || has_failed(link))
            return false;
    }
    size_t count = 0;
    if (!link->in_payload)
        count = read_header(link);
    else if (link->payload_read < link->frame.length)
        count = read_payload(link);
    bool whole = link->in_payload && !link->held && link->payload_read == link->frame.length;
    if (whole)
        end_frame(link);
    *moved += count;
    return (count > 0 || whole) && !has_failed(link);
}

/* True: the share is used up. */
static bool read_frames(tdi_link *link)
{
    size_t moved = 0;
    while (read_on(link, &moved))
        if (moved >= SHARE)
            return true;
    return false;
}

/* ---- frames out ---- */

/* Between two writes alone: OpenSSL must be given the bytes again that it could not write. */
static void renew_keys(tdi_link *link)
{
    if (link->write_stuck || link->written < link->renew_after)
        return;
    link->written = 0;
    if (!SSL_key_update(link->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
        fail(link, TD_INTERNAL, "OpenSSL cannot renew the connection's keys");
}

static size_t write_bytes(tdi_link *link)
{
    const void *bytes;
    size_t size = tdi_outbox_next(&link->outbox, link->sinks, link->peer, &bytes), count = 0;
    if (size == 0 || link->freed)
        return 0;
    renew_keys(link);
    ERR_clear_error();
    link->write_stuck = false;
    int result = SSL_write_ex(link->ssl, bytes, size, &count);
    if (result <= 0 && !is_to_be_retried(link, result, &link->write_stuck))
        fail_transfer(link);
    if (result <= 0)
        return 0;
    tdi_outbox_wrote(&link->outbox, link->sinks, link->peer, count);
    link->written += count;
    return count;
}

static void say_end(tdi_link *link)
{
    ERR_clear_error();
    link->write_stuck = false;
    int result = SSL_shutdown(link->ssl);
    link->said_end = result >= 0;
    if (result >= 0)
        (void)shutdown(link->fd, SHUT_WR);
    else if (!is_to_be_retried(link, result, &link->write_stuck))
        fail_transfer(link);
}

/* True: the share is used up. */
static bool write_frames(tdi_link *link)
{
    size_t moved = 0;
    while (!has_failed(link) && moved < SHARE) {
        size_t count = write_bytes(link);
        if (count == 0)
            break;
        moved += count;
    }
    if (!has_failed(link) && link->ending && !link->said_end && tdi_outbox_is_empty(&link->outbox))
        say_end(link);
    return moved >= SHARE;
}

/* ---- pumping ---- */

/* What a peer sent before it went still arrives, although there is nobody left to write to; and reading sees whether it
 * went in order. */
static void read_what_is_left(tdi_link *link)
{
    tdi_error why = link->why;
    link->why = (tdi_error){0};
    while (!has_failed(link) && read_frames(link))
        ;
    if (link->why.status == TD_OK)
        link->why = why;
}

static bool move_frames(tdi_link *link, bool reads)
{
    bool more = reads && (link->unread = read_frames(link));
    if (has_failed(link))
        return false;
    more = write_frames(link) || more;
    if (has_failed(link) && !link->freed)
        read_what_is_left(link);
    return more;
}

/* Lets the loop wait for what the link waits for. */
static void rearm(tdi_link *link, bool more)
{
    uint32_t events = tdi_link_events(link);
    if (events != link->watched)
        tdi_loop_change(link->loop, link->source, link->watched = events);
    if (more)
        tdi_loop_set_timer(link->loop, &link->timer, 0);
    else if (link->state == TDI_LINK_SHAKING)
        tdi_loop_set_timer(link->loop, &link->timer, link->handshake_ends);
}

/* Without `reads` it is known that there is nothing to read, which saves the system's answer that there is not. */
static bool pump(tdi_link *link, bool reads)
{
    if (link->state == TDI_LINK_LOST || link->pumping)
        return false;
    bool more = false;
    link->pumping = true;
    link->resumed = false;
    if (!has_failed(link) && link->state == TDI_LINK_SHAKING)
        shake(link);
    if (!has_failed(link) && link->state == TDI_LINK_OPEN)
        more = move_frames(link, reads || link->unread || link->read_stuck);
    if (has_failed(link) && !link->freed)
        tell_lost(link);
    link->pumping = false;
    if (link->freed) {
        destroy(link);
        return false;
    }
    more = (more || link->resumed) && link->state != TDI_LINK_LOST;
    if (link->loop)
        rearm(link, more);
    return more;
}

bool tdi_link_pump(tdi_link *link)
{
    return pump(link, true);
}

static void pump_soon(tdi_link *link)
{
    if (link->loop && !link->pumping && link->state != TDI_LINK_LOST)
        tdi_loop_set_timer(link->loop, &link->timer, 0);
}

static void queue(tdi_link *link, const tdi_frame *frame, const void *payload, bool copied)
{
    if (link->state == TDI_LINK_LOST || link->ending)
        return;
    if (!tdi_outbox_add(&link->outbox, frame, payload, copied))
        tdi_no_memory(&link->why);
    pump_soon(link);
}

void tdi_link_send(tdi_link *link, const tdi_frame *frame, const void *payload)
{
    queue(link, frame, payload, false);
}

void tdi_link_send_copy(tdi_link *link, const tdi_frame *frame, const void *payload)
{
    queue(link, frame, payload, true);
}

void tdi_link_end(tdi_link *link)
{
    link->ending = true;
    pump_soon(link);
}

void tdi_link_resume(tdi_link *link)
{
    link->resumed = link->unread = true;
    pump_soon(link);
}

/* ---- in a loop ---- */

static void pump_when_ready(void *user, uint32_t events)
{
    tdi_link *link = user;
    if (events & (EPOLLERR | EPOLLHUP) && link->in_payload && link->held) /* reading would see it, but does not read */
        fail(link, TD_IO, "the connection was cut");
    pump(link, events & ~(uint32_t)EPOLLOUT);
}

static void pump_when_due(void *user, double now)
{
    (void)now;
    pump(user, false);
}

td_status tdi_link_attach(tdi_link *link, tdi_loop *loop, tdi_error *error)
{
    link->watched = tdi_link_events(link) | EPOLLOUT; /* a socket that is connecting is waited for so */
    TDI_TRY(tdi_loop_add(loop, link->fd, link->watched, pump_when_ready, link, &link->source, error));
    link->loop = loop;
    link->unread = true;
    link->timer = (tdi_timer){.fire = pump_when_due, .user = link};
    if (link->state == TDI_LINK_SHAKING)
        tdi_loop_set_timer(loop, &link->timer, link->handshake_ends);
    else
        tdi_loop_set_timer(loop, &link->timer, 0); /* OpenSSL may have read ahead */
    return TD_OK;
}

void tdi_link_detach(tdi_link *link)
{
    if (!link->loop)
        return;
    tdi_loop_stop_timer(link->loop, &link->timer);
    tdi_loop_remove(link->loop, link->source);
    link->loop = NULL;
}

uint32_t tdi_link_events(const tdi_link *link)
{
    bool reads = !(link->in_payload && link->held);
    bool writes =
        link->read_stuck || link->write_stuck || (link->state == TDI_LINK_OPEN && !tdi_outbox_is_empty(&link->outbox));
    return (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
}

/* ---- what it is ---- */

int tdi_link_descriptor(const tdi_link *link)
{
    return link->fd;
}

tdi_link_state tdi_link_get_state(const tdi_link *link)
{
    return link->state;
}

const char *tdi_link_name(const tdi_link *link)
{
    return link->name;
}

void tdi_link_set_name(tdi_link *link, const char *name)
{
    snprintf(link->name, sizeof link->name, "%s", name);
}

void tdi_link_tell_loss(const char *name, const tdi_error *why, tdi_error *lost)
{
    size_t length = strlen(name);
    const char *how = why->message;
    if (strncmp(how, name, length) == 0 && strncmp(how + length, ": ", 2) == 0)
        how += length + 2;
    if (why->status == TD_STOPPED)
        tdi_fail(lost, TD_IO, "%s has left", name);
    else
        tdi_fail(lost, TD_IO, "%s is lost: %s", name, how);
}

void tdi_link_renew_keys_after(tdi_link *link, uint64_t bytes)
{
    link->renew_after = bytes;
}
