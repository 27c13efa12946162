/* explain.h - reports of how a compiled model runs: in words, as a table of times, as JSON.
 *
 *     tdi_explain(model, &(tdi_explain_spec){.mode = TDI_TRAIN, .batch = 32}, stdout, error);
 */
#ifndef TDI_PROFILE_EXPLAIN_H
#define TDI_PROFILE_EXPLAIN_H

#include "profile/timing.h"

typedef struct tdi_explain_spec {
    tdi_mode mode; /* TDI_TRAIN, TDI_EVALUATE or TDI_PREDICT */
    int64_t batch; /* rows of a step */
    bool json;     /* not words, or a table */
    bool time;     /* runs steps of a clone for a second or two and says where their time goes */
} tdi_explain_spec;

/* Prints how such a step is run. The model stays as it is, and nothing is chosen for its steps. Errors are those of
 * making plans and, with `time`, of running steps; the caller checks `out`. */
td_status tdi_explain(td_model *model, const tdi_explain_spec *spec, FILE *out, tdi_error *error);

/* ---- for the files that print ---- */

typedef struct tdi_explained {
    const tdi_runtime *runtime;
    tdi_mode mode;
    int64_t batch;
    const tdi_plan *plan;     /* the last shard's, which has no fewer rows than any */
    const tdi_timing *timing; /* NULL: nothing was timed */
} tdi_explained;

/* What a step needs in memory besides the data, in bytes. */
typedef struct tdi_step_memory {
    double activations, scratch, packed, exchange, rows, state, peak;
} tdi_step_memory;
tdi_step_memory tdi_memory_of_step(const tdi_explained *explained);

/* Why steps are computed in float32, as a clause; NULL: they are not. */
const char *tdi_why_float32(const tdi_runtime *runtime);

/* The trial that said how many threads share the ops of such steps; NULL: nothing was asked. */
const tdi_tuned *tdi_tuned_sharing(const tdi_runtime *runtime, tdi_mode mode, int64_t batch);

/* Prints a line per op: kernel, share, bytes, FLOPs; and which kernels declined, and why. */
void tdi_explain_plan(const tdi_plan *plan, FILE *out);
td_status tdi_explain_text(const tdi_explained *explained, FILE *out, tdi_error *error);
td_status tdi_explain_json(const tdi_explained *explained, FILE *out, tdi_error *error);
/* `explained` has been timed. */
td_status tdi_explain_times(const tdi_explained *explained, FILE *out, tdi_error *error);

#endif
