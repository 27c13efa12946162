/* accesses.h - which bytes the steps of a plan read and write. */
#ifndef TDI_PLAN_THREADS_ACCESSES_H
#define TDI_PLAN_THREADS_ACCESSES_H

#include "plan/plan_struct.h"

/* Bytes, and how the lanes divide them. */
typedef struct tdi_touch {
    int arena;         /* a tdi_home, EXCHANGE and ACTIVATIONS apart; slots and variables by number */
    const void *owner; /* a variable, or NULL */
    int slot;
    int64_t begin, end;
    tdi_split split; /* TDI_WHOLE: each of the lanes touches all of it */
    int lanes;       /* the first so many */
    td_shape shape;
    bool writes;
} tdi_touch;

/* What a step reads and writes, or, of a product by depth, one of its halves; returns how many. */
int tdi_touches_of(const tdi_plan *plan, const tdi_planned *step, bool second_half, tdi_touch *touches);

/* The lanes' sums of a product by depth: each writes its own, and reads of the others' what it ends. */
tdi_touch tdi_touch_of_sums(const tdi_plan *plan, const tdi_planned *step, bool writes);

/* Room for the touches of any step of the plan, in its arena; NULL when memory is out. */
tdi_touch *tdi_touches_room(const tdi_plan *plan);

/* Bytes in common, which one of the two writes. */
bool tdi_touches_meet(const tdi_touch *a, const tdi_touch *b);

#endif
