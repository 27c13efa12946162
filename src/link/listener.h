/* listener.h - takes connections, and hands over those whose peer has proved that it knows the secret.
 *
 * Strangers cost little: at most TDI_MOST_HANDSHAKES connections are in their handshake at a time, each for a few
 * seconds. When another comes, the oldest goes: a right peer is through in a millisecond, so that many silent ones do
 * not keep it out. */
#ifndef TDI_LINK_LISTENER_H
#define TDI_LINK_LISTENER_H

#include "link/link.h"

enum { TDI_MOST_HANDSHAKES = 64 };

typedef struct tdi_listener tdi_listener;

typedef struct tdi_listener_spec {
    tdi_loop *loop; /* both outlive the listener */
    tdi_security *security;
    int fd;                 /* listens; the listener's from now on, also when it cannot be made */
    double handshake_limit; /* seconds; 0: TDI_HANDSHAKE_SECONDS */
    void *user;
    /* An open link: the user's, who sets its sinks in here, or frees it. It is in the loop. */
    void (*opened)(void *user, tdi_link *link);
    /* Why a connection came to nothing, a sentence that names its address; once a second at most. NULL: nobody wants to
     * know. */
    void (*refused)(void *user, const tdi_error *why);
} tdi_listener_spec;

td_status tdi_listener_create(const tdi_listener_spec *spec, tdi_listener **listener, tdi_error *error);
/* Closes the port and cuts the connections that have not been handed over. NULL is accepted. */
void tdi_listener_free(tdi_listener *listener);
int tdi_listener_handshakes(const tdi_listener *listener); /* under way */

#endif
