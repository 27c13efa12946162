/* processes.h - processes of a group, which are threads here, connected by TLS over socket pairs or by UCX's shared
 * memory. */
#ifndef TESTS_SUPPORT_PROCESSES_H
#define TESTS_SUPPORT_PROCESSES_H

#include "comm/exchange.h"
#include "link/security.h"
#include "strategy/strategy.h"

enum { MOST_PROCESSES = 5 };

typedef struct group_process {
    tdi_strategy strategy; /* of a model that is trained in this process */
    tdi_division division; /* what it divides batches by: own shards are set */
    int self;
    tdi_security *security; /* of the first process */
    tdi_deal *deal;
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_wire *wires[MOST_PROCESSES];
    tdi_exchange *exchange;
} group_process;

typedef enum process_wires { WIRES_TLS, WIRES_UCX } process_wires;

/* Opens processes, whose shards are [first[p], first[p + 1]) of all, in `workers` workers at most each. */
void processes_open(group_process *processes, int count, const int *first, int groups, int workers,
                    process_wires wires);
/* Runs function(argument, p) for each of them, each in a thread of its own. */
void processes_run(int count, void (*function)(void *argument, int process), void *argument);
void processes_close(group_process *processes, int count);

#endif
