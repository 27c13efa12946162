/* refusal.c - OpenSSL's reasons, sorted into what a user can do about them. */
#define _GNU_SOURCE
#include "link/refusal.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

static td_status other_secret(const char *name, tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: refused: it has another secret, or belongs to a run of another name; give all processes the "
                    "same secret file and name",
                    name);
}

static td_status fail_by_system(const char *name, int reason, tdi_error *error)
{
    if (reason == ECONNREFUSED)
        return tdi_fail(error, TD_NOT_FOUND, "%s: refuses the connection: nothing listens there; has it been started?",
                        name);
    if (reason == ECONNRESET || reason == EPIPE)
        return tdi_fail(error, TD_IO, "%s: cut the connection in the midst of the handshake", name);
    return tdi_fail(error, TD_IO, "%s: cannot be reached: %s", name, strerror(reason));
}

/* A server sees that the key is another, and tells its client so by an alert: illegal_parameter by OpenSSL up to 3.4,
 * decrypt_error, which RFC 8446 asks for, since 3.5. */
static bool is_other_secret(bool server, int reason)
{
    if (server)
        return reason == SSL_R_BINDER_DOES_NOT_VERIFY;
    return reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR;
}

static td_status fail_by_tls(const char *name, bool server, unsigned long code, tdi_error *error)
{
    const char *words = ERR_reason_error_string(code);
    if (is_other_secret(server, ERR_GET_REASON(code)))
        return other_secret(name, error);
    if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: refused: it does not know the secret, and shows a certificate instead; is this the "
                        "address of a process of the run?",
                        name);
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: refused: it does not speak as a process of the run does (%s); is another program using this "
                    "address?",
                    name, words ? words : "OpenSSL does not say why");
}

td_status tdi_refusal(const char *name, bool server, int io_error, bool closed, tdi_error *error)
{
    unsigned long code = ERR_peek_error();
    if (io_error)
        return fail_by_system(name, io_error, error);
    if (closed || !code || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return tdi_fail(error, TD_IO, "%s: closed the connection in the midst of the handshake", name);
    return fail_by_tls(name, server, code, error);
}
