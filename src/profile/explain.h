/* explain.h - how a compiled model runs, for the files that say so: in words, as a table of times, as JSON. */
#ifndef TDI_PROFILE_EXPLAIN_H
#define TDI_PROFILE_EXPLAIN_H

#include "profile/timing.h"

typedef struct tdi_explained {
    const tdi_runtime *runtime;
    tdi_mode mode; /* TDI_TRAIN, TDI_EVALUATE or TDI_PREDICT */
    int64_t batch;
    const tdi_plan *plan;     /* the last part's, which has no fewer rows than any */
    const tdi_timing *timing; /* NULL: nothing was timed */
} tdi_explained;

/* What a step needs in memory besides the data, in bytes. */
typedef struct tdi_step_memory {
    double activations, scratch, packed, exchange, rows, state, peak;
} tdi_step_memory;
tdi_step_memory tdi_memory_of_step(const tdi_explained *explained);

/* Why steps are computed in float32, as a clause; NULL: they are not. */
const char *tdi_why_float32(const tdi_runtime *runtime);

/* How many lanes share the ops of such steps, as the clock said; NULL: it was not asked. */
const tdi_tuned *tdi_tuned_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch);

td_status tdi_explain_json(const tdi_explained *explained, FILE *out, tdi_error *error);

#endif
