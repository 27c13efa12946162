/* meeting_struct.h - the inside of a meeting. Within this folder. */
#ifndef TDI_CLUSTER_MEETING_STRUCT_H
#define TDI_CLUSTER_MEETING_STRUCT_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/meeting.h"
#include "link/address.h"
#include "link/listener.h"

/* Of the frames on control links, and of the first frames on links for bulk data. */
enum { TDI_KIND_HELLO = 1, TDI_KIND_REFUSAL, TDI_KIND_DIRECTORY, TDI_KIND_FAREWELL, TDI_KIND_SHARE };

/* One link, from its first word on. Its number in `connections` is what the link knows it by. */
typedef struct tdi_connection {
    tdi_meeting *meeting;
    tdi_link *link; /* NULL: between two calls, or over */
    int member;     /* -1: it has called, and has not said who it is */
    tdi_purpose purpose;
    bool greeted; /* its hello has come, and is right */
    bool calls;   /* this side calls, and calls again */
    tdi_timer again;
    double pause;         /* seconds until the next call */
    int tried;            /* calls, for the next address of several */
    char failure[200];    /* of the last call */
    tdi_hello hello;      /* the other side's */
    char *gift;           /* that is arriving; malloc'd */
    unsigned char *heard; /* of a hello, a refusal or a directory that is arriving; malloc'd */
} tdi_connection;

/* Of a frame of TDI_KIND_SHARE: its sender shares nothing more, and leaves when all others do. */
enum { TDI_SHARE_PARTS = 1 };

/* What has been shared and not been taken yet. */
typedef struct tdi_gift {
    uint32_t number;
    bool parts;
    tdi_shared shared;
} tdi_gift;

typedef struct tdi_member_state {
    tdi_connection *links[TDI_PURPOSES]; /* greeted; NULL: not yet */
    tdi_link *bulk;                      /* out of the loop, to be taken */
    char name[TDI_MEMBER_NAME];
    char *address; /* where it is called; malloc'd; NULL: not known yet */
    bool neighbour;
    tdi_vec(tdi_gift) gifts;
} tdi_member_state;

typedef struct tdi_outgoing {
    tdi_frame frame;
    char *bytes; /* malloc'd */
} tdi_outgoing;

struct tdi_meeting {
    tdi_meeting_spec spec;
    int self;
    double began;
    tdi_hello own;
    tdi_sinks sinks;
    tdi_loop *loop;
    tdi_listener *listener;
    pthread_t thread;
    bool started;
    tdi_vec(tdi_connection *) connections; /* the thread's */
    bool directory_told;                   /* the first member's: the others know each other's addresses */
    bool unwanted;                         /* a member refuses this process, of whose task another one is there */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    tdi_member_state *members; /* [spec.members] */
    bool complete, ending;
    double leaves_at;                               /* tdi_seconds(): who is ending waits no longer for others */
    void (*lost)(void *user, const tdi_error *why); /* NULL: nobody is to be told */
    void *user;
    tdi_error why;     /* it is over */
    tdi_error refused; /* a connection, of which nobody has heard yet */
    tdi_vec(tdi_outgoing) outgoing;
    uint32_t shares;
    atomic_bool quits;
};

/* Tells the user of an event; `member` -1: of nobody in particular. By the meeting's thread. */
void tdi_meeting_note(const tdi_meeting *meeting, td_cluster_event_kind kind, int member, const char *sentence);
/* Ends the meeting with a sentence; the first holds. The meeting's thread calls it. */
void tdi_meeting_fail(tdi_meeting *meeting, const tdi_error *why);
/* For the context's log: who was turned away, and why. */
void tdi_meeting_note_refused(void *meeting, const tdi_error *why);
/* A member's link is over. */
void tdi_meeting_lose(tdi_meeting *meeting, int member, const tdi_error *why);
/* Every member's links have been greeted? Then those for bulk data leave the loop. Between two rounds of it. */
void tdi_meeting_complete(tdi_meeting *meeting);

/* greeting.c: from the listener, the calls, and the links' sinks. */
td_status tdi_greeting_begin(tdi_meeting *meeting, tdi_error *error);
void tdi_greeting_opened(void *meeting, tdi_link *link); /* a caller, by the listener */
tdi_sink_answer tdi_greeting_place(tdi_connection *connection, const tdi_frame *frame, void **place, tdi_error *error);
void tdi_greeting_arrived(tdi_connection *connection, const tdi_frame *frame);
void tdi_greeting_lost(tdi_connection *connection, const tdi_error *why);
void tdi_connection_end(tdi_connection *connection);

#endif
