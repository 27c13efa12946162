/* items.h - a frozen step as the threads walk it: for each thread a list of calls and meetings, in segments between
 * which stand the collectives. items.c makes the lists, run.c walks them. */
#ifndef TDI_PLAN_ITEMS_H
#define TDI_PLAN_ITEMS_H

#include "base/trace.h"
#include "base/vec.h"
#include "device/call.h"
#include "passes/passes.h"

typedef enum tdi_item_kind {
    TDI_ITEM_CALL,
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
    int reached;              /* the next item, while one thread runs in the place of all */
    const tdi_label **labels; /* [items]: of the trace that was labelled last; NULL: none was */
} tdi_thread_items;

#endif
