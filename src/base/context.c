/* context.c - the context's life, its names and its log. */
#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "base/trace.h"

td_context *td_context_create(const td_context_options *options)
{
    td_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->own = context->arena = tdi_arena_create();
    if (!context->own) {
        free(context);
        return NULL;
    }
    if (options)
        context->options = *options;
    return context;
}

void td_context_free(td_context *context)
{
    if (!context)
        return;
    while (context->owned.count) {
        tdi_owned newest = context->owned.at[--context->owned.count];
        newest.free(newest.object);
    }
    tdi_vec_free(&context->owned);
    tdi_vec_free(&context->names);
    tdi_team_free(context->team);
    tdi_trace_free(context->trace);
    tdi_arena_free(context->own);
    free(context);
}

/* There is no context only when there was no memory for it. */
static const tdi_error no_context = {TD_NO_MEMORY, "there is no context: td_context_create gave NULL, out of memory"};

static const tdi_error *error_of(const td_context *context)
{
    return context ? &context->error : &no_context;
}

int td_failed(const td_context *context)
{
    return error_of(context)->status != TD_OK;
}

td_status td_error_status(const td_context *context)
{
    return error_of(context)->status;
}

const char *td_error(const td_context *context)
{
    return error_of(context)->message;
}

void td_clear_error(td_context *context)
{
    if (context)
        context->error = (tdi_error){0};
}

void td_request_stop(td_context *context)
{
    if (context)
        atomic_store(&context->stop, 1);
}

void tdi_context_heed_stops(td_context *context)
{
    if (!context->fitting)
        atomic_store(&context->stop, 0);
}

td_status tdi_check_stop(const atomic_int *stop, tdi_error *error)
{
    return stop && atomic_load(stop) ? tdi_fail(error, TD_STOPPED, "%s", td_status_name(TD_STOPPED)) : TD_OK;
}

const char *td_version(void)
{
    return TANDEM_VERSION;
}

bool tdi_context_own(td_context *context, void *object, void (*free_object)(void *))
{
    return tdi_push(&context->owned, ((tdi_owned){object, free_object}));
}

bool tdi_context_own_part(td_context *context, void *object, void (*free_object)(void *))
{
    tdi_owned owned = {object, free_object};
    return context->parts ? tdi_push(&context->parts->owned, owned) : tdi_push(&context->owned, owned);
}

void tdi_context_disown(td_context *context, void *object)
{
    for (int i = context->owned.count; i-- > 0;)
        if (context->owned.at[i].object == object) {
            memmove(context->owned.at + i, context->owned.at + i + 1,
                    (size_t)(--context->owned.count - i) * sizeof *context->owned.at);
            return;
        }
}

td_status tdi_context_team(td_context *context, int threads, tdi_team **team, tdi_error *error)
{
    td_status status =
        context->team ? tdi_team_grow(context->team, threads, error) : tdi_team_create(threads, &context->team, error);
    *team = context->team;
    return status;
}

tdi_parts *tdi_context_begin_model(td_context *context)
{
    tdi_parts *parts = calloc(1, sizeof *parts);
    if (!parts || !(parts->arena = tdi_arena_create())) {
        free(parts);
        return NULL;
    }
    context->parts = parts;
    context->arena = parts->arena;
    return parts;
}

void tdi_context_end_model(td_context *context)
{
    context->parts = NULL;
    context->arena = context->own;
}

void tdi_parts_free(tdi_parts *parts)
{
    if (!parts)
        return;
    while (parts->owned.count) {
        tdi_owned newest = parts->owned.at[--parts->owned.count];
        newest.free(newest.object);
    }
    tdi_vec_free(&parts->owned);
    tdi_arena_free(parts->arena);
    free(parts);
}

static tdi_name_count *name_count(td_context *context, const char *base)
{
    for (int i = 0; i < context->names.count; i++)
        if (strcmp(context->names.at[i].base, base) == 0)
            return &context->names.at[i];
    const char *copy = tdi_strdup(context->own, base);
    if (!copy || !tdi_push(&context->names, ((tdi_name_count){copy, 0})))
        return NULL;
    return &context->names.at[context->names.count - 1];
}

const char *tdi_context_name(td_context *context, const char *base)
{
    tdi_name_count *count = name_count(context, base);
    if (!count)
        return NULL;
    int used = count->used++;
    return used ? tdi_format(context->arena, "%s_%d", base, used) : count->base;
}

void tdi_log(td_context *context, td_log_level level, const char *format, ...)
{
    if (!context->options.log)
        return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    context->options.log(context->options.log_user, level, td_printable(line));
}
