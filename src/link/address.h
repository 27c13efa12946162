/* address.h - "host:port" as a user writes it, the addresses that it stands for, and sockets bound or connected there.
 *
 * Sockets are TCP's, non-blocking and closed by exec. */
#ifndef TDI_LINK_ADDRESS_H
#define TDI_LINK_ADDRESS_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

enum { TDI_HOST_SIZE = 254, TDI_ENDPOINT_TEXT = 80, TDI_MOST_ENDPOINTS = 8 };

/* What was written. */
typedef struct tdi_address {
    char host[TDI_HOST_SIZE]; /* a name, an IPv4 address, or an IPv6 address without its brackets */
    uint16_t port;            /* 0, which parsing refuses: to listen on one of the system's choice */
} tdi_address;

/* What it stands for: IPv4 or IPv6. */
typedef struct tdi_endpoint {
    struct sockaddr_storage at;
    socklen_t size;
} tdi_endpoint;

typedef struct tdi_endpoints {
    tdi_endpoint at[TDI_MOST_ENDPOINTS];
    int count; /* at least 1 */
} tdi_endpoints;

/* Reads "node2:2222", "10.0.0.3:2222", "[::1]:2222", "[fe80::1%eth0]:2222". TD_INVALID_ARGUMENT: the sentence says what
 * is missing. */
td_status tdi_address_parse(const char *text, tdi_address *address, tdi_error *error);

/* Asks the system what the host's addresses are; may take seconds for a name. TD_NOT_FOUND: no host of that name. */
td_status tdi_address_resolve(const tdi_address *address, tdi_endpoints *endpoints, tdi_error *error);

/* Listens on the first of the host's addresses that this machine has, and on no other; *bound, which may be NULL, says
 * where. An IPv6 address does not take IPv4's connections. TD_INVALID_ARGUMENT: the address is no address of this
 * machine, or its port is in use; TD_NOT_FOUND; TD_IO. The caller closes *fd. */
td_status tdi_address_listen(const tdi_address *address, int *fd, tdi_endpoint *bound, tdi_error *error);

/* Begins to connect; that this fails may be seen as late as with the first byte that is sent. The caller closes *fd. */
td_status tdi_endpoint_connect(const tdi_endpoint *endpoint, int *fd, tdi_error *error);

/* Sends small messages at once. Ignored for sockets that are not TCP's. */
void tdi_socket_send_at_once(int fd);

/* "10.0.0.3:2222", "[::1]:2222" */
void tdi_endpoint_text(const tdi_endpoint *endpoint, char text[TDI_ENDPOINT_TEXT]);
int tdi_endpoint_port(const tdi_endpoint *endpoint);

#endif
