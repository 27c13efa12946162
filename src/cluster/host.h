/* host.h - what a host says about names, addresses and ports. The tests have hosts of their own. */
#ifndef TDI_CLUSTER_HOST_H
#define TDI_CLUSTER_HOST_H

#include <stdbool.h>

enum { TDI_ADDRESS = 64, TDI_MAX_ADDRESSES = 64 };

/* IPv4 and IPv6 addresses as text: "10.0.0.4", "fe80::1". */
typedef struct tdi_addresses {
    int count;
    char at[TDI_MAX_ADDRESSES][TDI_ADDRESS];
} tdi_addresses;

typedef struct tdi_host {
    /* The addresses of a name or of an address; count 0: it has none here. May take seconds. */
    void (*resolve)(const char *name, tdi_addresses *found);
    /* The addresses of this host's interfaces. */
    void (*own)(tdi_addresses *found);
    /* Whether somebody listens at the port of an address of this host; then `who` is "process 812 (tandem)", or
     * "another process" where it is not to be seen. */
    bool (*in_use)(const char *address, int port, char who[TDI_ADDRESS]);
} tdi_host;

extern const tdi_host tdi_this_host;

/* An address that reaches the own host only. */
bool tdi_is_loopback(const char *address);

#endif
