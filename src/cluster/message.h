/* message.h - what the processes of a cluster say to each other about who is there: beats, and the messages of a ballot
 * (ballot.c), as frames of a link.
 *
 * Every message bears the id of the view in which its sender is: a ballot decides what follows that view, and who is in
 * another one is told its own view instead of an answer. The header of 32 bytes (link/frame.h) has
 *
 *     generation, shard: the view's generation and order    id: the ballot's order    step: the sender's step
 *     kind: tdi_say                                         flags: tdi_say_flags
 *
 * and behind it stands a payload, little-endian, of the length that its kind and its content demand:
 *
 *     BEAT     incarnation 8, state 8, hears 8, known 4, facts 4, phase 4, done 4, of 4
 *     PREPARE  gone 8
 *     PROMISE  state 8, hears 8, known 4, facts 4, accepted 4, and a view where accepted is not 0
 *     REFUSE   promised 4
 *     PROPOSE  a view
 *     ACCEPT   nothing
 *     COMMIT   gone 8, a view
 *     view     generation 4, order 4, since 4, step 4, state 8, donor 4, members 8, witnesses 8, voters 8, strangers 8,
 *              makers 8, and of each member, witness and stranger in order: incarnation 8, facts 4 */
#ifndef TDI_CLUSTER_MESSAGE_H
#define TDI_CLUSTER_MESSAGE_H

#include "cluster/view.h"
#include "link/frame.h"

enum { TDI_VIEW_BYTES = 4 * 5 + 8 * 6 + 12 * TDI_VIEW_TASKS, TDI_MESSAGE_BYTES = 28 + TDI_VIEW_BYTES };

/* Kinds of frames. */
typedef enum tdi_say {
    TDI_SAY_BEAT = 0x40,
    TDI_SAY_PREPARE, /* who takes part in this ballot, and where are you? */
    TDI_SAY_PROMISE, /* I do, and in no lower one; there I am, and this I have accepted in a lower one */
    TDI_SAY_REFUSE,  /* I have promised not to */
    TDI_SAY_PROPOSE, /* the next view shall be this */
    TDI_SAY_ACCEPT,
    TDI_SAY_COMMIT, /* the next view is this; also said to who is in an older one */
    TDI_SAY_END
} tdi_say;

typedef enum tdi_say_flags {
    TDI_SAY_JOINS = 1,   /* BEAT: is in no view and asks to be let in */
    TDI_SAY_LEAVES = 2,  /* BEAT, PROMISE: asks to be left out */
    TDI_SAY_READY = 4,   /* BEAT: has the state of its view, or needs none */
    TDI_SAY_PLANNED = 8, /* PREPARE: nobody is lost, training stops by itself after a step */
    TDI_SAY_VOTES = 16   /* PREPARE: votes and witnesses alone change, training goes on */
} tdi_say_flags;

/* Where a process is in its step, for sentences. */
typedef enum tdi_phase {
    TDI_PHASE_IDLE, /* before the first step, between steps, or not in a view */
    TDI_PHASE_INPUT,
    TDI_PHASE_COMPUTE,
    TDI_PHASE_EXCHANGE, /* `done` of `of` gradients have arrived */
    TDI_PHASE_STATE,    /* takes the state from another */
    TDI_PHASES
} tdi_phase;

typedef struct tdi_progress {
    uint32_t step; /* steps done */
    tdi_phase phase;
    uint32_t done, of;
} tdi_progress;

typedef struct tdi_message {
    tdi_say kind;
    uint32_t flags;
    uint64_t incarnation; /* BEAT: of the sender, which may have grown since the link was made */
    uint64_t view;        /* tdi_view_id of the sender's; 0: it is in none */
    uint32_t order;       /* of the ballot; unused by beats and COMMIT */
    uint64_t state;       /* BEAT, PROMISE: the view in which the sender's state was reached */
    tdi_progress at;      /* BEAT; PROMISE has the step alone */
    tdi_task_set hears;   /* BEAT, PROMISE: whom the sender hears */
    tdi_task_set gone;    /* PREPARE, COMMIT: who of the sender's view, or of the view it names, is proved gone */
    uint32_t known;       /* BEAT, PROMISE: the highest generation that the sender has heard of */
    uint32_t facts;       /* BEAT, PROMISE: of the sender */
    uint32_t other;       /* PROMISE: order in which `next` was accepted, 0: nothing was; REFUSE: order promised */
    tdi_view next;        /* PROPOSE, COMMIT, and PROMISE where other is not 0 */
} tdi_message;

/* The frame, and its payload of frame->length bytes. */
void tdi_message_encode(const tdi_message *message, tdi_frame *frame, unsigned char payload[TDI_MESSAGE_BYTES]);
/* Is the frame of a kind that tdi_message_decode reads, and not longer than one can be? For a sink, before the payload
 * is there. TD_INVALID_ARGUMENT with a sentence. */
td_status tdi_message_check(const tdi_frame *frame, tdi_error *error);
/* What a frame and its payload of frame->length bytes say; members that its kind does not have are 0, and `next` is
 * then untouched. TD_INVALID_ARGUMENT: what no process says, with a sentence. Nothing of it can be wrong in a way that
 * would harm tables: tasks are below TDI_VIEW_TASKS, views are sound. */
td_status tdi_message_decode(const tdi_frame *frame, const unsigned char *payload, tdi_message *message,
                             tdi_error *error);

/* Does it say a view, `next`? */
bool tdi_message_has_view(const tdi_message *message);
/* "PREPARE"; "kind 7" is not its to name: NULL. */
const char *tdi_say_name(uint32_t kind);

#endif
