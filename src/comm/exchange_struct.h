/* exchange_struct.h - the inside of an exchange, for exchange.c and courier.c.
 *
 * Two locks: `lock` is held for moments, by any thread, for the lists of posts and programs. Who holds `driving` drives
 * the fabric, alone: the courier, or a thread that waits for a collective. What is marked "driver's" is changed under
 * it. Who has both takes `driving` first. */
#ifndef TDI_COMM_EXCHANGE_STRUCT_H
#define TDI_COMM_EXCHANGE_STRUCT_H

#include <pthread.h>

#include "base/thread.h"
#include "base/trace.h"
#include "comm/exchange.h"
#include "comm/reduction.h"

enum { TDI_NAME_BYTES = 96, TDI_EXCHANGE_TRACKS = 8 };

/* A collective of a program, in the step under way, or the slots of tdi_exchange_gather. */
typedef struct tdi_operation {
    int begun; /* workers that have begun it in the step under way; under `lock` */
    /* Driver's: */
    uint32_t step;    /* that is being moved, or was moved last */
    bool moving;      /* it has begun and is not done */
    bool heavy;       /* it keeps the courier busy: it is large, or others wait for what this process adds up */
    int64_t expected; /* frames that arrive in a step, and own ones that are taken over by the wires */
    int64_t left;     /* of these; again `expected` when the step is done, as those of the next one may come early */
    tdi_reduction *reduction; /* of a REDUCE; else NULL */
    double began;
    int track; /* of the trace; -1: none was free */

    atomic_int *combining; /* of a REDUCE, see tdi_combining */
    tdi_event done;        /* steps */
    tdi_latch latch;
    const tdi_label *label; /* in the trace of this id */
    uint64_t labelled;
} tdi_operation;

typedef struct tdi_exchange_program {
    tdi_exchange *exchange;
    uint32_t number; /* in the order of connecting, from 1 on */
    const tdi_deal *deal;
    tdi_group_spec group;
    tdi_sum_order *order;
    int references;
    tdi_operation *operations; /* [collectives] */
    struct tdi_exchange_program *next;
} tdi_exchange_program;

/* A program's collective, or with NULL the slots of tdi_exchange_gather. */
typedef struct tdi_post {
    tdi_exchange_program *program;
    int id;
} tdi_post;

typedef struct tdi_exchange_peer {
    char name[TDI_NAME_BYTES];
    /* Driver's: */
    tdi_wire *wire;
    int64_t borrowed; /* frames that the wire has not taken over yet */
    bool lost;
} tdi_exchange_peer;

struct tdi_exchange {
    int processes, self;
    tdi_fabric *fabric;       /* driver's; NULL: not started, or given up */
    tdi_exchange_peer *peers; /* [processes] */
    tdi_sinks sinks;
    pthread_t courier;
    bool started, ended;

    pthread_mutex_t lock, driving;
    int wake_courier, wake_driver;             /* eventfds */
    atomic_bool courier_called;                /* there is work for it */
    atomic_bool courier_sleeps, driver_sleeps; /* to be woken by a write */
    atomic_bool helped;                        /* a waiting thread has driven since the courier last slept */
    _Atomic double crowded_until;              /* tdi_seconds() until which waiting threads leave all to the courier */
    atomic_int waiting;                        /* threads that wait for an operation without driving */
    atomic_int visitors;                       /* threads that want to have `driving` at once */
    atomic_bool quits, broken, told;
    tdi_error why; /* written once, before `broken` */
    tdi_vec(tdi_post) posts;
    tdi_exchange_program *programs;
    _Atomic uint32_t connected;
    _Atomic uint64_t sent;
    _Atomic uint64_t waited; /* ns */
    atomic_bool wishes_stop;
    _Atomic uint32_t stop_step; /* of the program that runs; 0: none */

    /* Driver's: */
    int moving, heavy; /* operations that are moving; of them heavy ones */
    bool held;         /* a wire waits for an operation to begin or to end */
    tdi_trace *trace;  /* NULL: none is made */
    tdi_track *tracks[TDI_EXCHANGE_TRACKS], *courier_track;
    bool track_used[TDI_EXCHANGE_TRACKS];
    const tdi_label *moves_label;
    uint64_t traced; /* the id of the trace that the tracks belong to */

    char *slots;
    size_t slot_bytes;
    uint32_t gathers; /* under `lock` */
    tdi_operation gather;
    char heard[sizeof((tdi_error *)0)->message]; /* a peer's sentence */
};

/* ---- courier.c ---- */

void *tdi_courier_main(void *exchange);
/* Has what `posts` lists moved: at once by the calling thread where that is little work, else by the courier. */
void tdi_courier_post(tdi_exchange *exchange, tdi_exchange_program *program, int id);
/* Returns once the operation has done `step` steps, or is broken. The calling thread helps. */
void tdi_courier_wait(tdi_exchange *exchange, tdi_operation *operation, uint32_t step, bool spin);
/* Wakes whoever drives, or the courier. */
void tdi_courier_wake(tdi_exchange *exchange);
/* Takes the fabric from whoever drives it, and gives it back. */
void tdi_courier_lock(tdi_exchange *exchange);
void tdi_courier_unlock(tdi_exchange *exchange);
/* Under tdi_courier_lock. Asks wires again that wait for a program or an operation. */
void tdi_courier_resume(tdi_exchange *exchange);
/* Under tdi_courier_lock, of a broken exchange: tells the peers why, for a moment at most, and closes the fabric, so
 * that nobody reads or writes memory of programs any more. */
void tdi_courier_give_up(tdi_exchange *exchange);
/* What wires call, with the exchange as their user. */
extern const tdi_sinks tdi_courier_sinks;
/* Is a collective of so many bytes, of this process, so little that who begins it had better send it itself? */
bool tdi_courier_is_little(int64_t bytes);

#endif
