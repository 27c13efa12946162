/* "host:port": what is read, what is refused; and sockets that listen exactly where told. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link/address.h"

static void expect(const char *text, const char *host, int port)
{
    tdi_address address;
    tdi_error error = {0};
    if (tdi_address_parse(text, &address, &error) != TD_OK)
        fail_msg("%s", error.message);
    assert_string_equal(address.host, host);
    assert_int_equal(address.port, port);
}

static void expect_refused(const char *text, const char *words)
{
    tdi_address address;
    tdi_error error = {0};
    assert_int_equal(tdi_address_parse(text, &address, &error), TD_INVALID_ARGUMENT);
    if (!strstr(error.message, words))
        fail_msg("expected \"%s\" in: %s", words, error.message);
}

static void addresses_are_read(void **state)
{
    (void)state;
    expect("node2:2222", "node2", 2222);
    expect("10.0.0.3:1", "10.0.0.3", 1);
    expect("[::1]:65535", "::1", 65535);
    expect("[fe80::1%eth0]:2222", "fe80::1%eth0", 2222);
    expect("[2001:db8::10.0.0.1]:80", "2001:db8::10.0.0.1", 80);
    expect("gpu-7.cluster.example.org:02222", "gpu-7.cluster.example.org", 2222);
    expect("worker_1:99", "worker_1", 99);
    expect("0.0.0.0:99", "0.0.0.0", 99);
    expect("3com.com:99", "3com.com", 99);
}

static void others_are_refused(void **state)
{
    (void)state;
    char text[400];
    expect_refused("", "a port is missing");
    expect_refused("node2", "a port is missing");
    expect_refused("[::1]", "a port is missing");
    expect_refused("node2:", "its port is not a number");
    expect_refused("node2:http", "its port is not a number");
    expect_refused("node2:22 ", "its port is not a number");
    expect_refused("node2:-22", "its port is not a number");
    expect_refused("node2:+22", "its port is not a number");
    expect_refused("node2:0", "its port is not from 1 to 65535");
    expect_refused("node2:65536", "its port is not from 1 to 65535");
    expect_refused("node2:18446744073709551617", "its port is not from 1 to 65535");
    expect_refused(":2222", "a host is missing");
    expect_refused("[]:2222", "a host is missing");
    expect_refused("::1:2222", "an IPv6 address stands in brackets");
    expect_refused("[::1:2222", "an IPv6 address stands in brackets");
    expect_refused("[10.0.0.1]:2222", "no IPv6 address");
    expect_refused("[::1%]x]:2222", "no IPv6 address");
    expect_refused("[node2]:2222", "no IPv6 address");
    expect_refused("10.1:2222", "its host is no name or address");
    expect_refused("10.0.0.256:2222", "its host is no name or address");
    expect_refused("no de:2222", "its host is no name or address");
    expect_refused("-node:2222", "its host is no name or address");
    expect_refused("nöde:2222", "its host is no name or address");
    expect_refused("http://node2:2222", "its host is no name or address");
    expect_refused("2001:db8::1", "an IPv6 address stands in brackets");
    expect_refused("node2:22:22", "its host is no name or address");
    memset(text, 'a', 300);
    strcpy(text + 300, ":2222");
    expect_refused(text, "its host is too long");
}

static td_status listen_at(const char *host, uint16_t port, int *fd, tdi_endpoint *bound, tdi_error *error)
{
    tdi_address address = {.port = port};
    strcpy(address.host, host);
    return tdi_address_listen(&address, fd, bound, error);
}

static bool is_taken(const tdi_endpoint *endpoint)
{
    int fd, reason = 0;
    socklen_t size = sizeof reason;
    if (tdi_endpoint_connect(endpoint, &fd, NULL) != TD_OK)
        return false;
    assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 60000), 1);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size), 0);
    close(fd);
    return reason == 0;
}

/* 127.0.0.1 is not 127.0.0.2, though both are of this machine. */
static void sockets_listen_where_told(void **state)
{
    (void)state;
    tdi_endpoint bound;
    char text[TDI_ENDPOINT_TEXT], expected[TDI_ENDPOINT_TEXT];
    int fd;
    assert_int_equal(listen_at("127.0.0.1", 0, &fd, &bound, NULL), TD_OK);
    snprintf(expected, sizeof expected, "127.0.0.1:%d", tdi_endpoint_port(&bound));
    tdi_endpoint_text(&bound, text);
    assert_string_equal(text, expected);
    assert_true(is_taken(&bound));
    ((struct sockaddr_in *)&bound.at)->sin_addr.s_addr = htonl(0x7f000002);
    assert_false(is_taken(&bound));
    close(fd);
}

static void ports_in_use_are_named(void **state)
{
    (void)state;
    tdi_endpoint bound;
    tdi_error error = {0};
    int fd, other;
    assert_int_equal(listen_at("127.0.0.1", 0, &fd, &bound, NULL), TD_OK);
    assert_int_equal(listen_at("127.0.0.1", (uint16_t)tdi_endpoint_port(&bound), &other, NULL, &error),
                     TD_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "its port is in use by another process"));
    close(fd);
    assert_int_equal(listen_at("127.0.0.1", (uint16_t)tdi_endpoint_port(&bound), &other, NULL, NULL), TD_OK);
    close(other);
}

static void addresses_of_others_are_named(void **state)
{
    (void)state;
    tdi_error error = {0};
    int fd;
    assert_int_equal(listen_at("192.0.2.1", 0, &fd, NULL, &error), TD_INVALID_ARGUMENT);
    assert_string_equal(error.message, "192.0.2.1:0 is no address of this machine; give one that it has");
    error = (tdi_error){0};
    assert_int_equal(listen_at("nothere.invalid", 0, &fd, NULL, &error), TD_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"nothere.invalid\" has no address here"));
    assert_int_equal(fd, -1);
}

static void ipv6_listens_where_there_is_some(void **state)
{
    (void)state;
    tdi_endpoint bound;
    char text[TDI_ENDPOINT_TEXT];
    int fd;
    if (listen_at("::1", 0, &fd, &bound, NULL) != TD_OK)
        skip();
    tdi_endpoint_text(&bound, text);
    assert_int_equal(strncmp(text, "[::1]:", 6), 0);
    assert_true(is_taken(&bound));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses_are_read),
                                       cmocka_unit_test(others_are_refused),
                                       cmocka_unit_test(sockets_listen_where_told),
                                       cmocka_unit_test(ports_in_use_are_named),
                                       cmocka_unit_test(addresses_of_others_are_named),
                                       cmocka_unit_test(ipv6_listens_where_there_is_some)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
