/* A port: right peers get through, and strangers of all kinds do not, nor keep them out: garbage, half a handshake,
 * other secrets, TLS without the key, silence a thousandfold, descriptors that run out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "link/address.h"
#include "link/listener.h"
#include "support/link_end.h"

typedef struct place {
    tdi_loop *loop;
    tdi_security *security, *other;
    tdi_listener *listener;
    tdi_endpoint at;
    link_end server; /* the last that got through */
    int opened, refused;
    tdi_error why; /* of the last that was refused */
} place;

static void on_opened(void *user, tdi_link *link)
{
    place *p = user;
    p->opened++;
    tdi_link_free(p->server.link);
    p->server.link = link;
    tdi_link_set_sinks(link, &p->server.sinks, 0, NULL);
}

static void on_refused(void *user, const tdi_error *why)
{
    place *p = user;
    p->refused++;
    p->why = *why;
}

static void open_place(place *p, double limit)
{
    tdi_address address = {.host = "127.0.0.1"};
    int fd;
    *p = (place){.security = link_security(1), .other = link_security(2)};
    assert_int_equal(tdi_loop_create(&p->loop, NULL), TD_OK);
    assert_int_equal(tdi_address_listen(&address, &fd, &p->at, NULL), TD_OK);
    const tdi_listener_spec spec = {p->loop, p->security, fd, limit, p, on_opened, on_refused};
    assert_int_equal(tdi_listener_create(&spec, &p->listener, NULL), TD_OK);
    link_end unused = {0};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    link_end_open(&unused, p->security, pair[0], TDI_LINK_SERVER);
    p->server.sinks = unused.sinks;
    p->server.sinks.user = &p->server;
    link_end_close(&unused);
    close(pair[1]);
}

static void close_place(place *p)
{
    link_end_close(&p->server);
    tdi_listener_free(p->listener);
    tdi_loop_free(p->loop);
    tdi_security_free(p->security);
    tdi_security_free(p->other);
}

static int connect_to(const place *p)
{
    int fd;
    assert_int_equal(tdi_endpoint_connect(&p->at, &fd, NULL), TD_OK);
    return fd;
}

/* Runs the loop until *count reaches `target`, a minute at most. */
static void run_until(place *p, const int *count, int target)
{
    double end = tdi_seconds() + 60;
    while (*count < target && tdi_seconds() < end)
        assert_int_equal(tdi_loop_run(p->loop, 0.1, NULL), TD_OK);
    assert_true(*count >= target);
}

static void run_a_while(place *p)
{
    for (int i = 0; i < 20; i++)
        assert_int_equal(tdi_loop_run(p->loop, 0, NULL), TD_OK);
}

static void open_client(place *p, link_end *client, tdi_security *security)
{
    *client = (link_end){.lost = 0};
    link_end_open(client, security, connect_to(p), TDI_LINK_CLIENT);
    assert_int_equal(tdi_link_attach(client->link, p->loop, NULL), TD_OK);
}

/* A peer with the secret gets through, and its first frame. */
static void serve_right_peer(place *p)
{
    link_end client;
    int before = p->server.got.count;
    tdi_frame frame = {.kind = 1, .length = 5};
    open_client(p, &client, p->security);
    tdi_link_send(client.link, &frame, "hello");
    run_until(p, &p->server.got.count, before + 1);
    assert_int_equal(client.opened, 1);
    assert_memory_equal(p->server.got.at[before].payload, "hello", 5);
    link_end_close(&client);
}

/* The next refusal, whatever was said a moment before. */
static void expect_refusal(place *p, int before, const char *words)
{
    run_until(p, &p->refused, before + 1);
    if (!strstr(p->why.message, words) || strncmp(p->why.message, "127.0.0.1:", 10) != 0)
        fail_msg("expected \"%s\" by 127.0.0.1 in: %s", words, p->why.message);
}

static void right_peers_get_through(void **state)
{
    (void)state;
    place p;
    open_place(&p, 0);
    for (int i = 0; i < 20; i++)
        serve_right_peer(&p);
    assert_true(p.opened == 20 && p.refused == 0 && tdi_listener_handshakes(p.listener) == 0);
    close_place(&p);
}

static void other_secrets_are_refused(void **state)
{
    (void)state;
    place p;
    link_end client;
    open_place(&p, 0);
    open_client(&p, &client, p.other);
    expect_refusal(&p, 0, "refused: it has another secret, or belongs to a run of another name");
    run_until(&p, &client.lost, 1);
    assert_non_null(strstr(client.why.message, "the server: refused: it has another secret"));
    link_end_close(&client);
    for (int i = 0; i < 100; i++) { /* and is said once a second */
        open_client(&p, &client, p.other);
        run_until(&p, &client.lost, 1);
        link_end_close(&client);
    }
    assert_true(p.refused < 50 && p.opened == 0);
    serve_right_peer(&p);
    close_place(&p);
}

static void garbage_is_refused(void **state)
{
    (void)state;
    static const char *const garbage[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff\xff\xff",
                                          "\x16\x03\x03\x20\x05\x01zzzzzzzzzzzzzzzz", "SSH-2.0-OpenSSH_9.2\r\n"};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        place p;
        open_place(&p, 0);
        int fd = connect_to(&p);
        while (send(fd, garbage[i], strlen(garbage[i]), MSG_NOSIGNAL) < 0)
            run_a_while(&p);
        shutdown(fd, SHUT_WR);
        expect_refusal(&p, 0, ": ");
        close(fd);
        serve_right_peer(&p);
        close_place(&p);
    }
}

