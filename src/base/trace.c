/* trace.c - tracks of events. */
#include "base/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

struct tdi_track {
    const char *name;
    int64_t room, written;
    tdi_trace_event *events; /* [room]: event n is at n % room */
};

struct tdi_trace {
    uint64_t id;
    int64_t events;
    pthread_mutex_t lock;
    tdi_arena *arena; /* labels and names */
    tdi_vec(tdi_track *) tracks;
};

tdi_trace *tdi_trace_create(int64_t events)
{
    static _Atomic uint64_t last;
    tdi_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    trace->arena = tdi_arena_create();
    if (!trace->arena) {
        free(trace);
        return NULL;
    }
    trace->id = atomic_fetch_add(&last, 1) + 1;
    trace->events = events;
    pthread_mutex_init(&trace->lock, NULL);
    return trace;
}

void tdi_trace_free(tdi_trace *trace)
{
    if (!trace)
        return;
    for (int i = 0; i < trace->tracks.count; i++) {
        free(trace->tracks.at[i]->events);
        free(trace->tracks.at[i]);
    }
    tdi_vec_free(&trace->tracks);
    pthread_mutex_destroy(&trace->lock);
    tdi_arena_free(trace->arena);
    free(trace);
}

uint64_t tdi_trace_id(const tdi_trace *trace)
{
    return trace->id;
}

static const char *copy(tdi_trace *trace, const char *text)
{
    size_t size = strlen(text) + 1;
    char *made = tdi_alloc(trace->arena, size);
    return made ? memcpy(made, text, size) : NULL;
}

const tdi_label *tdi_trace_label(tdi_trace *trace, const char *name, const char *category, const char *about)
{
    return tdi_trace_step_label(trace, name, category, about, -1);
}

const tdi_label *tdi_trace_step_label(tdi_trace *trace, const char *name, const char *category, const char *about,
                                      int step)
{
    pthread_mutex_lock(&trace->lock);
    tdi_label *label = TDI_NEW_ARRAY(trace->arena, tdi_label, 1);
    if (label)
        *label = (tdi_label){copy(trace, name), copy(trace, category), copy(trace, about), step};
    pthread_mutex_unlock(&trace->lock);
    return label && label->name && label->category && label->about ? label : NULL;
}

static tdi_track *make_track(tdi_trace *trace, const char *name)
{
    tdi_track *track = calloc(1, sizeof *track);
    if (!track)
        return NULL;
    track->name = copy(trace, name);
    track->room = trace->events;
    track->events = calloc((size_t)trace->events, sizeof *track->events);
    if (track->name && track->events && tdi_push(&trace->tracks, track))
        return track;
    free(track->events);
    free(track);
    return NULL;
}

tdi_track *tdi_trace_track(tdi_trace *trace, const char *name)
{
    tdi_track *found = NULL;
    if (!trace)
        return NULL;
    pthread_mutex_lock(&trace->lock);
    for (int i = 0; i < trace->tracks.count && !found; i++)
        if (strcmp(trace->tracks.at[i]->name, name) == 0)
            found = trace->tracks.at[i];
    if (!found)
        found = make_track(trace, name);
    pthread_mutex_unlock(&trace->lock);
    return found;
}

void tdi_track_note(tdi_track *track, const tdi_label *label, double begin, double end, int64_t number)
{
    if (track && label)
        track->events[track->written++ % track->room] = (tdi_trace_event){label, begin, end, number};
}

/* ---- reading ---- */

int tdi_trace_tracks(const tdi_trace *trace)
{
    return trace->tracks.count;
}

int64_t tdi_trace_count(const tdi_trace *trace, int track, int64_t *lost)
{
    const tdi_track *of = trace->tracks.at[track];
    *lost = of->written > of->room ? of->written - of->room : 0;
    return of->written - *lost;
}

const tdi_trace_event *tdi_trace_event_at(const tdi_trace *trace, int track, int64_t i)
{
    const tdi_track *of = trace->tracks.at[track];
    int64_t first = of->written > of->room ? of->written : 0;
    return &of->events[(first + i) % of->room];
}

const char *tdi_trace_track_name(const tdi_trace *trace, int track)
{
    return trace->tracks.at[track]->name;
}
