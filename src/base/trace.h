/* trace.h - a timeline: who did what from when to when, on each thread.
 *
 * A thread writes into a track of its own, a ring that keeps the newest events: nothing is locked or allocated. Names
 * are copied when plans and tracks are made, so that they outlive what they name. */
#ifndef TDI_BASE_TRACE_H
#define TDI_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_trace tdi_trace;
typedef struct tdi_track tdi_track;

/* What an event is; `category` is one of a few words, `about` a few more, or "". */
typedef struct tdi_label {
    const char *name, *category, *about;
    int step; /* of a plan, for those who add up; -1: none */
} tdi_label;

typedef struct tdi_trace_event {
    const tdi_label *label;
    double begin, end; /* of tdi_seconds */
    int64_t number;    /* of the step, or of whatever there are many of */
} tdi_trace_event;

/* Keeps `events` of each track; NULL when memory is out. */
tdi_trace *tdi_trace_create(int64_t events);
void tdi_trace_free(tdi_trace *trace);
/* Names one trace from all others, those of before too. */
uint64_t tdi_trace_id(const tdi_trace *trace);

/* A copy that lives as long as the trace; NULL when memory is out. Any thread. */
const tdi_label *tdi_trace_label(tdi_trace *trace, const char *name, const char *category, const char *about);
const tdi_label *tdi_trace_step_label(tdi_trace *trace, const char *name, const char *category, const char *about,
                                      int step);
/* The track of this name, made when there is none; NULL when memory is out or `trace` is. Any thread; then one thread
 * at a time writes into it. */
tdi_track *tdi_trace_track(tdi_trace *trace, const char *name);

/* Notes what has just ended. A NULL track or label is accepted. */
void tdi_track_note(tdi_track *track, const tdi_label *label, double begin, double end, int64_t number);

/* ---- reading, when all threads are at rest ---- */

int tdi_trace_tracks(const tdi_trace *trace);
/* The track's events, oldest first: event `i` of `count`. `*lost` older ones are not there any more. */
int64_t tdi_trace_count(const tdi_trace *trace, int track, int64_t *lost);
const tdi_trace_event *tdi_trace_event_at(const tdi_trace *trace, int track, int64_t i);
const char *tdi_trace_track_name(const tdi_trace *trace, int track);

#endif
