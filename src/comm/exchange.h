/* exchange.h - what the processes of a group give to and take from each other in a step.
 *
 * Every process computes its own shards. A GATHER brings each shard's slot of the exchange arena to all processes. A
 * REDUCE brings all of them the sums over all shards' gradients, to the bit those of one process that has all shards
 * (reduction.h); every process then computes the same updates from them. So the answer does not depend on who computes
 * which shard, and no process is left with half a step.
 *
 * Bytes are moved by a courier, a thread of its own, while the others compute, and by threads that wait for them. */
#ifndef TDI_COMM_EXCHANGE_H
#define TDI_COMM_EXCHANGE_H

#include "base/trace.h"
#include "comm/communicator.h"
#include "comm/deal.h"
#include "link/wire.h"

typedef struct tdi_exchange tdi_exchange;

typedef struct tdi_exchange_spec {
    int processes, self;
    const char *const *names; /* [processes], for sentences: "worker 1 (10.0.0.3:2222)"; copied */
} tdi_exchange_spec;

td_status tdi_exchange_create(const tdi_exchange_spec *spec, tdi_exchange **exchange, tdi_error *error);
/* What the fabric has to be opened with: the processes are its peers, by their numbers. Lives as long as the exchange.
 */
const tdi_sinks *tdi_exchange_sinks(tdi_exchange *exchange);
/* Starts the courier, to which the fabric and its wires, [processes] with NULL for this one, belong from now on. The
 * wires' pointers are copied; the fabric is closed by tdi_exchange_free, also when starting fails. */
td_status tdi_exchange_start(tdi_exchange *exchange, tdi_fabric *fabric, tdi_wire *const *wires, tdi_error *error);
/* Ends the courier and closes the fabric. Programs that are still connected are broken, and their handles may be
 * released later. NULL is accepted. */
void tdi_exchange_free(tdi_exchange *exchange);

/* Communicators of a program between the processes: handles[group->workers], released one by one. All processes connect
 * the same programs in the same order, with the same deal, which outlives the handles. */
td_status tdi_exchange_connect(tdi_exchange *exchange, const tdi_deal *deal, const tdi_group_spec *group,
                               tdi_communicator **handles, tdi_error *error);

/* Brings each process's slot to all: `slots` are [processes][size] bytes, of which this process has written its own.
 * Called by one thread of every process, between steps, in the same order; blocks. Fails with the exchange's failure.
 */
td_status tdi_exchange_gather(tdi_exchange *exchange, void *slots, size_t size, tdi_error *error);

/* Breaks all that is pending, and all that is begun later, here and, as soon as they hear of it, in the other
 * processes, which are told the sentence. The first reason holds. Called by any thread. */
void tdi_exchange_break(tdi_exchange *exchange, const tdi_error *why);
/* NULL: it is not broken. */
const tdi_error *tdi_exchange_failure(const tdi_exchange *exchange);

/* From now on the steps' frames ask all processes to stop; false again once tdi_exchange_stops has said so. */
void tdi_exchange_ask_to_stop(tdi_exchange *exchange);
/* Has any process asked to stop by a frame of step `step` of the program that ran last? The same in all of them. */
bool tdi_exchange_stops(tdi_exchange *exchange, uint32_t step);

/* For reports: bytes of payload that this process has sent, and seconds that its threads have waited for others in
 * collectives, of which they are the mean. */
uint64_t tdi_exchange_sent(const tdi_exchange *exchange);
double tdi_exchange_waited(const tdi_exchange *exchange);
/* From now on the trace shows what is under way from when to when, and when the courier moves bytes; NULL ends that.
 * Called by the context's thread between jobs, after their programs have been connected; the trace outlives the next
 * call. TD_NO_MEMORY: nothing is noted. */
td_status tdi_exchange_trace(tdi_exchange *exchange, tdi_trace *trace, tdi_error *error);

#endif
