/* plan_struct.h - the inside of a plan, shared by the files of src/plan. */
#ifndef TDI_PLAN_PLAN_STRUCT_H
#define TDI_PLAN_PLAN_STRUCT_H

#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/threads/place.h"

/* What the plan settles for one node of the graph, by id. */
typedef struct tdi_placed {
    td_shape shape;   /* batch resolved */
    tdi_placement by; /* who makes it */
    int abreast;      /* as in tdi_value */
    int storage;      /* in the activation arena; -1: elsewhere */
    int64_t exchange; /* byte offset in the exchange arena; -1: not there */
    int64_t constant; /* byte offset among the plan's constants; -1: not there */
    int position;     /* of its step; -1: not in the schedule */
} tdi_placed;

typedef struct tdi_planned {
    const tdi_node *node;
    const tdi_kernel *kernel; /* NULL: the reference */
    bool barrier;             /* the lanes meet before it */
    bool constant;            /* made once, when addresses are bound */
    bool chained;             /* run stretch by stretch with the step before it */
    bool passes;              /* what it makes is read by the next step of its chain alone, and not stored */
    unsigned taken;           /* bit i: input i is what the step before it passes */
    tdi_call *calls;          /* [lanes]; run NULL: nothing to do for that lane */
    tdi_call *finish;         /* [lanes]: TDI_DEPTH's second half, after a meeting; NULL: there is none */
    int sums;                 /* with `finish`: the storage of the lanes' sums */
    tdi_lockstep lockstep;    /* of the lanes that share it, when the kernel says `together` */
    tdi_text notes;           /* who declined and why */
    const tdi_tuned *tuned;   /* between kernels; NULL: no kernel doubted */
} tdi_planned;

enum { TDI_MOST_CHAINED = 16, TDI_MOST_LINK_INPUTS = 8 };

/* Elements that each op of a chain makes before the next op takes them over: a few values' fit into the second-level
 * cache of a core, and what is spent on a stretch besides its elements does not show. */
enum { TDI_STRETCH = 16384 };

/* What is passed on goes to the lane's scratch: the links write to two stretches there in turn. */
enum { TDI_PASSED_BYTES = 2 * TDI_STRETCH * 4 };

/* APART: nothing, while other lanes wait for each other inside a kernel: where lanes run in turn, none is a meeting
 * ahead. */
typedef enum tdi_item_kind { TDI_ITEM_CALL, TDI_ITEM_BARRIER, TDI_ITEM_CHAIN, TDI_ITEM_APART } tdi_item_kind;

typedef struct tdi_item {
    tdi_item_kind kind;
    bool once; /* a call, or chain, made by the replica's first plan only */
    const tdi_call *call;
    void (*together)(const tdi_call *calls, int lanes); /* the kernel's, where its lanes wait for each other */
    int length;  /* CHAIN: of so many calls, the next items among them, each of which has 0; else 1 */
    bool passes; /* as in tdi_planned */
    unsigned taken;
} tdi_item;

typedef struct tdi_segment {
    int begin;          /* in each lane's items */
    tdi_step_kind kind; /* the collective before it: BEGIN or FINISH; KERNEL: none */
    int collective;
} tdi_segment;

/* An operand of a lane's call that is, or shows, an input of the step. */
typedef struct tdi_input_use {
    tdi_value *operand;
    int slot;
} tdi_input_use;

typedef struct tdi_lane_items {
    tdi_vec(tdi_item) items;
    tdi_vec(tdi_segment) segments;
    tdi_vec(tdi_input_use) inputs;
    char *passed;             /* where chains pass values on: TDI_PASSED_BYTES */
    int reached;              /* the next item, when lanes run in turn */
    const tdi_label **labels; /* [items]: of the trace that was labelled last; NULL: none was */
} tdi_lane_items;

/* Memory for timing kernels, which lies there from one contest to the next. */
typedef struct tdi_spare {
    char *memory;
    size_t size;
    bool used;
} tdi_spare;

struct tdi_plan {
    tdi_plan_spec spec;
    tdi_arena *arena;
    tdi_placed *placed;   /* [nodes] */
    tdi_planned *planned; /* [schedule steps]; node NULL where the step is a collective */
    int n_steps;
    tdi_storage *storages;
    int n_storages;
    int64_t activation_bytes, exchange_bytes, constant_bytes;
    char *constants;                 /* the plan's own: activations are shared with other plans */
    size_t scratch_bytes, passed_at; /* where in the scratch chains pass values on */
    size_t packed_bytes;             /* that kernels keep from step to step */
    tdi_lane_items *lanes;           /* [lanes] */
    uint64_t labelled;               /* the trace that the labels belong to */
    tdi_vec(tdi_spare) spares;       /* while kernels are chosen */
};

static inline tdi_placed *tdi_placed_of(const tdi_plan *plan, const tdi_node *node)
{
    return &plan->placed[node->id];
}

static inline int tdi_sharing_of(const tdi_plan *plan)
{
    return plan->spec.sharing ? plan->spec.sharing : plan->spec.lanes;
}

/* Does one lane make everything, so that none waits for another or reads what another has made? */
static inline bool tdi_is_one_lanes(const tdi_plan *plan)
{
    return plan->spec.lanes == 1 || (tdi_sharing_of(plan) == 1 && plan->spec.graph->parts == 1);
}

bool tdi_fills(const tdi_node *node, int i);                        /* input i is a room, which the node writes */
tdi_value tdi_value_of(const tdi_plan *plan, const tdi_node *node); /* without an address */
int64_t tdi_value_bytes(const tdi_value *value);                    /* abreast: of whole blocks */
int64_t tdi_node_bytes(const tdi_plan *plan, const tdi_node *node);

/* One kernel (NULL: the reference) made ready for every lane of a step. */
typedef struct tdi_prepared {
    const tdi_kernel *kernel;
    tdi_placement by;
    tdi_call *calls;      /* [lanes] */
    tdi_call *finish;     /* [lanes], or NULL */
    size_t scratch_bytes; /* of each lane */
    size_t packed_bytes;  /* kept, of all lanes */
} tdi_prepared;

/* Its calls are made in `arena`; on failure nothing is left to release. */
td_status tdi_prepare_kernel(const tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_arena *arena,
                             tdi_prepared *prepared, tdi_error *error);
void tdi_calls_release(const tdi_plan *plan, const tdi_kernel *kernel, tdi_call *calls); /* what they hold */

/* Answers which of the kernels, candidates of `question`, is the fastest for the node's calls; *answer as in
 * tdi_contest_answer. */
td_status tdi_kernel_trial(tdi_plan *plan, const tdi_node *node, const tdi_kernel *const *kernels,
                           const tdi_tuned *question, const tdi_tuned **answer, tdi_error *error);
void tdi_spares_release(tdi_plan *plan);

td_status tdi_choose_layout(tdi_plan *plan, tdi_error *error);           /* before the kernels */
td_status tdi_choose_kernel(tdi_plan *plan, int step, tdi_error *error); /* kernel, split, calls */
/* For reports: "rows", "columns", "flat", "depth" or "whole". */
const char *tdi_planned_share(const tdi_plan *plan, const tdi_planned *step);
int tdi_planned_lanes(const tdi_plan *plan, const tdi_planned *step); /* that share it */
void tdi_lay_out_exchange(tdi_plan *plan);
td_status tdi_lay_out(tdi_plan *plan, tdi_error *error); /* storages */
td_status tdi_insert_barriers(tdi_plan *plan, tdi_error *error);
td_status tdi_find_chains(tdi_plan *plan, tdi_error *error);

#endif