/* What a right client says first. */
static size_t client_hello(const place *p, unsigned char *bytes, size_t size)
{
    link_end client = {0};
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    link_end_open(&client, p->security, fds[0], TDI_LINK_CLIENT);
    tdi_link_pump(client.link);
    ssize_t count = recv(fds[1], bytes, size, 0);
    assert_true(count > 100);
    link_end_close(&client);
    close(fds[1]);
    return (size_t)count;
}

static void half_a_handshake_is_refused(void **state)
{
    (void)state;
    unsigned char hello[4096];
    for (int whole = 0; whole < 2; whole++)
        for (int closes = 0; closes < 2; closes++) {
            place p;
            open_place(&p, closes ? 0 : 0.05);
            size_t count = client_hello(&p, hello, sizeof hello);
            int fd = connect_to(&p);
            assert_true(send(fd, hello, whole ? count : count / 2, MSG_NOSIGNAL) > 0);
            if (closes)
                shutdown(fd, SHUT_WR);
            expect_refusal(&p, 0, closes ? "in the midst of the handshake" : "has not proved within 0.05 s");
            assert_int_equal(p.opened, 0);
            close(fd);
            serve_right_peer(&p);
            close_place(&p);
        }
}

/* A client of OpenSSL's alone, without the key. */
static void expect_stranger_refused(int version, const char *cipher)
{
    place p;
    open_place(&p, 0);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, version);
    if (cipher)
        assert_int_equal(SSL_CTX_set_cipher_list(context, cipher), 1);
    SSL *ssl = SSL_new(context);
    int fd = connect_to(&p), result, reason;
    SSL_set_fd(ssl, fd);
    do {
        run_a_while(&p);
        result = SSL_connect(ssl);
        reason = SSL_get_error(ssl, result);
    } while (result < 0 && (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE));
    assert_true(result <= 0);
    expect_refusal(&p, 0, "refused: it does not speak as a process of the run does");
    assert_int_equal(p.opened, 0);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    serve_right_peer(&p);
    close_place(&p);
}

static void tls_without_the_key_is_refused(void **state)
{
    (void)state;
    expect_stranger_refused(TLS1_2_VERSION, NULL);
    expect_stranger_refused(TLS1_3_VERSION, NULL);
}

/* Silent connections, as many as `count`, or as there are descriptors for; then a right peer. */
static void serve_beside_silence(int count)
{
    static int silent[1000];
    place p;
    int opened = 0;
    open_place(&p, 0);
    for (; opened < count; opened++) {
        silent[opened] = connect_to(&p);
        if (opened % 50 == 0)
            run_a_while(&p);
    }
    run_a_while(&p);
    assert_true(tdi_listener_handshakes(p.listener) <= TDI_MOST_HANDSHAKES);
    assert_true(tdi_listener_handshakes(p.listener) > 0);
    serve_right_peer(&p);
    serve_right_peer(&p);
    assert_non_null(strstr(p.why.message, "gave way to newer connections"));
    while (opened > 0)
        close(silent[--opened]);
    run_a_while(&p);
    close_place(&p);
}

static void a_thousand_silent_ones_keep_nobody_out(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t needed = 1200;
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    serve_beside_silence(limit.rlim_cur < needed ? (int)limit.rlim_cur - 150 : 1000);
}

/* So few descriptors are left that those of the silent ones have to be given up for the right peer's. */
static void descriptors_that_run_out_are_made_free(void **state)
{
    (void)state;
    struct rlimit before, few;
    place p;
    int silent[20];
    open_place(&p, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 20; i++)
        silent[i] = connect_to(&p);
    link_end client;
    open_client(&p, &client, p.security);
    few = before;
    few.rlim_cur = (rlim_t)silent[19] + 4;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    run_until(&p, &p.opened, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    link_end_close(&client);
    for (int i = 0; i < 20; i++)
        close(silent[i]);
    close_place(&p);
}

static void nothing_listens(void **state)
{
    (void)state;
    place p;
    link_end client;
    open_place(&p, 0);
    tdi_listener_free(p.listener);
    p.listener = NULL;
    client = (link_end){.lost = 0};
    link_end_open(&client, p.security, connect_to(&p), TDI_LINK_CLIENT);
    assert_int_equal(tdi_link_attach(client.link, p.loop, NULL), TD_OK);
    run_until(&p, &client.lost, 1);
    assert_int_equal(client.why.status, TD_NOT_FOUND);
    assert_non_null(strstr(client.why.message, "refuses the connection: nothing listens there"));
    link_end_close(&client);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_peers_get_through),
                                       cmocka_unit_test(other_secrets_are_refused),
                                       cmocka_unit_test(garbage_is_refused),
                                       cmocka_unit_test(half_a_handshake_is_refused),
                                       cmocka_unit_test(tls_without_the_key_is_refused),
                                       cmocka_unit_test(a_thousand_silent_ones_keep_nobody_out),
                                       cmocka_unit_test(descriptors_that_run_out_are_made_free),
                                       cmocka_unit_test(nothing_listens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
