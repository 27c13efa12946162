/* membership.h - one process's part in a group that lives: who is there, who is lost, who goes on with whom.
 *
 * Events go in, actions come out, and nothing else happens: no clock, no socket, no thread; the one allocation is that
 * of tdi_membership_create. The thread of sockets and timers drives it, and so does the simulator (sim/).
 *
 *     driver                                             membership
 *     a link has shown who it is        link_up, link_down  -> DO_SEND    a message to some tasks
 *     a frame has come                  receive             -> DO_LOST    say this sentence: somebody is lost
 *     tdi_membership_due has come       tick                -> DO_SLOW    say this sentence: somebody is slow
 *     training has moved                progress            -> DO_PAUSE   have all of the view end training after a
 * step training has ended                stopped             -> DO_STOP    break the step that is under way training
 * has the view's state     ready               -> DO_VIEW    a view has been made: form it a process is proved gone
 * gone                -> DO_OUT     in no view any more: wait to be let in a wire has stopped, or moves      wire ->
 * DO_WAIT    say this sentence: why nothing goes on SIGTERM                           leave               -> DO_LEFT
 * nobody counts on this process any more the time to start is over         begin_with_fewer    -> DO_PROVE   find out
 * whether these processes are gone
 *
 * What the driver has to do:
 *   - Links to all tasks of the cluster, made again when they close. A link is up when both sides have said who they
 *     are. Frames of a link arrive in order, those of a link that has closed not at all.
 *   - DO_STOP and DO_PAUSE are answered by `stopped` with the number of steps done, once training has left its step: it
 *     does not go on before the next DO_VIEW. Training that ends by itself, since a wire has failed, is `stopped` too.
 *     DO_PAUSE comes at the leader alone: the word that all exchange in a step says it to the others, so that no step
 *     is lost. After the last of it everyone is `stopped` at the same step.
 *   - DO_VIEW: training that still goes on is broken first. Then wires for view->since are made; `from` is whose state
 *     to take, of view->step, or TDI_NO_TASK: it is there already. `ready` when it is there, at once where nothing is
 *     to be taken, and only when all of it is. Training begins when `ready` has been called here; a step needs all
 * members, so it waits for those that still take the state. `enough` false: there are fewer members than wanted; save,
 * and do not begin. A DO_VIEW whose view->since is that of the one before leaves training alone.
 *   - DO_LEFT: after `leave`, once others go on without this process, or nobody is there who could: it may end. It
 * comes later where this is the last process with a vote and others are about to get one.
 *   - DO_OUT: as DO_STOP, unless training has ended already; the state is kept, and the next DO_VIEW says from whom to
 *     take a newer one. The process asks to be let in again when `stopped` has said at which step it is.
 *   - DO_PROVE: `gone` for a process that is found dead: its port refuses, or /proc has no such process. On one host
 *     also for one that is stopped (SIGSTOP) and has not run for TDI_STOPPED_SECONDS, as its counts of context switches
 *     tell: when it wakes it will know, and take the next incarnation before it does anything else. Never for one that
 *     is merely silent. Asked again while it matters.
 *   - What a state is worth is said by (state, step): tdi_membership_state is to be kept in a backup, and given back in
 *     the settings when a process starts from one.
 *   - DO_LOST comes at everyone who notices, to be shown at the leader; DO_WAIT at whoever waits.
 *
 * One thread at a time. Every function takes the time, in seconds, which never goes back, and appends to `out`. */
#ifndef TDI_CLUSTER_MEMBERSHIP_H
#define TDI_CLUSTER_MEMBERSHIP_H

#include "cluster/detect.h"
#include "cluster/message.h"
#include "cluster/view.h"

typedef struct tdi_membership tdi_membership;

typedef struct tdi_membership_settings {
    int self, tasks;          /* of the cluster, at most TDI_VIEW_TASKS */
    tdi_task_set trains;      /* tasks that train; the others are witnesses */
    tdi_task_set neighbours;  /* tasks on this host, which can prove that this process has been stopped */
    uint64_t incarnation;     /* of this process, from 1 on: grows from start to start of a task by more than the
                               * views that it can leave, as nanoseconds do */
    uint32_t facts;           /* of this process, for the deal; passed on */
    uint64_t state;           /* what the state it starts from is worth; 0 for that of a model file */
    uint32_t step;            /* steps done in it */
    int min_workers;          /* 0: 1 */
    bool split_continues;     /* --on-split continue */
    double silence, stall;    /* seconds; 0: those of detect.h */
    const char *const *names; /* [tasks]: "worker 2 (10.0.0.3:2222)"; they live as long as this */
} tdi_membership_settings;

