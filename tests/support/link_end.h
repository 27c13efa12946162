/* link_end.h - one end of a link, for tests: it keeps what arrives and how the link ended. */
#ifndef TEST_SUPPORT_LINK_END_H
#define TEST_SUPPORT_LINK_END_H

#include "base/vec.h"
#include "link/link.h"

typedef struct received {
    tdi_frame frame;
    unsigned char *payload;
} received;

/* Zero-initialise. */
typedef struct link_end {
    tdi_link *link;
    tdi_sinks sinks;
    tdi_vec(received) got;
    unsigned char *place; /* of the frame under way */
    int opened, sent, lost;
    bool holds;       /* what arrives has to wait */
    uint16_t drops;   /* frames of this kind are dropped, unless it is 0 */
    uint32_t longest; /* longer ones are refused, unless it is 0 */
    tdi_error why;    /* of lost */
    void (*on_arrived)(struct link_end *end, const received *last); /* NULL: nothing more */
} link_end;

/* The run "run"'s, by a secret of 32 times that byte. */
tdi_security *link_security(unsigned char byte);
/* A link over a socket, whose sinks are the end's. */
void link_end_open(link_end *end, tdi_security *security, int fd, tdi_link_role role);
/* Frees what arrived, and the link. */
void link_end_close(link_end *end);

/* Two ends over a socket pair, not yet pumped. */
void link_pair_open(link_end ends[2], tdi_security *client, tdi_security *server);
/* Pumps both, waiting for their sockets, until condition(argument); false: after a minute it still does not hold. */
bool link_pump_until(link_end *a, link_end *b, bool (*condition)(const void *argument), const void *argument);
/* Until both have been opened, or one is lost. */
void link_pair_shake(link_end ends[2]);

/* Conditions. */
bool link_both_lost(const void *ends); /* link_end[2] */

#endif
