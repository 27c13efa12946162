/* trace_file.c - td_trace_begin and td_trace_end: a trace as JSON in Chrome's trace event format ("Trace Event Format",
 * complete events), which Perfetto reads too. Times are in microseconds from the first event. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <tandem/trace.h>

#include "base/context.h"
#include "base/text.h"
#include "base/trace.h"
#include "files/atomic_file.h"

enum { KEPT = 65536, PIECE = 1 << 20 };

td_status td_trace_begin(td_context *context, int64_t events)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (events < 0 || events > INT32_MAX)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT,
                        "td_trace_begin: %lld events; a number from 1 to %d was expected", (long long)events,
                        INT32_MAX);
    if (context->trace)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT, "td_trace_begin: a trace is being made already");
    context->trace = tdi_trace_create(events ? events : KEPT);
    return context->trace ? TD_OK : tdi_no_memory(&context->error);
}

/* ---- JSON ---- */

typedef struct writer {
    tdi_atomic *file;
    tdi_text text; /* not written yet */
    double origin;
    tdi_error *error;
    td_status status;
} writer;

static void flush(writer *w)
{
    if (w->status == TD_OK && w->text.failed)
        w->status = tdi_no_memory(w->error);
    if (w->status == TD_OK)
        w->status = tdi_atomic_write(w->file, w->text.chars, w->text.length, w->error);
    tdi_text_free(&w->text);
    w->text = (tdi_text){0};
}

/* Writes a text in quotes, escaped. */
static void add_string(writer *w, const char *string)
{
    json_t *json = json_string(string);
    char *quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
    tdi_text_add(&w->text, quoted ? quoted : "\"?\"");
    free(quoted);
    json_decref(json);
}

static void add_event(writer *w, int track, const tdi_trace_event *event)
{
    tdi_text_add(&w->text, ",\n{\"name\": ");
    add_string(w, event->label->name);
    tdi_text_format(&w->text, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f",
                    event->label->category, track + 1, (event->begin - w->origin) * 1e6,
                    (event->end - event->begin) * 1e6);
    tdi_text_format(&w->text, ", \"args\": {\"number\": %lld", (long long)event->number);
    if (*event->label->about) {
        tdi_text_add(&w->text, ", \"about\": ");
        add_string(w, event->label->about);
    }
    tdi_text_add(&w->text, "}}");
    if (w->text.length > PIECE)
        flush(w);
}

static void add_track(writer *w, const tdi_trace *trace, int track, int64_t *lost)
{
    int64_t of_track, count = tdi_trace_count(trace, track, &of_track);
    *lost += of_track;
    tdi_text_format(
        &w->text,
        ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"args\": {\"name\": ", track + 1);
    add_string(w, tdi_trace_track_name(trace, track));
    tdi_text_format(&w->text,
                    "}},\n{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"args\": "
                    "{\"sort_index\": %d}}",
                    track + 1, track);
    for (int64_t i = 0; i < count && w->status == TD_OK; i++)
        add_event(w, track, tdi_trace_event_at(trace, track, i));
}

static double first_moment(const tdi_trace *trace)
{
    double first = INFINITY;
    for (int t = 0; t < tdi_trace_tracks(trace); t++) {
        int64_t lost, count = tdi_trace_count(trace, t, &lost);
        for (int64_t i = 0; i < count; i++)
            first = fmin(first, tdi_trace_event_at(trace, t, i)->begin);
    }
    return first;
}

static td_status write_trace(const tdi_trace *trace, const char *path, tdi_error *error)
{
    writer w = {.error = error, .origin = first_moment(trace)};
    int64_t lost = 0;
    TDI_TRY(tdi_atomic_create(path, &w.file, error));
    tdi_text_add(&w.text, "{\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": "
                          "{\"name\": \"tandem\"}}");
    for (int t = 0; t < tdi_trace_tracks(trace); t++)
        add_track(&w, trace, t, &lost);
    tdi_text_format(
        &w.text, "\n],\n\"displayTimeUnit\": \"ms\",\n\"otherData\": {\"version\": \"%s\", \"events_lost\": %lld}}\n",
        td_version(), (long long)lost);
    flush(&w);
    return tdi_atomic_end(w.file, w.status, error);
}

td_status td_trace_end(td_context *context, const char *path)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!context->trace)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT, "td_trace_end: no trace was begun");
    td_status status = write_trace(context->trace, path, &context->error);
    tdi_trace_free(context->trace);
    context->trace = NULL;
    return status;
}
