/* refusal.h - why a handshake failed, in words for a user. */
#ifndef TDI_LINK_REFUSAL_H
#define TDI_LINK_REFUSAL_H

#include <stdbool.h>

#include "base/error.h"

/* By OpenSSL's queue of errors, the number of the system's error (0: none), and whether the peer has closed its side.
 * Always a failure: TD_NOT_FOUND where nothing listens, TD_INVALID_ARGUMENT where the peer is no process of the run,
 * TD_IO. `name` is the
 * peer's; `server`: this side is the server. */
td_status tdi_refusal(const char *name, bool server, int io_error, bool closed, tdi_error *error);

#endif
