/* Two ends of a link: frames of all sizes both ways at once, ends in order and by cuts, renewed keys, other secrets. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/address.h"
#include "support/link_end.h"
#include "support/sanitized.h"

static const uint32_t sizes[] = {0,     1,     31,    32, 33,     1000,   16351,   16352,   16353,    16383, 16384,
                                 16385, 32768, 65537, 0,  262144, 999999, 1 << 20, 3 << 20, 10000000, 5,     0};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGEST = 10000000 };

static unsigned char *pattern; /* [LARGEST + 256] */

static const unsigned char *payload_of(int i, int side)
{
    return pattern + (i * 7 + side * 101) % 256;
}

static tdi_frame frame_of(int i, int side)
{
    return (tdi_frame){.length = sizes[i],
                       .kind = (uint16_t)(i + 1),
                       .flags = (uint16_t)side,
                       .id = (uint32_t)i << 16,
                       .generation = 3,
                       .step = UINT32_MAX - (uint32_t)i,
                       .shard = 0x01020304,
                       .offset = (uint64_t)i << 40};
}

static void send_all(link_end *end, int side, bool copied)
{
    for (int i = 0; i < SIZES; i++) {
        tdi_frame frame = frame_of(i, side);
        if (copied)
            tdi_link_send_copy(end->link, &frame, payload_of(i, side));
        else
            tdi_link_send(end->link, &frame, payload_of(i, side));
    }
}

static void check_all(const link_end *end, int side)
{
    assert_int_equal(end->got.count, SIZES);
    for (int i = 0; i < SIZES; i++) {
        tdi_frame expected = frame_of(i, side);
        assert_memory_equal(&end->got.at[i].frame, &expected, sizeof expected);
        assert_int_equal(memcmp(end->got.at[i].payload, payload_of(i, side), sizes[i]), 0);
    }
}

static bool all_arrived(const void *argument)
{
    const link_end *ends = argument;
    return (ends[0].got.count >= SIZES && ends[1].got.count >= SIZES) || ends[0].lost || ends[1].lost;
}

static void exchange_all(link_end ends[2])
{
    send_all(&ends[0], 0, false);
    send_all(&ends[1], 1, true);
    assert_true(link_pump_until(&ends[0], &ends[1], all_arrived, ends));
    check_all(&ends[1], 0);
    check_all(&ends[0], 1);
    assert_int_equal(ends[0].sent, SIZES);
    assert_int_equal(ends[1].sent, 0);
    assert_int_equal(ends[0].opened + ends[1].opened, 2);
}

