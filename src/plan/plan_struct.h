/* plan_struct.h - the inside of a plan, shared by the files of src/plan. */
#ifndef TDI_PLAN_PLAN_STRUCT_H
#define TDI_PLAN_PLAN_STRUCT_H

#include "plan/items.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/threads/place.h"

/* Where a node's value is, and which threads make it. */
typedef struct tdi_placed {
    td_shape shape; /* with the shard's rows in place of TDI_BATCH */
    tdi_placement by;
    int batch_interleaved; /* as in tdi_value */
    int storage;           /* in the activation arena; -1: elsewhere */
    int64_t exchange;      /* byte offset in the exchange arena; -1: elsewhere */
    int64_t constant;      /* byte offset among the plan's constants; -1: elsewhere */
    int position;          /* of its step; -1: not in the schedule */
} tdi_placed;

/* A step of the schedule. */
typedef struct tdi_planned {
    const tdi_node *node;
    const tdi_kernel *kernel; /* NULL: the op's reference */
    bool barrier;             /* the threads meet before it */
    bool constant;            /* run once, when addresses are bound */
    tdi_call *calls;          /* [threads]; run NULL: the thread has no share */
    tdi_call *finish;         /* [threads]: TDI_DEPTH's second half, behind a meeting; NULL: there is none */
    int sums;                 /* with `finish`: the storage of the threads' sums */
    tdi_lockstep lockstep;    /* of the threads that share it, where they wait for each other inside the kernel */
    tdi_text remarks;         /* which kernels declined, and why */
    const tdi_tuned *tuned;   /* between kernels; NULL: one was sure */
} tdi_planned;

/* Memory that kernel trials use, one after the other. */
typedef struct tdi_spare {
    char *memory;
    size_t size;
    bool used;
} tdi_spare;

struct tdi_plan {
    tdi_plan_spec spec;
    tdi_arena *arena;
    tdi_placed *placed;   /* [nodes], by id */
    tdi_planned *planned; /* [n_steps]; node NULL: a collective, or nothing to compute */
    int n_steps;          /* of the schedule */
    tdi_storage *storages;
    int n_storages;
    int64_t activation_bytes, exchange_bytes, constant_bytes;
    char *constants;           /* the plan's own memory; that of activations is shared with other plans */
    size_t scratch_bytes;      /* of each thread */
    size_t packed_bytes;       /* of all packed-weight caches */
    tdi_thread_items *threads; /* [threads]: each thread's items */
    uint64_t labelled;         /* the trace that the labels belong to */
    tdi_vec(tdi_spare) spares; /* while kernels are chosen */
};

static inline tdi_placed *tdi_placed_of(const tdi_plan *plan, const tdi_node *node)
{
    return &plan->placed[node->id];
}

/* How many of the plan's threads share ops. */
static inline int tdi_sharing_of(const tdi_plan *plan)
{
    return plan->spec.sharing ? plan->spec.sharing : plan->spec.threads;
}

/* Does one thread make everything, so that none waits for another or reads what another has written? */
static inline bool tdi_is_one_threads(const tdi_plan *plan)
{
    return plan->spec.threads == 1 || (tdi_sharing_of(plan) == 1 && plan->spec.graph->shards == 1);
}

/* Is input i an extra output, which the node writes? */
bool tdi_fills(const tdi_node *node, int i);
tdi_value tdi_value_of(const tdi_plan *plan, const tdi_node *node); /* without an address */
int64_t tdi_value_bytes(const tdi_value *value);                    /* of whole blocks, where it is batch-interleaved */
int64_t tdi_node_bytes(const tdi_plan *plan, const tdi_node *node);

/* Do threads wait for each other inside the step's kernel? */
bool tdi_is_lockstep(const tdi_plan *plan, const tdi_planned *step);
/* Makes each thread's items; last of all. */
td_status tdi_list_items(tdi_plan *plan, tdi_error *error);

void tdi_lay_out_exchange(tdi_plan *plan);               /* before the kernels are chosen */
td_status tdi_lay_out(tdi_plan *plan, tdi_error *error); /* behind it: constants and activations */

/* For reports: "rows", "columns", "flat", "depth" or "whole". */
const char *tdi_planned_share(const tdi_plan *plan, const tdi_planned *step);
int tdi_planned_threads(const tdi_plan *plan, const tdi_planned *step); /* threads that share it */

#endif
