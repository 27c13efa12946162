/* address.c - "host:port", names, and the sockets of both ends. */
#define _GNU_SOURCE
#include "link/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is written ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

static td_status refuse(const char *text, const char *why, tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "address \"%.100s\": %s; expected host:port, as node2:2222 or [::1]:2222", text, why);
}

static bool is_ipv6(const char *host)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    size_t length = strcspn(host, "%"); /* behind it stands an interface's name */
    if (length >= sizeof address || (host[length] && strspn(host + length + 1, letters) != strlen(host + length + 1)))
        return false;
    memcpy(address, host, length);
    address[length] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

static bool looks_like_ipv6(const char *host)
{
    return strchr(host, ':') && strspn(host, "0123456789abcdefABCDEF:.[]") == strlen(host);
}

/* The system would take 10.1 for 10.0.0.1. */
static bool is_name_or_ipv4(const char *host)
{
    struct in_addr parsed;
    if (strspn(host, letters) != strlen(host) || host[0] == '-' || host[0] == '.')
        return false;
    return strspn(host, "0123456789.") != strlen(host) || inet_pton(AF_INET, host, &parsed) == 1;
}

static td_status parse_port(const char *text, const char *digits, uint16_t *port, tdi_error *error)
{
    size_t count = strspn(digits, "0123456789");
    long value = 0;
    for (size_t i = 0; i < count && i < 6; i++)
        value = 10 * value + (digits[i] - '0');
    if (count == 0 || digits[count])
        return refuse(text, "its port is not a number", error);
    if (count > 5 || value < 1 || value > UINT16_MAX)
        return refuse(text, "its port is not from 1 to 65535", error);
    *port = (uint16_t)value;
    return TD_OK;
}

/* Copies what stands before the port's colon. */
static td_status parse_host(const char *text, size_t length, tdi_address *address, tdi_error *error)
{
    bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    size_t inside = bracketed ? length - 2 : length;
    if (inside == 0)
        return refuse(text, "a host is missing", error);
    if (inside >= sizeof address->host)
        return refuse(text, "its host is too long", error);
    memcpy(address->host, text + bracketed, inside);
    address->host[inside] = '\0';
    if (!bracketed && looks_like_ipv6(address->host))
        return refuse(text, "an IPv6 address stands in brackets", error);
    if (bracketed ? !is_ipv6(address->host) : !is_name_or_ipv4(address->host))
        return refuse(text, bracketed ? "what stands in brackets is no IPv6 address" : "its host is no name or address",
                      error);
    return TD_OK;
}

td_status tdi_address_parse(const char *text, tdi_address *address, tdi_error *error)
{
    *address = (tdi_address){.port = 0};
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    if (!colon || (bracket && bracket > colon))
        return refuse(text, "a port is missing", error);
    TDI_TRY(parse_host(text, (size_t)(colon - text), address, error));
    return parse_port(text, colon + 1, &address->port, error);
}

/* ---- what it stands for ---- */

/* "node2:2222", "[::1]:2222" */
static const char *text_of(const tdi_address *address, char text[TDI_HOST_SIZE + 16])
{
    snprintf(text, TDI_HOST_SIZE + 16, strchr(address->host, ':') ? "[%s]:%d" : "%s:%d", address->host, address->port);
    return text;
}

td_status tdi_address_resolve(const tdi_address *address, tdi_endpoints *endpoints, tdi_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%d", address->port);
    endpoints->count = 0;
    int reason = getaddrinfo(address->host, port, &hints, &found);
    if (reason != 0)
        return tdi_fail(error, TD_NOT_FOUND, "\"%s\" has no address here: %s; see /etc/hosts or the name server",
                        address->host, reason == EAI_SYSTEM ? strerror(errno) : gai_strerror(reason));
    for (struct addrinfo *at = found; at && endpoints->count < TDI_MOST_ENDPOINTS; at = at->ai_next)
        if (at->ai_family == AF_INET || at->ai_family == AF_INET6) {
            tdi_endpoint *endpoint = &endpoints->at[endpoints->count++];
            endpoint->size = at->ai_addrlen;
            memcpy(&endpoint->at, at->ai_addr, at->ai_addrlen);
        }
    freeaddrinfo(found);
    return endpoints->count ? TD_OK
                            : tdi_fail(error, TD_NOT_FOUND, "\"%s\" has no IPv4 or IPv6 address", address->host);
}

void tdi_endpoint_text(const tdi_endpoint *endpoint, char text[TDI_ENDPOINT_TEXT])
{
    char host[64], port[8];
    if (getnameinfo((const struct sockaddr *)&endpoint->at, endpoint->size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(text, TDI_ENDPOINT_TEXT, "a peer without an address");
    else
        snprintf(text, TDI_ENDPOINT_TEXT, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

int tdi_endpoint_port(const tdi_endpoint *endpoint)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&endpoint->at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&endpoint->at;
    return ntohs(endpoint->at.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

/* ---- sockets ---- */

static void set(int fd, int level, int option)
{
    int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof on);
}

void tdi_socket_send_at_once(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY);
}

static int open_socket(const tdi_endpoint *endpoint)
{
    return socket(endpoint->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket that listens; -1 with errno. A port is free again as soon as its last owner has gone. */
static int listen_at(const tdi_endpoint *endpoint)
{
    int fd = open_socket(endpoint);
    if (fd < 0)
        return -1;
    set(fd, SOL_SOCKET, SO_REUSEADDR);
    if (endpoint->at.ss_family == AF_INET6)
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (bind(fd, (const struct sockaddr *)&endpoint->at, endpoint->size) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static td_status fail_to_listen(const tdi_address *address, int reason, tdi_error *error)
{
    char text[TDI_HOST_SIZE + 16];
    text_of(address, text);
    if (reason == EADDRINUSE)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: its port is in use by another process; stop that, or give another port", text);
    if (reason == EADDRNOTAVAIL)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is no address of this machine; give one that it has", text);
    if (reason == EACCES)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: this user may not listen there: %s; give a port from 1024 on",
                        text, strerror(reason));
    return tdi_fail(error, TD_IO, "%s: cannot listen there: %s", text, strerror(reason));
}

td_status tdi_address_listen(const tdi_address *address, int *fd, tdi_endpoint *bound, tdi_error *error)
{
    tdi_endpoints endpoints;
    *fd = -1;
    TDI_TRY(tdi_address_resolve(address, &endpoints, error));
    for (int i = 0; i < endpoints.count && *fd < 0; i++)
        *fd = listen_at(&endpoints.at[i]);
    if (*fd < 0)
        return fail_to_listen(address, errno, error);
    if (bound) {
        bound->size = sizeof bound->at;
        (void)getsockname(*fd, (struct sockaddr *)&bound->at, &bound->size);
    }
    return TD_OK;
}

td_status tdi_endpoint_connect(const tdi_endpoint *endpoint, int *fd, tdi_error *error)
{
    *fd = open_socket(endpoint);
    if (*fd >= 0 && (connect(*fd, (const struct sockaddr *)&endpoint->at, endpoint->size) == 0 || errno == EINPROGRESS))
        return TD_OK;
    char text[TDI_ENDPOINT_TEXT];
    int reason = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    tdi_endpoint_text(endpoint, text);
    return tdi_fail(error, TD_IO, "%s: cannot be connected to: %s", text, strerror(reason));
}
