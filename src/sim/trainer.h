/* trainer.h - a group that trains, in virtual time: what drives a membership as the threads of a real process do, and a
 * model of training whose weights are a hash of all that was applied.
 *
 * A step takes its time, then each member gives its shards' contributions, a hash of its weights, to all others, and
 * who has all of them applies the step. With `shards` the contributions are the same whoever makes them, so that the
 * hash after a step is too; without, they depend on who the members are, as rounding does. */
#ifndef TDI_SIM_TRAINER_H
#define TDI_SIM_TRAINER_H

#include "cluster/membership.h"
#include "sim/network.h"

enum { TDI_SIM_SHARDS = 8, TDI_SIM_DEPTH = 8, TDI_SIM_VIEWS = 1 << 20 };

/* Kinds of frames of training; bits of the membership's are above them. */
enum { TDI_SIM_GIFT = 1, TDI_SIM_ASK, TDI_SIM_STATE };

/* A contribution to a step, in one view. */
typedef struct tdi_sim_gift {
    uint32_t since, step;
    uint64_t sum;
    bool pause;
} tdi_sim_gift;

typedef struct tdi_sim_backup {
    uint64_t state, hash;
    uint32_t step;
} tdi_sim_backup;

typedef struct tdi_sim_process {
    tdi_membership *membership; /* NULL: the process is dead */
    uint32_t step;
    uint64_t hash;
    bool runs;    /* steps are made */
    bool pausing; /* after the next step that it gives to */
    bool has_given;
    bool takes; /* the state of its view, from `donor` */
    int donor;
    uint32_t since; /* of the view in which it trains */
    uint64_t view;  /* its id, when it was formed */
    tdi_task_set members;
    uint32_t begins;    /* the step at which the view begins */
    tdi_task_set asked; /* who wants the state of this view */
    uint32_t asked_since[TDI_SIM_HOSTS];
    tdi_sim_gift gifts[TDI_SIM_HOSTS][2]; /* the last two, since others may be a step ahead */
    tdi_sim_backup backup;                /* survives the process */
    uint64_t life;                        /* counts lives and views, so that old timers are known */
} tdi_sim_process;

typedef struct tdi_sim tdi_sim;

/* What is told of a run; none may kill a process at once, but they may add an event that does. */
typedef struct tdi_sim_watcher {
    void *user;
    void (*acted)(void *user, int self, const tdi_action *action);         /* SEND too */
    void (*began)(void *user, int self);                                   /* has the state of its view */
    void (*applied)(void *user, int self);                                 /* has made a step */
    void (*arrives)(void *user, int from, int to, const tdi_frame *frame); /* before it is handled */
} tdi_sim_watcher;

struct tdi_sim {
    tdi_world world;
    tdi_network network;
    int tasks;
    tdi_task_set trains;
    bool shards, one_host;
    uint32_t steps; /* after which training is over */
    double step_seconds, state_seconds;
    bool split_continues;
    tdi_sim_host hosts[TDI_SIM_HOSTS];
    tdi_sim_process processes[TDI_SIM_HOSTS];
    int sends_left[TDI_SIM_HOSTS]; /* before its process dies in the midst of sending to all; below 0: it does not */
    tdi_sim_watcher watcher;
    tdi_actions *actions; /* those that are being collected: lists[depth] */
    tdi_actions *lists;   /* obeying one can cause others */
    int depth;
    char text[TDI_SIM_HOSTS][16];
    const char *name[TDI_SIM_HOSTS]; /* of tasks, in sentences */
    const char *wrong;               /* what must never be; NULL: nothing has been wrong */
};

/* Draws latencies, and makes hosts without processes. TD_NO_MEMORY. */
td_status tdi_sim_init(tdi_sim *sim, uint64_t seed, int tasks, tdi_task_set trains, tdi_error *error);
void tdi_sim_release(tdi_sim *sim);

/* Starts a task's process, from its backup where it has one. */
void tdi_sim_start(tdi_sim *sim, int task);
/* Kills it; `power`: the host too, so that nobody is told. */
void tdi_sim_kill(tdi_sim *sim, int task, bool power);
void tdi_sim_leave(tdi_sim *sim, int task);
void tdi_sim_begin_with_fewer(tdi_sim *sim, int task);
/* The weights after so many steps of a run with shards that nothing disturbed. */
uint64_t tdi_sim_undisturbed(uint32_t steps);

#endif
