/* context.h - the inside of a td_context. */
#ifndef TDI_BASE_CONTEXT_H
#define TDI_BASE_CONTEXT_H

#include <stdatomic.h>
#include <tandem/context.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

/* Something the context frees, newest first: models. */
typedef struct tdi_owned {
    void *object;
    void (*free)(void *object);
} tdi_owned;

typedef struct tdi_name_count {
    const char *base; /* "dense" */
    int used;
} tdi_name_count;

struct td_context {
    tdi_arena *arena; /* tensors, layers, names */
    tdi_error error;  /* the first failure */
    td_context_options options;
    atomic_int stop;
    int fitting; /* calls of td_fit under way: a callback may make others */
    tdi_vec(tdi_owned) owned;
    tdi_vec(tdi_name_count) names;
    struct tdi_trace *trace; /* trace.h; NULL: none is made */
    void *choices;           /* tdi_tuning_cache, made on first use; owned */
};

/* A call that td_request_stop ends has begun: a request from before is cleared, but one to the td_fit whose callback
 * makes the call. */
void tdi_context_heed_stops(td_context *context);

/* Keras's automatic names: "dense", "dense_1", ... NULL when memory is out. */
const char *tdi_context_name(td_context *context, const char *base);
bool tdi_context_own(td_context *context, void *object, void (*free)(void *)); /* false when memory is out */
void tdi_context_disown(td_context *context, void *object);
__attribute__((format(printf, 3, 4))) void tdi_log(td_context *context, td_log_level level, const char *format, ...);

#endif
