/* deal.h - which process computes which shards of the global batch, and which rows a shard has.
 *
 * Shards are numbered over all processes, in the order of their tasks: a process has shards [first_shard[p],
 * first_shard[p + 1]). A shard's units are its weight in rows: the number of devices that it stands for. Shard s has
 * rows [rows * units[s] / units[shards], rows * units[s + 1] / units[shards]) of a batch of `rows`: a process with
 * three devices has three times the rows of a process with one, whether it makes one shard of them or three. */
#ifndef TDI_COMM_DEAL_H
#define TDI_COMM_DEAL_H

#include "base/error.h"

#include <stdint.h>

/* A process, as it describes itself to the others. */
typedef struct tdi_deal_member {
    int devices; /* from 1 on */
    int shards;  /* into which it cuts its rows, 1 .. devices; not read where the number of shards is fixed */
} tdi_deal_member;

typedef struct tdi_deal {
    int processes, self, shards;
    const int *first_shard; /* [processes + 1] */
    const int32_t *units;   /* [shards + 1], cumulative: 0 at first */
} tdi_deal;

/* Deals shards to `processes` members, of which this process is number `self`. `shards` is 0: as many as all members
 * say, in a row. Else there are exactly so many shards, of one unit each, and each process has a number of them in
 * proportion to its devices; where that leaves a remainder the first processes have more, and where there are fewer
 * shards than devices a process may have none. TD_INVALID_ARGUMENT, TD_NO_MEMORY; *deal is NULL then. The caller frees
 * the deal. */
td_status tdi_deal_create(const tdi_deal_member *members, int processes, int self, int shards, tdi_deal **deal,
                          tdi_error *error);
void tdi_deal_free(tdi_deal *deal);

/* The first row of shard 0 .. shards in a global batch of `rows`; of `shards` it is `rows`. */
int64_t tdi_deal_row(const tdi_deal *deal, int64_t rows, int shard);
/* How many shards a process computes. */
static inline int tdi_deal_shards(const tdi_deal *deal, int process)
{
    return deal->first_shard[process + 1] - deal->first_shard[process];
}
/* The process that computes a shard. */
int tdi_deal_owner(const tdi_deal *deal, int shard);

#endif
