/* carrier.h - by what the bulk data of a group travels: the fabric with a wire to every other process. */
#ifndef TDI_CLUSTER_CARRIER_H
#define TDI_CLUSTER_CARRIER_H

#include "cluster/meeting.h"
#include "link/wire.h"

typedef enum tdi_transport { TDI_TRANSPORT_AUTO, TDI_TRANSPORT_UCX, TDI_TRANSPORT_TLS } tdi_transport;

typedef struct tdi_carrier_spec {
    td_context *context;
    tdi_meeting *meeting;
    int members, self;
    tdi_transport transport;
    bool open_network;      /* encryption off: UCX between hosts too */
    const tdi_sinks *sinks; /* borrowed until the fabric is closed */
} tdi_carrier_spec;

typedef struct tdi_carrier {
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_wire **wires; /* [members]; NULL for this process */
    char name[96];    /* "shared memory", "TLS", for sentences */
} tdi_carrier;

/* Opens it, with all other processes, which call it at the same time: each pair goes by what both have. TD_UNSUPPORTED:
 * UCX is wanted, and is not there. After a failure nothing is open. */
td_status tdi_carrier_open(const tdi_carrier_spec *spec, tdi_carrier *carrier, tdi_error *error);
/* Releases the engine and the wires; the fabric has been closed. */
void tdi_carrier_release(tdi_carrier *carrier);

#endif
