/* security.h - what all connections of a run have in common: TLS 1.3 by the run's key.
 *
 * Both ends prove that they know the key (an external pre-shared key), and each connection has fresh keys of its own (a
 * Diffie-Hellman exchange: psk_dhe_ke), so that a secret that leaks later does not open what was recorded. There are no
 * certificates, no session tickets, no early data. */
#ifndef TDI_LINK_SECURITY_H
#define TDI_LINK_SECURITY_H

#include <stdbool.h>

#include "base/error.h"
#include "link/secret.h"

typedef struct tdi_security tdi_security;

/* Keeps the key of the secret and the run's name, not the secret. Links of several threads may use it at once; it lives
 * as long as they do. */
td_status tdi_security_create(const tdi_secret *secret, const char *run, tdi_security **security, tdi_error *error);
void tdi_security_free(tdi_security *security); /* NULL is accepted */

/* OpenSSL's object for one connection, which reads and writes `fd`; NULL when memory is out. `io_error` is where the
 * number of a failed read or write is put. For links. */
struct ssl_st *tdi_security_connection(tdi_security *security, int fd, bool server, int *io_error);

#endif