typedef enum tdi_do {
    TDI_DO_SEND,
    TDI_DO_LOST,
    TDI_DO_SLOW,
    TDI_DO_PAUSE,
    TDI_DO_STOP,
    TDI_DO_VIEW,
    TDI_DO_OUT,
    TDI_DO_WAIT,
    TDI_DO_LEFT,
    TDI_DO_PROVE
} tdi_do;

typedef struct tdi_action {
    tdi_do kind;
    tdi_task_set to; /* SEND: to whom, those without a link are left out; PROVE: who */
    int task;        /* LOST, SLOW: who */
    int from;        /* VIEW: whose state to take; TDI_NO_TASK: nobody's */
    bool enough;     /* VIEW: there are as many members as wanted */
    tdi_frame frame; /* SEND */
    union {
        unsigned char payload[TDI_MESSAGE_BYTES]; /* SEND: frame.length bytes */
        char sentence[400];                       /* LOST, SLOW, WAIT */
    };
} tdi_action;

/* Room for all that one event can cause. */
enum { TDI_MAX_ACTIONS = 2 * TDI_VIEW_TASKS + 32 };

typedef struct tdi_actions {
    int count;
    tdi_action at[TDI_MAX_ACTIONS];
} tdi_actions;

/* TD_INVALID_ARGUMENT where there are more tasks than a view can have; TD_NO_MEMORY. */
td_status tdi_membership_create(const tdi_membership_settings *settings, double now, tdi_membership **membership,
                                tdi_error *error);
void tdi_membership_free(tdi_membership *membership); /* NULL is accepted */

void tdi_membership_link_up(tdi_membership *m, int task, uint64_t incarnation, double now, tdi_actions *out);
void tdi_membership_link_down(tdi_membership *m, int task, double now, tdi_actions *out);
/* A frame that tdi_message_check takes. TD_INVALID_ARGUMENT: the peer errs, close its link; nothing else has happened.
 */
td_status tdi_membership_receive(tdi_membership *m, int task, const tdi_frame *frame, const unsigned char *payload,
                                 double now, tdi_actions *out, tdi_error *error);
void tdi_membership_tick(tdi_membership *m, double now, tdi_actions *out);
/* When to call tick at the latest; after each event anew. */
double tdi_membership_due(const tdi_membership *m);

/* Where training is, for beats. */
void tdi_membership_progress(tdi_membership *m, const tdi_progress *at);
void tdi_membership_stopped(tdi_membership *m, uint32_t step, double now, tdi_actions *out);
void tdi_membership_ready(tdi_membership *m, double now, tdi_actions *out);
/* Nobody is at the task's address; `incarnation`: who was there, as far as the driver knows, else 0. */
void tdi_membership_gone(tdi_membership *m, int task, uint64_t incarnation, double now, tdi_actions *out);
void tdi_membership_wire(tdi_membership *m, int task, bool stuck, double now, tdi_actions *out);
void tdi_membership_leave(tdi_membership *m, double now, tdi_actions *out);
void tdi_membership_begin_with_fewer(tdi_membership *m, double now, tdi_actions *out);

/* The view in which this process is, generation 0: in none. Changes with DO_VIEW and DO_OUT, and with votes. */
const tdi_view *tdi_membership_view(const tdi_membership *m);
/* What the own state is worth; changes with `ready`. */
uint64_t tdi_membership_state(const tdi_membership *m);
/* Who this process is, to be said by a link that is made; grows with DO_OUT. */
uint64_t tdi_membership_incarnation(const tdi_membership *m);
/* Of the view: who is lost as far as this process has noticed. */
tdi_task_set tdi_membership_lost(const tdi_membership *m);
/* Is this process the leader of its view? */
bool tdi_membership_leads(const tdi_membership *m);

#endif
