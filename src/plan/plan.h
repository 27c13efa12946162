/* plan.h - a frozen step of one shard: kernels chosen and prepared, places in memory resolved, items listed per thread.
 *
 * A plan is made once for a graph and a number of rows; from then on running a step is a walk down a list. The plans of
 * all shards have the same segments in the same order, whatever their rows, so that their collectives match.
 *
 *     tdi_plan_create(&spec, &plan, error);
 *     tdi_plan_bind(plan, &bindings);          // memory of the sizes that the plan names
 *     tdi_plan_set_input(plan, thread, slot, rows);
 *     tdi_plans_run(...);                      // by every thread of the worker, step after step
 */
#ifndef TDI_PLAN_PLAN_H
#define TDI_PLAN_PLAN_H

#include "base/thread.h"
#include "base/trace.h"
#include "comm/communicator.h"
#include "device/device.h"
#include "passes/passes.h"
#include "tune/tuning_cache.h"

typedef struct tdi_plan tdi_plan;

/* What kernel trials need. */
typedef struct tdi_chooser {
    tdi_tuning_cache *cache;
    td_context *context;
    tdi_team *team; /* idle while plans are made; at least workers * threads threads */
    int workers;    /* that run such a plan at the same time */
} tdi_chooser;

typedef struct tdi_plan_spec {
    const tdi_graph *graph;
    const tdi_schedule *schedule;
    tdi_device *device;
    int64_t rows; /* of the shard; 0: it contributes zeros to the collectives and computes nothing else */
    int shard;
    int replica, replicas;
    int threads;                /* threads of the worker */
    int sharing;                /* how many of them share ops, while the others wait; 0: all */
    size_t most_packed;         /* bytes that all packed-weight caches may take; other weights are packed at each run */
    const tdi_chooser *chooser; /* NULL: rules alone choose kernels */
    bool spin;                  /* waiting threads spin: each has a core of its own */
    bool explain;               /* keep the remarks of kernels that declined */
} tdi_plan_spec;

/* The memory of one shard's step. The caller owns it; sizes come from the plan's accessors. */
typedef struct tdi_bindings {
    char *activations;          /* tdi_plan_activation_bytes */
    char *const *scratch;       /* [threads], tdi_plan_scratch_bytes each */
    float *values;              /* variables */
    float *const *slots;        /* optimizer state */
    float *gradients;           /* the shard's own arena */
    float *reduced;             /* where reduced gradients go: shard 0's arena, or one that an exchange fills */
    char *exchange;             /* tdi_plan_exchange_bytes, shared by all shards */
    double *metrics;            /* [slots][2] */
    const tdi_control *control; /* [threads]: each thread writes its own between steps */
    atomic_bool *failed;        /* [2]: set by calls that fail, by their control's turn; NULL: nobody asks */
    const tdi_shard *shard;     /* [threads] */
} tdi_bindings;

/* Everything that the spec points to outlives the plan. *plan is NULL on failure. */
td_status tdi_plan_create(const tdi_plan_spec *spec, tdi_plan **plan, tdi_error *error);
void tdi_plan_free(tdi_plan *plan);

size_t tdi_plan_activation_bytes(const tdi_plan *plan);
size_t tdi_plan_scratch_bytes(const tdi_plan *plan);
size_t tdi_plan_packed_bytes(const tdi_plan *plan); /* of the packed-weight caches, which are the plan's own */
size_t tdi_plan_exchange_bytes(const tdi_plan *plan);

int tdi_plan_sharing(const tdi_plan *plan); /* threads that share its ops */
double tdi_plan_flops(const tdi_plan *plan);
double tdi_plan_bytes(const tdi_plan *plan); /* read and written */
/* Operations on bfloat16 numbers by kernels that compute in bfloat16 and were chosen without a trial. */
double tdi_plan_sure_bfloat16_flops(const tdi_plan *plan);
uint64_t tdi_plan_hash(const tdi_plan *plan); /* of its ops, attributes and shapes; the batch does not count */

/* Resolves every address but those of the inputs. May be called again with others. */
void tdi_plan_bind(tdi_plan *plan, const tdi_bindings *bindings);
/* Sets where thread `thread` finds a step's input `slot` from now on. That thread calls it, between steps. */
void tdi_plan_set_input(tdi_plan *plan, int thread, int slot, const void *data);

/* The value of an output after a step: [rows, ...]. */
const float *tdi_plan_output(const tdi_plan *plan, int slot);

/* Gives the items of all threads their labels in a trace, if they do not have them yet. */
td_status tdi_plan_label(tdi_plan *plan, tdi_trace *trace, tdi_error *error);

/* Where one thread's run of a step is noted, and the labels of its meetings. */
typedef struct tdi_step_trace {
    tdi_track *track;
    const tdi_label *threads, *begin, *finish;
    int64_t step;
} tdi_step_trace;

/* Runs a thread's share of its worker's step: the plans of the worker's shards, segment by segment, each segment for
 * each of them. Every thread of the worker calls it at the same time; `barrier` is where they meet, `step` counts the
 * runs with this communicator, from 1. Nothing is allocated, locked or decided. With a trace (NULL: none) the plans
 * have been labelled. When a collective is broken, all threads return behind it, with its status, and nothing that the
 * step has computed may be used. */
td_status tdi_plans_run(tdi_plan *const *plans, int count, int thread, uint32_t step, tdi_barrier *barrier,
                        tdi_communicator *communicator, const tdi_step_trace *trace);

/* Runs the step of all threads of all workers on the calling thread alone, each thread's items up to its next meeting
 * in turn: the same values, bit for bit. `plans` are those of all shards, dealt out to the workers as evenly as
 * possible. */
td_status tdi_plans_run_in_turn(tdi_plan *const *plans, int shards, int workers, uint32_t step,
                                tdi_communicator *const *communicators);

/* One step of a plan, for reports: of one shard, all threads together. The plan owns the texts. */
typedef struct tdi_plan_op {
    const char *layer;    /* "dense_1", "loss", ... */
    const char *variable; /* the weight ("kernel") whose gradient or new values it makes; NULL: none */
    const char *op, *kernel;
    const tdi_tuned *tuned; /* the choice between kernels, by a trial; NULL: all were sure */
    const char *pass;       /* "forward", "backward" or "update" */
    const char *share;      /* among the threads: "rows", "columns", "flat", "depth" or "whole" */
    int threads;            /* the first so many threads share it */
    td_shape shape;
    double flops, bytes;   /* read and written */
    double kept_bytes;     /* of them those of weights and slots */
    bool bfloat16;         /* products of bfloat16 numbers */
    bool update_phase;     /* of the update phase: run once for all shards of a replica */
    bool barrier;          /* the threads meet before it */
    bool constant;         /* run once, when addresses are bound, and not in each step */
    bool by_depth;         /* threads divide its sums and meet inside */
    int ended_by;          /* by_depth: so many threads end it; 0: as many as share it */
    int batch_interleaved; /* so many samples side by side; 0: they are not */
    const char *remarks;   /* which kernels declined, and why; NULL: none */
    char details[96];      /* its attributes, "3x3 same, stride 1x1"; may be empty */
} tdi_plan_op;

int tdi_plan_steps(const tdi_plan *plan);
/* False when step `s` computes nothing: a collective, a view. */
bool tdi_plan_op_at(const tdi_plan *plan, int s, tdi_plan_op *op);

#endif
