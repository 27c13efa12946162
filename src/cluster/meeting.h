/* meeting.h - the processes of a group, connected: everybody with everybody, by links that a thread of their own keeps.
 *
 * The later of two tasks calls the earlier one, again and again until it answers, and each says hello. Every pair has
 * two links: one for control, which this folder keeps, and one for bulk data, which is handed over. What a process has
 * to tell all others between two steps goes by tdi_meeting_share. */
#ifndef TDI_CLUSTER_MEETING_H
#define TDI_CLUSTER_MEETING_H

#include <tandem/cluster.h>

#include "base/context.h"
#include "cluster/hello.h"
#include "link/link.h"

enum { TDI_MEMBER_NAME = 320 };

typedef struct tdi_meeting tdi_meeting;

typedef struct tdi_meeting_spec {
    td_context *context;              /* what is waited for is said there, and its stop ends the waiting */
    const tdi_cluster_config *config; /* its first tasks, `members` of them, meet; it outlives the meeting */
    int members;
    tdi_security *security; /* outlives the meeting */
    const char *bind;       /* the address to listen on, "0.0.0.0" or "10.0.0.3:2222"; NULL: the task's own */
    double start_timeout;   /* seconds to wait for all */
    /* Called by the meeting's thread; NULL: nobody is told. */
    void (*on_event)(void *user, const td_cluster_event *event);
    void *user;
} tdi_meeting_spec;

/* Blocks until all are there. TD_INVALID_ARGUMENT: one of them is of another version or cluster, or has another secret;
 * TD_NOT_FOUND: some did not come in time, the sentence names them; TD_STOPPED. */
td_status tdi_meeting_open(const tdi_meeting_spec *spec, tdi_meeting **meeting, tdi_error *error);
/* Waits until all others call it too, unless one is gone, so that nobody leaves while another waits for what it has
 * sent. False: `longest` seconds are over, and some stay. NULL is accepted, here and by the next. */
bool tdi_meeting_part(tdi_meeting *meeting, double longest);
void tdi_meeting_close(tdi_meeting *meeting);

/* Tells the others, whose meeting ends by it, why this process leaves. */
void tdi_meeting_farewell(tdi_meeting *meeting, const tdi_error *why);

/* Who is told, once, that a member has gone, by the meeting's thread, or at once if it has; NULL: nobody. */
void tdi_meeting_tell(tdi_meeting *meeting, void (*lost)(void *user, const tdi_error *why), void *user);

/* The link for bulk data with a member, open, out of any loop: the caller's from now on. NULL: this process's own
 * place, or it was taken before. */
tdi_link *tdi_meeting_take_bulk(tdi_meeting *meeting, int member);

/* "worker 1 (10.0.0.3:2222)". Lives as long as the meeting. */
const char *tdi_meeting_name(const tdi_meeting *meeting, int member);
/* Whether the member's process runs on this host, where memory can be shared with it. */
bool tdi_meeting_is_neighbour(const tdi_meeting *meeting, int member);

/* What a member gave. */
typedef struct tdi_shared {
    char *bytes; /* malloc'd, the receiver's, with a NUL behind them; NULL: of this process */
    size_t size;
} tdi_shared;

/* Gives all members `size` bytes, below 4 GB, and takes theirs: all[members], to be freed by tdi_shared_free. Every
 * member calls it in the same order. Blocks; fails when a member has gone, or with TD_STOPPED, and all[] is empty then.
 */
td_status tdi_meeting_share(tdi_meeting *meeting, const void *bytes, size_t size, tdi_shared *all, tdi_error *error);
void tdi_shared_free(tdi_shared *all, int members);

#endif
