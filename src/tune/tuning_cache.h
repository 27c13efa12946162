/* tuning_cache.h - what the clock has chosen on this machine: by machine and by what was asked, the times of all
 * candidates and the fastest. Times come from a plan's own measuring, from a cache file or from a backup
 * (src/tune/tuning_cache_file.h).
 */
#ifndef TDI_TUNE_TUNING_CACHE_H
#define TDI_TUNE_TUNING_CACHE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/context.h"
#include "base/error.h"
#include "base/vec.h"

enum { TDI_MAX_CANDIDATES = 6, TDI_OFTEN_ENOUGH = 3 };

typedef struct tdi_candidate {
    const char *name;
    double us;
} tdi_candidate;

typedef struct tdi_choice {
    const char *machine, *key; /* "AMD EPYC 9R14, AVX-512, oneDNN 2.6.3", "conv2d 3x3 same, ... on 2 x 1 threads" */
    int count, chosen;
    tdi_candidate candidates[TDI_MAX_CANDIDATES];
    int preferred;   /* taken unless another candidate takes less than worth_it of its time */
    double worth_it; /* 0: none is preferred */
    bool measured;   /* here, and not read from a file */
    int unsure;      /* how often it was, never to be relied on: beside other processes, or against what is preferred.
                        Fewer than TDI_OFTEN_ENOUGH, and whoever asks next measures again */
    bool used;       /* by a plan made here */
    bool lasting;    /* bfloat16 is at stake, so more than last bits: made once, and never again, unsure or not */
} tdi_choice;

typedef struct tdi_choices {
    tdi_arena *arena;
    tdi_vec(tdi_choice *) all;
    bool changed;   /* measured something since the file was last written */
    bool unwritten; /* the file could not be written, which has been said */
    bool untimed;   /* the clock is not asked: what is not among them goes by rules */
    double seconds; /* that measuring has taken */
} tdi_choices;

tdi_choices *tdi_choices_create(void); /* NULL when memory is out */
void tdi_choices_free(tdi_choices *choices);

/* The choice made between these very candidates; NULL when there is none. */
tdi_choice *tdi_choices_find(const tdi_choices *choices, const char *machine, const char *key, int count,
                             const char *const *names);
/* Keeps a choice, copied, in the place of an older one for the same machine and key; NULL when memory is out. */
tdi_choice *tdi_choices_keep(tdi_choices *choices, const tdi_choice *choice);
/* By its own times: sure, or unsure often enough. */
bool tdi_choice_is_last_word(const tdi_choice *choice);
/* Need the clock not be asked? `found`: the choice that there is; NULL: none. */
bool tdi_choice_stands(const tdi_choices *choices, const tdi_choice *asked, const tdi_choice *found);
/* Keeps a choice that has been measured; but one that is unsure does not take the place of one made before, so that on
 * a machine that is always busy, too, the same question gets the same answer. When it has been so TDI_OFTEN_ENOUGH
 * times, the least times of all decide. NULL when memory is out. */
tdi_choice *tdi_choices_settle(tdi_choices *choices, const tdi_choice *measured);
/* Measuring has taken `seconds` more: when that has become long to wait for, the log says once what it is. */
void tdi_choices_spend(tdi_choices *choices, td_context *context, double seconds);
/* The fastest of the timed ones; a later one only when it is faster by more than noise. The preferred one, when that is
 * not worth it. */
int tdi_fastest(const tdi_choice *choice);

void tdi_choice_explain(const tdi_choice *choice, FILE *out); /* "timed: quick 1.5 us, slow 2.25 us" */

#endif
