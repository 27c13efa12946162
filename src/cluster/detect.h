/* detect.h - who is heard, who is lost, and who is merely slow.
 *
 * Processes say a beat to each other every tenth of a second. One that is watched is lost when its link closes, or when
 * nothing has come from it for `silence` seconds; it is found again when something comes. Who computes long, or waits
 * for input, is slow and not lost: beats come from a thread of their own, and say in which step and phase training is.
 *
 * Whoever has not been called for TDI_SLEPT_SECONDS was stopped, or had no processor: then it was it that did not
 * listen, and everybody gets the whole time again.
 *
 * Functions of (state, event, now): no clock, no memory of its own. `now` is in seconds and never goes back. */
#ifndef TDI_CLUSTER_DETECT_H
#define TDI_CLUSTER_DETECT_H

#include <stddef.h>

#include "cluster/message.h"

#define TDI_BEAT_SECONDS    0.1
#define TDI_SILENCE_SECONDS 0.7 /* of a failure timeout of 1 s: the rest is for saying it and for being late */
#define TDI_STALL_SECONDS   10.0
#define TDI_SLEPT_SECONDS   0.5
#define TDI_STOPPED_SECONDS 0.6 /* who has not run for that long will notice, on any clock */

typedef struct tdi_detect_peer {
    double heard;    /* when something came last, or since when it is watched */
    double since;    /* when its progress was first as it is */
    tdi_progress at; /* as its last beat said */
} tdi_detect_peer;

typedef struct tdi_detect {
    int self;
    double silence, stall; /* seconds */
    double last;           /* the time of the last event; below 0: there was none yet */
    tdi_task_set links;    /* open ones */
    tdi_task_set watched;
    tdi_task_set lost;    /* of those watched */
    tdi_task_set stuck;   /* beats come, data do not */
    tdi_task_set stalled; /* of those watched; told already */
    tdi_detect_peer peer[TDI_VIEW_TASKS];
} tdi_detect;

/* `silence`, `stall`: 0 for those above. */
void tdi_detect_init(tdi_detect *detect, int self, double silence, double stall);

/* To be called first at each event. True: this process has slept. */
bool tdi_detect_wake(tdi_detect *detect, double now);
/* From now on these are watched, and no others; who has no link yet has `silence` seconds from now on. */
void tdi_detect_watch(tdi_detect *detect, tdi_task_set tasks, double now);
void tdi_detect_open(tdi_detect *detect, int task, double now);
void tdi_detect_close(tdi_detect *detect, int task);
void tdi_detect_hear(tdi_detect *detect, int task, double now);
void tdi_detect_beat(tdi_detect *detect, int task, const tdi_progress *at, double now);
/* The wire to a task has stopped moving although its beats come, or moves again. */
void tdi_detect_stuck(tdi_detect *detect, int task, bool stuck);
/* Adds to `lost` who has been silent for too long. */
void tdi_detect_tick(tdi_detect *detect, double now);
/* Who has waited for input for `stall` seconds since this was last called: each is told once for a wait. */
tdi_task_set tdi_detect_stalls(tdi_detect *detect, double now);

/* Whom this process hears, itself included: watched and not lost, or linked and heard of lately; nobody that is stuck.
 */
tdi_task_set tdi_detect_hears(const tdi_detect *detect, double now);

/* "worker 2 (10.0.0.3:2222) has not answered for 0.7 s: lost at step 812, gradients 3 of 5 under way", for one that is
 * lost or stuck. */
void tdi_detect_say_lost(const tdi_detect *detect, int task, const char *name, double now, char *text, size_t size);
/* "worker 2 (10.0.0.3:2222) is slow: it has waited for input for 10 s at step 812" */
void tdi_detect_say_stall(const tdi_detect *detect, int task, const char *name, double now, char *text, size_t size);

#endif
