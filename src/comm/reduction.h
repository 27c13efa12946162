/* reduction.h - one REDUCE between processes: how its ranges are cut, and how what arrives is added up.
 *
 * The ranges are cut into slices. A process adds up the shards of its own, as far as the sum's tree has them together:
 * its pieces (subtree.h). It sends each slice of a piece to the slice's owner, who adds the pieces of all processes in
 * the tree's order and sends the sum to all: two hops, and the bytes of a ring, whatever the number of processes. Where
 * that costs no more bytes, or hardly any, every process adds up all slices itself, and one hop is enough.
 *
 * There is no clock, wire or lock here: exchange.c moves what this file places and adds. One thread at a time uses a
 * reduction, but for tdi_combine, which the workers of a process call at once. */
#ifndef TDI_COMM_REDUCTION_H
#define TDI_COMM_REDUCTION_H

#include "comm/communicator.h"
#include "comm/subtree.h"

enum { TDI_EVERY_PROCESS = -1 };

typedef struct tdi_reduction_slice {
    int64_t offset, size; /* floats of the arenas */
    int owner;            /* the process that adds it up, or TDI_EVERY_PROCESS */
    float *staging;       /* [other processes' pieces][size]; NULL: not added up here */
    const float **values; /* [2 pieces - 1], by their numbers in the order (tdi_addition); NULL: not there yet */
    bool has_sum;         /* it has been added up, or the owner's sum has arrived */
} tdi_reduction_slice;

typedef struct tdi_reduction {
    const tdi_sum_order *order;
    int processes, self;
    int first_own, own; /* the pieces of this process are `own` in a row */
    bool direct;        /* every process adds up everything */
    int count;
    tdi_reduction_slice *slices; /* [count], by their offsets */
    float *staging;
    const float **values;
} tdi_reduction;

/* The order, which is the deal's, is borrowed. TD_NO_MEMORY; *reduction is NULL then. */
td_status tdi_reduction_create(const tdi_sum_order *order, const tdi_deal *deal, const tdi_collective *collective,
                               tdi_reduction **reduction, tdi_error *error);
void tdi_reduction_free(tdi_reduction *reduction);

/* The slice of this offset and size; NULL: there is none. */
tdi_reduction_slice *tdi_reduction_find(const tdi_reduction *reduction, uint64_t offset, uint64_t size);
/* Does this process add the slice up? */
bool tdi_adds_up(const tdi_reduction *reduction, const tdi_reduction_slice *slice);
/* How many frames come to this process in a step, and how many it sends: pieces and sums. */
int64_t tdi_reduction_arrivals(const tdi_reduction *reduction);
int64_t tdi_reduction_sends(const tdi_reduction *reduction);

/* Of a slice that is added up here: where another process's piece goes. */
float *tdi_slice_place(const tdi_reduction *reduction, const tdi_reduction_slice *slice, int piece);
/* A piece's values are there: at tdi_slice_place, or this process's own, which stay as they are. */
void tdi_slice_put(tdi_reduction_slice *slice, int piece, const float *values);
/* Makes all additions whose values are there; true, once: that was the last, and sum[slice->size] is the sum. Called
 * with denormals flushed to zero, as the additions of one process are made. */
bool tdi_slice_add(const tdi_reduction *reduction, tdi_reduction_slice *slice, float *sum);
/* Forgets all values, for the next step. */
void tdi_reduction_clear(tdi_reduction *reduction);

/* The sums of one process's own shards, which its workers make as they come. */
typedef struct tdi_combining {
    const tdi_sum_order *order;
    int self;
    const tdi_collective *collective;
    float *const *gradients; /* [shards] */
    atomic_int *begun;       /* [shards], zeros before and after each step; of one collective */
} tdi_combining;

/* Shards [begin, end) are ready. Who comes last to a node of the tree adds up its two halves; a piece's sum comes to
 * lie in the arena of its first shard. Nobody waits. */
void tdi_combine(const tdi_combining *combining, int begin, int end);

#endif
