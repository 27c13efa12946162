/* membership_state.h - what a membership is made of, for the files that it is made of: membership.c (events, beats, who
 * is let in) and ballot.c (the agreement on the next view). */
#ifndef TDI_CLUSTER_MEMBERSHIP_STATE_H
#define TDI_CLUSTER_MEMBERSHIP_STATE_H

#include "cluster/membership.h"

/* What others have said of themselves last. */
typedef struct tdi_told {
    uint64_t view, state;
    uint32_t flags, step, known, facts;
    tdi_task_set hears;
} tdi_told;

typedef enum tdi_training {
    TDI_TRAINING_NONE,     /* in no view, or a witness */
    TDI_TRAINING_BEGINS,   /* a view has been made, `ready` is awaited */
    TDI_TRAINING_RUNS,     /* `ready` has been called */
    TDI_TRAINING_STOPPING, /* DO_STOP has been said, `stopped` is awaited */
    TDI_TRAINING_STOPPED   /* until the next view */
} tdi_training;

typedef enum tdi_ballot_phase { TDI_BALLOT_NONE, TDI_BALLOT_PREPARING, TDI_BALLOT_PROPOSING } tdi_ballot_phase;

/* A ballot that this process leads. */
typedef struct tdi_ballot {
    tdi_ballot_phase phase;
    uint32_t order, flags; /* TDI_SAY_PLANNED, TDI_SAY_VOTES */
    double begun, asked;   /* when it was begun, when it asked last */
    tdi_task_set answered; /* who has promised */
    tdi_task_set accepted;
    uint32_t found; /* the highest order in which one of them has accepted a view; 0: none */
    tdi_view next;  /* that view, or the one that is proposed */
    bool said_why;  /* why it waits */
    bool forced;    /* goes on without a quorum, by the user's word */
} tdi_ballot;

struct tdi_membership {
    tdi_membership_settings settings;
    tdi_task_set tasks;
    tdi_detect detect;

    tdi_view view;
    uint32_t known; /* highest generation of a view in which it was, or that it was told of */
    uint32_t seen;  /* highest generation that anybody has heard of, for the next number */

    uint64_t linked[TDI_VIEW_TASKS];     /* incarnation at the other end of each open link, else 0 */
    uint64_t dead[TDI_VIEW_TASKS];       /* incarnations up to this one are proved gone */
    double absent[TDI_VIEW_TASKS];       /* when nobody was found at its address last; below 0: never */
    double absent_since[TDI_VIEW_TASKS]; /* and since when nobody ever was */
    tdi_told told[TDI_VIEW_TASKS];
    tdi_task_set named; /* lost, and said so */

    tdi_progress at;
    uint64_t state;
    tdi_training training;
    bool pausing, leaving, has_left, fewer;

    uint32_t promised, accepted; /* orders, of ballots on what follows the view; 0: none */
    uint32_t highest;            /* order heard of */
    tdi_view accepted_view;
    int owed; /* the task to which a promise is owed until training has stopped; TDI_NO_TASK */
    uint32_t owed_flags;
    double owed_since;
    tdi_ballot ballot;

    double beat_due, tick_due, prove_due;
    double trouble_since;  /* since when the view needs another; below 0: it does not */
    double outdated_since; /* since when somebody knows of a later view; below 0: nobody does */
    double active;         /* when another's ballot moved last */
};

/* ---- membership.c ---- */

tdi_action *tdi_add_action(tdi_actions *out, tdi_do kind);
/* Sends to those of `to` with a link; the message's view is filled in. */
void tdi_membership_send(const tdi_membership *m, tdi_task_set to, tdi_message *message, tdi_actions *out);
/* Of everyone and the strangers of `view`: who is proved gone. */
tdi_task_set tdi_membership_gone_of(const tdi_membership *m, const tdi_view *view);
/* The tasks of `set`, in the view, are proved gone. */
void tdi_membership_bury(tdi_membership *m, const tdi_view *view, tdi_task_set set);
/* Those at whose addresses nobody was found for a while, whenever it was asked, and just now. One question would not
 * do: while the others are asked about, one that is gone can come back, join the last of them, and inherit its view. */
tdi_task_set tdi_membership_absent(const tdi_membership *m, double now);
/* Whom it hears and who is of its view, or of none. */
tdi_task_set tdi_membership_hears(const tdi_membership *m, double now);
/* Those that are in no view, heard, ask to be let in, and know this view: to be told of it makes them other processes.
 */
tdi_task_set tdi_membership_joiners(const tdi_membership *m, double now);
/* Those that have said that they leave. */
tdi_task_set tdi_membership_leavers(const tdi_membership *m);
/* Goes over to another view, which may leave it out. */
void tdi_membership_adopt(tdi_membership *m, const tdi_view *view, double now, tdi_actions *out);
/* Asks for proofs that these are gone, from time to time. */
void tdi_membership_prove(tdi_membership *m, tdi_task_set tasks, double now, tdi_actions *out);
void tdi_membership_break(tdi_membership *m, tdi_actions *out);

/* ---- ballot.c ---- */

void tdi_ballot_begin(tdi_membership *m, uint32_t flags, double now, tdi_actions *out);
/* A message of a ballot on what follows this process's view, from someone who is in it. */
void tdi_ballot_receive(tdi_membership *m, int from, const tdi_message *message, double now, tdi_actions *out);
/* Gives the promise that is owed, if training has stopped. */
void tdi_ballot_answer(tdi_membership *m, double now, tdi_actions *out);
/* Goes on with the own ballot where that can be done now. */
void tdi_ballot_step(tdi_membership *m, double now, tdi_actions *out);
/* Another view: nothing has been promised. */
void tdi_ballot_reset(tdi_membership *m);

#endif
