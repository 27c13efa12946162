/* division.h - who computes what of a batch: its shards, workers and threads, and other divisions of the same cores. */
#ifndef TDI_STRATEGY_DIVISION_H
#define TDI_STRATEGY_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#define TDI_MAX_SHARDS 256

typedef struct tdi_division {
    int replicas;  /* as the user counts them: devices */
    int shards;    /* slices of the global batch */
    int groups;    /* that share batch statistics: some shards each, or several in a shard */
    int own_first; /* this process computes shards [own_first, own_first + own), other processes the others */
    int own;       /* 0: all */
    int workers;   /* of this process, with a communicator handle each; worker w computes own shards from
                      w * own / workers on */
    int threads;   /* threads per worker that share its ops */
    bool either;   /* rows among workers or ops among threads: the results are the same, which is faster is a guess */
    char why[256]; /* one sentence for explain */
} tdi_division;

/* The shards of this process: their number, and the one behind the last. */
static inline int tdi_own_shards(const tdi_division *division)
{
    return division->own ? division->own : division->shards;
}
static inline int tdi_own_end(const tdi_division *division)
{
    return division->own_first + tdi_own_shards(division);
}

/* Each group is whole shards, or each shard whole groups. */
static inline bool tdi_division_nests(int shards, int groups)
{
    return shards % groups == 0 || groups % shards == 0;
}

/* The other division of the same cores, for a division that could be `either`. */
tdi_division tdi_divide_otherwise(const tdi_division *division);
/* Workers would have none of so few rows, where threads could share each of them. */
bool tdi_has_too_few(const tdi_division *division, int64_t rows);
/* The division for that: as many workers as rows keep busy, the other cores as their threads. */
tdi_division tdi_divide_few(const tdi_division *division, int64_t rows);
/* The division of the same cores in which a run with batches of `rows` had so many shards; false: none would have. */
bool tdi_divide_again(const tdi_division *division, int shards, int64_t rows, tdi_division *again);

#endif
