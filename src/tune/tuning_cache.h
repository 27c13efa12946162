/* tuning_cache.h - what the clock has answered on this machine: by machine and question, the times of all candidates
 * and the one that was chosen. Answers come from contests (contest.h), from the cache file or from a backup
 * (tuning_cache_file.h). A cache belongs to a context and is used by one thread at a time. */
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
    double us; /* microseconds of one run, the least of all rounds */
} tdi_candidate;

/* A question to the clock, and its answer. */
typedef struct tdi_tuned {
    const char *machine, *key; /* "AMD EPYC 9R14, AVX-512, oneDNN 2.6.3", "conv2d 3x3 same, ... on 2 x 1 threads" */
    int count;
    tdi_candidate candidates[TDI_MAX_CANDIDATES];
    int preferred;   /* chosen unless another candidate takes less than worth_it of its time */
    double worth_it; /* 0: none is preferred */
    bool lasting;    /* bfloat16 is at stake, so more than last bits: the first answer is final */

    int chosen;    /* index of a candidate */
    bool measured; /* by this process, and not read from a file */
    int unsure;    /* how often it was unsure; 0: it is sure. Below TDI_OFTEN_ENOUGH the next process asks again */
    bool used;     /* by a plan or configuration of this process */
} tdi_tuned;

typedef struct tdi_tuning_cache {
    tdi_arena *arena;
    tdi_vec(tdi_tuned *) all;
    bool changed;   /* something was measured since the file was last written */
    bool unwritten; /* the file could not be written, which the log has said */
    bool untimed;   /* nothing may be timed: what the cache does not have is left to rules */
    double seconds; /* that contests have taken */
} tdi_tuning_cache;

tdi_tuning_cache *tdi_tuning_cache_create(void); /* NULL: out of memory */
void tdi_tuning_cache_free(tdi_tuning_cache *cache);

/* The answer to the question between these very candidates; NULL: there is none. */
tdi_tuned *tdi_tuning_cache_find(const tdi_tuning_cache *cache, const tdi_tuned *question);
/* Is `found` (NULL: none) all that there will be, so that no contest is held? */
bool tdi_tuning_cache_holds(const tdi_tuning_cache *cache, const tdi_tuned *question, const tdi_tuned *found);
/* Copies an answer into the cache, over an older one of the same machine and key. NULL: out of memory. */
tdi_tuned *tdi_tuning_cache_put(tdi_tuning_cache *cache, const tdi_tuned *tuned);
/* Puts an answer that a contest has just measured, by the rules at the head of tuning_cache.c, and returns the one
 * that holds. NULL: out of memory. */
tdi_tuned *tdi_tuning_cache_record(tdi_tuning_cache *cache, const tdi_tuned *measured);

/* The candidate that the times of `tuned` speak for: the fastest, a later one only when it is faster by more than
 * noise; the preferred one unless another is worth it. */
int tdi_tuned_fastest(const tdi_tuned *tuned);
/* Does the next process take the answer as it is? */
bool tdi_tuned_is_final(const tdi_tuned *tuned);
/* "timed: quick matmul 1.5 us, slow matmul 2.25 us", and a line's end */
void tdi_tuned_print(const tdi_tuned *tuned, FILE *out);

#endif