static void frames_go_both_ways(void **state)
{
    (void)state;
    tdi_security *security = link_security(1);
    link_end ends[2] = {0};
    link_pair_open(ends, security, security);
    exchange_all(ends); /* queued before the handshake */
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

static void connect_loopback(const char *host, int fds[2])
{
    tdi_address address = {.port = 0};
    tdi_endpoint bound;
    int port;
    strcpy(address.host, host);
    assert_int_equal(tdi_address_listen(&address, &port, &bound, NULL), TD_OK);
    assert_int_equal(tdi_endpoint_connect(&bound, &fds[0], NULL), TD_OK);
    assert_int_equal(poll(&(struct pollfd){.fd = port, .events = POLLIN}, 1, 60000), 1);
    fds[1] = accept4(port, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fds[1] >= 0);
    close(port);
}

static void frames_go_over_loopback(void **state)
{
    (void)state;
    tdi_security *security = link_security(2);
    link_end ends[2] = {0};
    int fds[2];
    connect_loopback("127.0.0.1", fds);
    for (int i = 0; i < 2; i++)
        tdi_socket_send_at_once(fds[i]);
    link_end_open(&ends[0], security, fds[0], TDI_LINK_CLIENT);
    link_end_open(&ends[1], security, fds[1], TDI_LINK_SERVER);
    tdi_link_renew_keys_after(ends[0].link, 300000); /* some fifty times */
    tdi_link_renew_keys_after(ends[1].link, 100000);
    exchange_all(ends);
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

/* A pipe in the midst: what goes through is counted, and cut after so many bytes. */
typedef struct relay {
    int fds[2];
    size_t left; /* of what the client sends; then it is cut */
    size_t passed;
    bool by_server; /* the server's bytes are counted instead */
} relay;

static bool forward(relay *relay, int from)
{
    unsigned char bytes[4096];
    bool counted = (from == 1) == relay->by_server;
    size_t size = counted && relay->left < sizeof bytes ? relay->left : sizeof bytes;
    ssize_t count = size ? recv(relay->fds[from], bytes, size, 0) : 0;
    if (count > 0)
        assert_int_equal(send(relay->fds[!from], bytes, (size_t)count, MSG_NOSIGNAL), count);
    if (count > 0 && counted) {
        relay->left -= (size_t)count;
        relay->passed += (size_t)count;
    }
    return count > 0 || (count < 0 && errno == EAGAIN);
}

static bool is_passed_on(const relay *relay)
{
    for (int i = 0; i < 2; i++)
        if (poll(&(struct pollfd){.fd = relay->fds[i], .events = POLLIN}, 1, 0) == 1)
            return false;
    return true;
}

static void open_through(relay *relay, link_end ends[2], tdi_security *security)
{
    int a[2], b[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
    relay->fds[0] = a[1];
    relay->fds[1] = b[1];
    link_end_open(&ends[0], security, a[0], TDI_LINK_CLIENT);
    link_end_open(&ends[1], security, b[0], TDI_LINK_SERVER);
}

enum { FEW = 6 };

/* A few small frames each way through the relay, until it cuts or nothing moves any more. The bytes that passed. */
static size_t run_through(relay *relay, link_end ends[2], tdi_security *security)
{
    open_through(relay, ends, security);
    for (int i = 0; i < FEW; i++)
        for (int side = 0; side < 2; side++) {
            tdi_frame frame = frame_of(i, side);
            tdi_link_send(ends[side].link, &frame, payload_of(i, side));
        }
    bool open = true;
    for (int idle = 0; open && idle < 2;) {
        tdi_link_pump(ends[0].link);
        tdi_link_pump(ends[1].link);
        idle = is_passed_on(relay) ? idle + 1 : 0;
        open = relay->left > 0 && forward(relay, 0) && forward(relay, 1);
    }
    close(relay->fds[0]);
    close(relay->fds[1]);
    return relay->passed;
}

static void cut_at(tdi_security *security, size_t position, bool by_server)
{
    relay relay = {.left = position, .by_server = by_server};
    link_end ends[2] = {0};
    run_through(&relay, ends, security);
    assert_true(link_pump_until(&ends[0], &ends[1], link_both_lost, ends));
    for (int side = 0; side < 2; side++) {
        assert_true(ends[side].lost == 1 && ends[side].got.count <= FEW);
        assert_int_equal(ends[side].why.status, TD_IO);
        assert_non_null(strstr(ends[side].why.message, side ? "the client: " : "the server: "));
        for (int i = 0; i < ends[side].got.count; i++)
            assert_int_equal(memcmp(ends[side].got.at[i].payload, payload_of(i, !side), sizes[i]), 0);
    }
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
}

/* Whatever byte is the last, both ends are lost in a sentence, and what has arrived is whole. */
static void streams_are_cut_at_every_byte(void **state)
{
    (void)state;
    tdi_security *security = link_security(3);
    for (int by_server = 0; by_server < 2; by_server++) {
        relay whole = {.left = SIZE_MAX, .by_server = by_server};
        link_end ends[2] = {0};
        size_t total = run_through(&whole, ends, security);
        assert_true(ends[0].got.count == FEW && ends[1].got.count == FEW && total > 1000);
        link_end_close(&ends[0]);
        link_end_close(&ends[1]);
        for (size_t position = 0; position <= total; position += SANITIZED ? 5 : 1)
            cut_at(security, position, by_server);
    }
    tdi_security_free(security);
}

static void other_secrets_are_refused(void **state)
{
    (void)state;
    tdi_security *one = link_security(4), *other = link_security(5);
    link_end ends[2] = {0};
    link_pair_open(ends, one, other);
    assert_true(link_pump_until(&ends[0], &ends[1], link_both_lost, ends));
    for (int side = 0; side < 2; side++) {
        assert_int_equal(ends[side].why.status, TD_INVALID_ARGUMENT);
        assert_int_equal(ends[side].opened, 0);
        assert_non_null(strstr(ends[side].why.message, side ? "the client: refused: it has another secret"
                                                            : "the server: refused: it has another secret"));
    }
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(one);
    tdi_security_free(other);
}

static bool first_lost(const void *argument)
{
    return ((const link_end *)argument)[0].lost;
}

/* OpenSSL's server, with a certificate that it has signed itself. */
static SSL *certified_server(int fd, SSL_CTX *context)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    X509 *certificate = X509_new();
    assert_true(key && certificate);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    SSL *server = SSL_new(context);
    SSL_set_fd(server, fd);
    SSL_set_accept_state(server);
    return server;
}

/* One that does not know the key and would go on without. */
static void certificates_are_no_proof(void **state)
{
    (void)state;
    tdi_security *security = link_security(12);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    link_end end = {0};
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    link_end_open(&end, security, fds[0], TDI_LINK_CLIENT);
    SSL *server = certified_server(fds[1], context);
    for (int i = 0; i < 10; i++) {
        tdi_link_pump(end.link);
        (void)SSL_do_handshake(server);
        ERR_clear_error();
    }
    assert_true(end.lost == 1 && end.opened == 0);
    assert_non_null(strstr(end.why.message, "it does not know the secret, and shows a certificate instead"));
    SSL_free(server);
    SSL_CTX_free(context);
    close(fds[1]);
    link_end_close(&end);
    tdi_security_free(security);
}

static void other_runs_are_refused(void **state)
{
    (void)state;
    tdi_secret secret = {.size = 32};
    tdi_security *one, *other;
    assert_int_equal(tdi_security_create(&secret, "a", &one, NULL), TD_OK);
    assert_int_equal(tdi_security_create(&secret, "b", &other, NULL), TD_OK);
    link_end ends[2] = {0};
    link_pair_open(ends, one, other);
    assert_true(link_pump_until(&ends[0], &ends[1], link_both_lost, ends));
    assert_non_null(strstr(ends[0].why.message, "a run of another name"));
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(one);
    tdi_security_free(other);
}

static bool second_lost(const void *argument)
{
    return ((const link_end *)argument)[1].lost;
}

/* In order: what was sent before arrives, both say that it was closed, and by whom. */
static void links_end_in_order(void **state)
{
    (void)state;
    tdi_security *security = link_security(6);
    link_end ends[2] = {0};
    link_pair_open(ends, security, security);
    link_pair_shake(ends);
    for (int i = 0; i < SIZES; i++) {
        tdi_frame frame = frame_of(i, 0);
        tdi_link_send(ends[0].link, &frame, payload_of(i, 0));
    }
    tdi_link_end(ends[0].link);
    tdi_frame late = {.kind = 99};
    tdi_link_send(ends[0].link, &late, NULL);
    assert_true(link_pump_until(&ends[0], &ends[1], second_lost, ends));
    check_all(&ends[1], 0);
    assert_int_equal(ends[1].why.status, TD_STOPPED);
    assert_string_equal(ends[1].why.message, "the client: has closed the connection");
    tdi_link_free(ends[1].link);
    ends[1].link = NULL;
    assert_true(link_pump_until(&ends[0], &ends[1], link_both_lost, ends));
    assert_int_equal(ends[0].why.status, TD_STOPPED);
    assert_string_equal(ends[0].why.message, "the server: the connection has been closed");
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

/* A peer that has gone: what it sent before is received, though writing to it fails; no signal. */
static void a_cut_peers_last_words_arrive(void **state)
{
    (void)state;
    tdi_security *security = link_security(7);
    link_end ends[2] = {0};
    link_pair_open(ends, security, security);
    link_pair_shake(ends);
    tdi_frame frame = {.kind = 5, .length = 4};
    tdi_link_send(ends[1].link, &frame, "last");
    tdi_link_pump(ends[1].link);
    tdi_link_free(ends[1].link);
    ends[1].link = NULL;
    for (int i = 0; i < 3; i++) {
        frame = frame_of(i + 3, 0);
        tdi_link_send(ends[0].link, &frame, payload_of(i + 3, 0));
    }
    assert_true(link_pump_until(&ends[0], &ends[1], first_lost, ends));
    assert_int_equal(ends[0].got.count, 1);
    assert_memory_equal(ends[0].got.at[0].payload, "last", 4);
    assert_int_equal(ends[0].why.status, TD_IO);
    assert_string_equal(ends[0].why.message, "the server: the connection was cut");
    tdi_link_send(ends[0].link, &frame, pattern); /* to nobody */
    assert_false(tdi_link_pump(ends[0].link));
    assert_int_equal(ends[0].lost, 1);
    link_end_close(&ends[0]);
    tdi_security_free(security);
}

static bool one_arrived(const void *argument)
{
    return ((const link_end *)argument)[1].got.count == 1;
}

static void sinks_drop_and_refuse(void **state)
{
    (void)state;
    tdi_security *security = link_security(8);
    link_end ends[2] = {{.lost = 0}, {.drops = 2, .longest = 100}};
    link_pair_open(ends, security, security);
    tdi_frame frames[] = {{.kind = 2, .length = 1000000}, {.kind = 2}, {.kind = 1, .length = 100}};
    for (int i = 0; i < 3; i++)
        tdi_link_send(ends[0].link, &frames[i], pattern);
    assert_true(link_pump_until(&ends[0], &ends[1], one_arrived, ends));
    assert_int_equal(ends[1].got.at[0].frame.length, 100);
    frames[0] = (tdi_frame){.kind = 1, .length = 101};
    tdi_link_send(ends[0].link, &frames[0], pattern);
    assert_true(link_pump_until(&ends[0], &ends[1], second_lost, ends));
    assert_string_equal(ends[1].why.message, "the client: sent 101 bytes, more than are expected");
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

static bool three_sent(const void *argument)
{
    return ((const link_end *)argument)[0].sent == 3;
}

static bool three_arrived(const void *argument)
{
    return ((const link_end *)argument)[1].got.count == 3;
}

static void held_frames_wait(void **state)
{
    (void)state;
    tdi_security *security = link_security(9);
    link_end ends[2] = {{.lost = 0}, {.holds = true}};
    link_pair_open(ends, security, security);
    for (int i = 0; i < 3; i++) {
        tdi_frame frame = frame_of(i, 0);
        tdi_link_send(ends[0].link, &frame, payload_of(i, 0));
    }
    assert_true(link_pump_until(&ends[0], &ends[1], three_sent, ends));
    for (int i = 0; i < 5; i++)
        assert_false(tdi_link_pump(ends[1].link));
    assert_int_equal(ends[1].got.count, 0);
    assert_int_equal(tdi_link_events(ends[1].link), 0);
    ends[1].holds = false;
    tdi_link_resume(ends[1].link);
    assert_true(link_pump_until(&ends[0], &ends[1], three_arrived, ends));
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

static void free_itself(link_end *end, const received *last)
{
    (void)last;
    tdi_link_free(end->link);
    end->link = NULL;
}

/* Freed from within a sink, in the midst of a stream. */
static void a_sink_may_free_the_link(void **state)
{
    (void)state;
    tdi_security *security = link_security(10);
    link_end ends[2] = {{.lost = 0}, {.on_arrived = free_itself}};
    link_pair_open(ends, security, security);
    send_all(&ends[0], 0, false);
    assert_true(link_pump_until(&ends[0], &ends[1], first_lost, ends));
    assert_int_equal(ends[1].got.count, 1);
    assert_int_equal(ends[1].lost, 0);
    link_end_close(&ends[0]);
    link_end_close(&ends[1]);
    tdi_security_free(security);
}

static void silence_ends_the_handshake(void **state)
{
    (void)state;
    tdi_security *security = link_security(11);
    int fds[2];
    link_end end = {0}, nobody = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    link_end_open(&end, security, fds[0], TDI_LINK_SERVER);
    tdi_link_limit_handshake(end.link, 0);
    assert_true(link_pump_until(&end, &nobody, first_lost, &end));
    assert_string_equal(end.why.message, "the client: connected, and said nothing within 0 s");
    close(fds[1]);
    link_end_close(&end);
    tdi_security_free(security);
}

static int make_pattern(void **state)
{
    (void)state;
    pattern = malloc(LARGEST + 256);
    for (int i = 0; pattern && i < LARGEST + 256; i++)
        pattern[i] = (unsigned char)((unsigned)i * 2654435761u >> 24);
    return pattern ? 0 : -1;
}

static int free_pattern(void **state)
{
    (void)state;
    free(pattern);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_go_both_ways),
                                       cmocka_unit_test(frames_go_over_loopback),
                                       cmocka_unit_test(other_secrets_are_refused),
                                       cmocka_unit_test(other_runs_are_refused),
                                       cmocka_unit_test(certificates_are_no_proof),
                                       cmocka_unit_test(links_end_in_order),
                                       cmocka_unit_test(a_cut_peers_last_words_arrive),
                                       cmocka_unit_test(sinks_drop_and_refuse),
                                       cmocka_unit_test(held_frames_wait),
                                       cmocka_unit_test(a_sink_may_free_the_link),
                                       cmocka_unit_test(silence_ends_the_handshake),
                                       cmocka_unit_test(streams_are_cut_at_every_byte)};
    return cmocka_run_group_tests(tests, make_pattern, free_pattern);
}
