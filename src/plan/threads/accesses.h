/* accesses.h - which bytes the steps of a plan read and write, and which thread accesses which.
 *
 * All that asks whether a thread reads what it wrote itself asks here: where threads must meet, and whether a value may
 * be written over an input. */
#ifndef TDI_PLAN_THREADS_ACCESSES_H
#define TDI_PLAN_THREADS_ACCESSES_H

#include "plan/plan_struct.h"

/* How threads divide the elements of a value. */
typedef struct tdi_dividing {
    tdi_split split; /* TDI_WHOLE: each of them accesses all elements */
    int threads;     /* the first so many threads */
    td_shape shape;
} tdi_dividing;

/* How the threads that share a step read its input i; `second_half`: in the second half of a product by depth. */
tdi_dividing tdi_dividing_of_input(const tdi_plan *plan, const tdi_planned *step, int i, bool second_half);
/* How the threads write a node's value. */
tdi_dividing tdi_dividing_of_value(const tdi_plan *plan, const tdi_node *node);
/* Does each thread access the same elements by both? */
bool tdi_same_dividing(const tdi_dividing *a, const tdi_dividing *b);

enum { TDI_CONSTANTS = -1 };

/* One step's access to one value. */
typedef struct tdi_access {
    int arena;          /* a tdi_home, or TDI_CONSTANTS */
    const void *owner;  /* in an arena of variables: the variable; else NULL */
    int slot;           /* in an arena of slots or inputs: its number; else 0 */
    int64_t begin, end; /* bytes */
    tdi_dividing by;
    bool writes;
} tdi_access;

/* Finds what a step, or one half of a product by depth, reads and writes. Returns how many accesses that is. */
int tdi_accesses_of(const tdi_plan *plan, const tdi_planned *step, bool second_half, tdi_access *accesses);
/* The threads' sums of a product by depth: each thread writes its own, and reads of the others' what it finishes. */
tdi_access tdi_access_to_sums(const tdi_plan *plan, const tdi_planned *step, bool writes);
/* Memory for the accesses of any step of the plan, in its arena; NULL: out of memory. */
tdi_access *tdi_accesses_create(const tdi_plan *plan);

/* Have they bytes in common, which one of the two writes? */
bool tdi_accesses_conflict(const tdi_access *a, const tdi_access *b);
bool tdi_same_bytes(const tdi_access *a, const tdi_access *b);

#endif
