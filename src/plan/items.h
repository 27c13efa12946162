/* items.h - a frozen step as the threads walk it: for each thread a list of calls and meetings, in segments between
 * which stand the collectives. items.c makes the lists, run.c walks them. */
#ifndef TDI_PLAN_ITEMS_H
#define TDI_PLAN_ITEMS_H

#include "base/trace.h"
#include "base/vec.h"
#include "device/call.h"
#include "passes/passes.h"

/* Fused pointwise ops: at most so many in a row, of at most so many inputs each. */
enum { TDI_MOST_FUSED = 16, TDI_MOST_FUSED_INPUTS = 8 };

/* Elements of a stretch, which each of the fused ops makes before the next op reads it. A few values' stretches fit
 * into the second-level cache of a core, and what a stretch costs besides its elements does not show. */
enum { TDI_STRETCH = 16384 };

/* Of each thread's scratch: two buffers, to which fused ops write forwarded values in turn. */
enum { TDI_FORWARDED_BYTES = 2 * TDI_STRETCH * 4 };

typedef enum tdi_item_kind {
    TDI_ITEM_CALL,
    TDI_ITEM_FUSED,    /* pointwise calls, run together stretch by stretch */
    TDI_ITEM_LOCKSTEP, /* a call whose threads wait for each other inside the kernel */
    TDI_ITEM_IDLE,   /* this thread has no share of the others' LOCKSTEP: none goes on before them where one thread runs
                        in the place of all */
    TDI_ITEM_BARRIER /* the worker's threads meet */
} tdi_item_kind;

typedef struct tdi_item {
    tdi_item_kind kind;
    bool update_phase; /* of the update phase: run by the worker's first plan alone */
    const tdi_call *call;
    void (*run_serially)(const tdi_call *calls, int threads); /* LOCKSTEP: the kernel's */
    int length;    /* 1; FUSED: the number of calls, which are the items from this one on, the others with length 0 */
    bool forwards; /* as in tdi_planned */
    unsigned forwarded_inputs;
} tdi_item;

typedef struct tdi_segment {
    int begin;          /* its first item, in each thread's list */
    tdi_step_kind kind; /* of the collective before it, BEGIN or FINISH; KERNEL: none */
    int collective;
} tdi_segment;

/* An operand of a thread's call that is an input of the step, or a view of one. */
typedef struct tdi_input_use {
    tdi_value *operand;
    int slot;
} tdi_input_use;

typedef struct tdi_thread_items {
    tdi_vec(tdi_item) items;
    tdi_vec(tdi_segment) segments; /* and one behind the last */
    tdi_vec(tdi_input_use) inputs;
    char *forwarded;          /* TDI_FORWARDED_BYTES of the thread's scratch */
    int reached;              /* the next item, while one thread runs in the place of all */
    const tdi_label **labels; /* [items]: of the trace that was labelled last; NULL: none was */
} tdi_thread_items;

#endif
