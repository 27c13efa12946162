/* secret.h - the secret that all processes of a cluster share: read, made, and turned into a key.
 *
 * A pre-shared key can be guessed offline by whoever has watched a handshake, so a secret must be random and long, and
 * a file that others can read is refused. The bytes of the file are the secret, whatever they are: a file that ends in
 * a newline is another secret than one that does not. */
#ifndef TDI_LINK_SECRET_H
#define TDI_LINK_SECRET_H

#include <stddef.h>

#include "base/error.h"

enum {
    TDI_SECRET_SHORTEST = 16,
    TDI_SECRET_MADE = 32, /* bytes of one that is made */
    TDI_SECRET_LONGEST = 4096,
    TDI_KEY_BYTES = 32
};

typedef struct tdi_secret {
    unsigned char bytes[TDI_SECRET_LONGEST];
    size_t size;
} tdi_secret;

/* Reads a file. TD_NOT_FOUND; TD_BAD_FILE: too short, too long, no regular file; TD_INVALID_ARGUMENT: users other than
 * its owner may read or write it; TD_IO. After a failure the secret is empty. */
td_status tdi_secret_read(const char *path, tdi_secret *secret, tdi_error *error);

/* Makes one of random bytes. */
td_status tdi_secret_make(tdi_secret *secret, tdi_error *error);

/* Writes it to a new file of mode 0600. TD_INVALID_ARGUMENT: the path exists; TD_NOT_FOUND: its folder does not; TD_IO.
 * After a failure no file is left. */
td_status tdi_secret_write(const char *path, const tdi_secret *secret, tdi_error *error);

/* The key of the links of one run: HKDF-SHA256 with the salt "tandem link 1" and the run's name as info. So processes
 * of two runs that share a secret refuse each other. */
td_status tdi_secret_key(const tdi_secret *secret, const char *run, unsigned char key[TDI_KEY_BYTES], tdi_error *error);

/* Overwrites it. */
void tdi_secret_forget(tdi_secret *secret);

#endif
