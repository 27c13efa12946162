/* context.h - the inside of a td_context: what all data, tensors, layers and models of one user have in common.
 *
 * One thread at a time uses a context; only td_request_stop may come from another. */
#ifndef TDI_BASE_CONTEXT_H
#define TDI_BASE_CONTEXT_H

#include <stdatomic.h>
#include <tandem/context.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

/* An object that the context frees unless the user does: a model. Newest first. */
typedef struct tdi_owned {
    void *object;
    void (*free)(void *object);
} tdi_owned;

/* Tensors and layers that are freed together. */
typedef struct tdi_parts {
    tdi_arena *arena;
    tdi_vec(tdi_owned) owned; /* what has more than its place in the arena */
} tdi_parts;

typedef struct tdi_name_count {
    const char *base; /* "dense" */
    int used;         /* how often: the next one's number */
} tdi_name_count;

struct td_context {
    tdi_arena *own;   /* names, and what the user makes: it lives as long as the context */
    tdi_arena *arena; /* of tensors and layers that are made now: `own`, or that of `parts` */
    tdi_parts *parts; /* of the model that is being made; NULL: what is made is the context's */
    tdi_error error;  /* the first failure */
    td_context_options options;
    atomic_int stop;
    int fitting; /* calls of td_fit under way: a callback may begin another */
    tdi_vec(tdi_owned) owned;
    tdi_vec(tdi_name_count) names;
    struct tdi_trace *trace; /* trace.h; NULL: none is made */
    void *tuning_cache;      /* tdi_tuning_cache, made on first use; owned */
    struct tdi_team *team;   /* thread.h; NULL until tdi_context_team is first called */
};

/* Called as a call begins that td_request_stop can end. Clears a request from before, unless the call comes from a
 * callback: that request is to the td_fit around it. */
void tdi_context_heed_stops(td_context *context);

/* TD_STOPPED when the flag is set; NULL never is. */
td_status tdi_check_stop(const atomic_int *stop, tdi_error *error);

/* The context's threads, at least so many, with which all of its models compute. */
td_status tdi_context_team(td_context *context, int threads, struct tdi_team **team, tdi_error *error);

/* Until tdi_context_end_model tensors and layers belong to what this returns, for a model that alone has them. NULL
 * when memory is out. */
tdi_parts *tdi_context_begin_model(td_context *context);
void tdi_context_end_model(td_context *context);
void tdi_parts_free(tdi_parts *parts); /* NULL is accepted */

/* Keras's automatic names: "dense", "dense_1", ... NULL when memory is out. */
const char *tdi_context_name(td_context *context, const char *base);
bool tdi_context_own(td_context *context, void *object, void (*free)(void *)); /* false when memory is out */
/* The same for what lies in context->arena. */
bool tdi_context_own_part(td_context *context, void *object, void (*free)(void *));
void tdi_context_disown(td_context *context, void *object);
__attribute__((format(printf, 3, 4))) void tdi_log(td_context *context, td_log_level level, const char *format, ...);

#endif
