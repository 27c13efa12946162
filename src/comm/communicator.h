/* communicator.h - how the workers of a step meet, and how a collective that cannot be completed ends the step.
 *
 * A collective is begun when its input is ready and finished where its result is needed; what is computed in between
 * overlaps with it. All workers begin and finish the collectives of a program in the order of its schedule, which is
 * the same for all of them. What a collective moves stands in the program's list: a communicator of workers that share
 * their memory has nothing to move, any other moves those ranges.
 *
 * A collective of a step arrives or breaks once, for all threads of the process: they all get the same outcome, and
 * after a broken one they all leave the step where they finished it. The group is of no use afterwards; the runtime
 * releases it and makes another. Programs whose collectives can break have all their effects behind the last one
 * (tdi_graph.effects_last), so that a broken step leaves the model as it was, but for the accumulators of gradients
 * whose norm is clipped. Workers of one process never break; a test has a communicator that does. */
#ifndef TDI_COMM_COMMUNICATOR_H
#define TDI_COMM_COMMUNICATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

typedef enum tdi_collective_kind {
    TDI_MEET,   /* moves nothing: what every worker wrote before it is read behind it */
    TDI_GATHER, /* every shard's bytes to all */
    TDI_REDUCE  /* the sums over all shards' gradients */
} tdi_collective_kind;

/* REDUCE: floats of the gradient arenas, whose contents a communicator between processes may change. GATHER: bytes of
 * the exchange arena, where from `offset` on the shards' values of `size` each lie one behind the other. */
typedef struct tdi_transfer {
    int64_t offset, size;
} tdi_transfer;

typedef struct tdi_collective {
    tdi_collective_kind kind;
    int count;                     /* MEET: 0; GATHER: 1; REDUCE: ranges that do not touch, by their offsets */
    const tdi_transfer *transfers; /* [count]; they live as long as the graph */
} tdi_collective;

typedef tdi_vec(tdi_collective) tdi_collectives; /* of a program, by their ids */

typedef enum tdi_outcome { TDI_PENDING = 0, TDI_ARRIVED, TDI_BROKEN } tdi_outcome;

/* One worker's handle on its group. Collectives are numbered 0 .. within a program; steps count from 1 on. */
typedef struct tdi_communicator tdi_communicator;
struct tdi_communicator {
    int rank, size; /* of the workers of this process */
    /* The worker's contribution to collective `id` is in place. Called by the worker's thread 0 once its threads have
     * met. Never blocks and never fails: what goes wrong is the outcome of `finish`. */
    void (*begin)(tdi_communicator *communicator, int id);
    /* Blocks until the outcome of collective `id` of step `step` is known: ARRIVED when every worker has begun it, or
     * BROKEN; never PENDING. Called by every thread of the worker; all threads of the process get the same. */
    tdi_outcome (*finish)(tdi_communicator *communicator, int id, uint32_t step);
    /* Blocks until every thread of every worker of this process has come. Not called in a step that has broken. */
    void (*end_step)(tdi_communicator *communicator);
    /* Why a collective is BROKEN: a status other than TD_OK, and the sentence for the user. Called by any thread that
     * got BROKEN; the error lives as long as the handle. NULL: collectives of this kind never break. */
    const tdi_error *(*failure)(const tdi_communicator *communicator);
    /* Frees the handle, the last one of a group its memory too. Called by the context's thread, with no step under way;
     * after a broken step others may still be moving data, which `release` has to end. */
    void (*release)(tdi_communicator *communicator);
};

typedef struct tdi_group_spec {
    int workers, threads; /* of this process; threads: of all workers together */
    bool spin;            /* every thread has a core of its own */
    const tdi_collectives *collectives;
    /* What the collectives' ranges are of, for communicators that move them; all of it is there by the first step. */
    int shards;              /* of the global batch, those of other processes included */
    float *const *gradients; /* [shards]: the gradient arenas of this process's shards, NULL of the others */
    float *const *sums;      /* an arena of the same layout: a communicator between processes writes what REDUCE sums */
    char *const *exchange;   /* the exchange arena */
} tdi_group_spec;

/* Workers of one process, which read each other's memory: handles[workers], released one by one. Never breaks. On a
 * failure (TD_NO_MEMORY) no handle is left. */
td_status tdi_local_group_create(const tdi_group_spec *spec, tdi_communicator **handles, tdi_error *error);

/* The outcome of one collective, for communicators whose collectives can break: the first outcome that a thread latches
 * for a step holds for all threads. Zero-initialise. */
typedef struct tdi_latch {
    _Atomic uint64_t latched; /* step << 2 | outcome */
} tdi_latch;

/* Latches `outcome` for `step` where none is yet, and returns the one that holds; with PENDING only looks. */
tdi_outcome tdi_latch_outcome(tdi_latch *latch, uint32_t step, tdi_outcome outcome);

#endif
