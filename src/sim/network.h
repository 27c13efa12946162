/* network.h - connections between the processes of hosts: ordered, as TCP's, over a network that can be cut.
 *
 * A connection is a pair of ends. What is sent arrives after latency and jitter, in order, or not at all once the
 * connection has ended. A cut holds up what is sent in one direction; when it heals, all of that arrives. A process
 * that dies ends its connections, of which the others hear unless the network is cut then, or its host has no power. */
#ifndef TDI_SIM_NETWORK_H
#define TDI_SIM_NETWORK_H

#include "link/frame.h"
#include "sim/host.h"

enum { TDI_SIM_HOSTS = 32 };

/* What a process hears of the network; not called while it is frozen or dead. */
typedef struct tdi_sim_ears {
    void *user;
    void (*up)(void *user, int self, int peer);
    void (*down)(void *user, int self, int peer);
    void (*frame)(void *user, int self, int peer, const tdi_frame *frame, const unsigned char *payload);
    /* The port of `peer` refuses: `incarnation`, which was asked about, is gone. */
    void (*gone)(void *user, int self, int peer, uint64_t incarnation);
} tdi_sim_ears;

typedef struct tdi_sim_end {
    bool up;
    uint64_t session; /* of the connection, of which this is an end */
    double last;      /* when what was sent last will have arrived at the other end */
    bool cut;         /* towards the other end */
    tdi_vec(tdi_happening) held;
} tdi_sim_end;

typedef struct tdi_network {
    tdi_world *world;
    tdi_sim_host *hosts; /* [count] */
    int count;
    double latency, jitter; /* seconds */
    tdi_sim_ears ears;
    uint64_t sessions;
    tdi_sim_end end[TDI_SIM_HOSTS][TDI_SIM_HOSTS]; /* [self][peer] */
} tdi_network;

void tdi_network_init(tdi_network *network, tdi_world *world, tdi_sim_host *hosts, int count, tdi_sim_ears ears);
void tdi_network_release(tdi_network *network);

/* Frames for a peer without a connection are dropped. */
void tdi_network_send(tdi_network *network, int self, int peer, const tdi_frame *frame, const unsigned char *payload);
/* Tries to connect; nothing comes of it where the peer is dead or frozen, or the network is cut. */
void tdi_network_connect(tdi_network *network, int self, int peer);
/* Asks the peer's port whether anybody is there. */
void tdi_network_probe(tdi_network *network, int self, int peer, uint64_t incarnation);
/* A process has died: its ends are gone. */
void tdi_network_end(tdi_network *network, int self);
/* A connection breaks without anybody's death. */
void tdi_network_reset(tdi_network *network, int self, int peer);
void tdi_network_cut(tdi_network *network, int from, int to);
void tdi_network_heal(tdi_network *network, int from, int to);

#endif
