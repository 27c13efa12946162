/* security.c - OpenSSL, set up for connections by a pre-shared key.
 *
 * A server without a certificate can answer nobody who lacks the key. A client, though, would go on with a server that
 * ignores the key and shows a certificate; so it verifies certificates, trusting no authority.
 *
 * OpenSSL's own sockets raise SIGPIPE where the peer has gone; so reading and writing is done here. */
#define _GNU_SOURCE
#include "link/security.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tdi_security {
    SSL_CTX *context;
    BIO_METHOD *socket;
    unsigned char key[TDI_KEY_BYTES];
};

static const char identity[] = "tandem link 1";

/* ---- the socket ---- */

typedef struct channel {
    int fd;
    int *io_error; /* 0: the peer has closed its side */
    bool ended;
} channel;

/* Says whether to try again later, and keeps why not. */
static int end_transfer(BIO *bio, channel *channel, ssize_t count)
{
    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (count < 0)
        *channel->io_error = errno;
    return (int)count;
}

static int channel_write(BIO *bio, const char *bytes, int size)
{
    channel *channel = BIO_get_data(bio);
    int count = end_transfer(bio, channel, send(channel->fd, bytes, (size_t)size, MSG_NOSIGNAL));
    if (count < 0 && !*channel->io_error)
        BIO_set_retry_write(bio);
    return count;
}

static int channel_read(BIO *bio, char *bytes, int size)
{
    channel *channel = BIO_get_data(bio);
    int count = end_transfer(bio, channel, recv(channel->fd, bytes, (size_t)size, 0));
    if (count < 0 && !*channel->io_error)
        BIO_set_retry_read(bio);
    channel->ended = channel->ended || count == 0;
    return count;
}

static long channel_control(BIO *bio, int command, long number, void *pointer)
{
    const channel *channel = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return channel->ended;
    return command == BIO_CTRL_FLUSH;
}

static int channel_destroy(BIO *bio)
{
    free(BIO_get_data(bio));
    return 1;
}

static BIO_METHOD *make_socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "tandem socket");
    if (!method)
        return NULL;
    BIO_meth_set_write(method, channel_write);
    BIO_meth_set_read(method, channel_read);
    BIO_meth_set_ctrl(method, channel_control);
    BIO_meth_set_destroy(method, channel_destroy);
    return method;
}

static BIO *make_bio(const tdi_security *security, int fd, int *io_error)
{
    channel *made = malloc(sizeof *made);
    BIO *bio = made ? BIO_new(security->socket) : NULL;
    if (!bio) {
        free(made);
        return NULL;
    }
    *made = (channel){fd, io_error, false};
    BIO_set_data(bio, made);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- the key ---- */

/* The key in OpenSSL's form: a session to resume. Its cipher says which hash goes with the key, SHA-256, and leaves
 * open which of the ciphers with that hash is taken. */
static SSL_SESSION *make_session(SSL *ssl)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const tdi_security *security = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION *session = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    if (session && cipher && SSL_SESSION_set1_master_key(session, security->key, sizeof security->key) &&
        SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* A client's. */
static int offer_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *id_size, SSL_SESSION **session)
{
    if (hash && !EVP_MD_is_a(hash, "SHA256")) { /* the server has asked for another, for which there is no key */
        *session = NULL;
        return 1;
    }
    *id = (const unsigned char *)identity;
    *id_size = sizeof identity - 1;
    *session = make_session(ssl);
    return *session != NULL;
}

/* A server's. Of a key with another name it knows nothing. */
static int find_key(SSL *ssl, const unsigned char *id, size_t id_size, SSL_SESSION **session)
{
    *session = NULL;
    if (id_size != sizeof identity - 1 || memcmp(id, identity, id_size) != 0)
        return 1;
    *session = make_session(ssl);
    return *session != NULL;
}

/* ---- the whole ---- */

static bool aes_is_fast(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("aes");
#else
    return true;
#endif
}

static bool configure(tdi_security *security)
{
    SSL_CTX *context = security->context;
    const char *ciphers = aes_is_fast() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                        : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    SSL_CTX_set_app_data(context, security);
    SSL_CTX_set_psk_use_session_callback(context, offer_key);
    SSL_CTX_set_psk_find_session_callback(context, find_key);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_max_early_data(context, 0);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) && SSL_CTX_set_ciphersuites(context, ciphers) &&
           (SSL_CTX_set1_groups_list(context, "X25519:P-256") || SSL_CTX_set1_groups_list(context, "P-256")) &&
           SSL_CTX_set_num_tickets(context, 0);
}

static td_status set_up(tdi_security *security, const tdi_secret *secret, const char *run, tdi_error *error)
{
    TDI_TRY(tdi_secret_key(secret, run, security->key, error));
    security->socket = make_socket_method();
    security->context = SSL_CTX_new(TLS_method());
    if (security->socket && security->context && configure(security))
        return TD_OK;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return tdi_fail(error, TD_UNSUPPORTED, "OpenSSL cannot be set up for TLS 1.3 here: %s",
                    reason ? reason : "it does not say why");
}

td_status tdi_security_create(const tdi_secret *secret, const char *run, tdi_security **security, tdi_error *error)
{
    *security = calloc(1, sizeof **security);
    if (!*security)
        return tdi_no_memory(error);
    ERR_clear_error();
    td_status status = set_up(*security, secret, run, error);
    ERR_clear_error();
    if (status != TD_OK) {
        tdi_security_free(*security);
        *security = NULL;
    }
    return status;
}

void tdi_security_free(tdi_security *security)
{
    if (!security)
        return;
    SSL_CTX_free(security->context);
    BIO_meth_free(security->socket);
    explicit_bzero(security->key, sizeof security->key);
    free(security);
}

SSL *tdi_security_connection(tdi_security *security, int fd, bool server, int *io_error)
{
    SSL *ssl = SSL_new(security->context);
    BIO *bio = ssl ? make_bio(security, fd, io_error) : NULL;
    if (!bio) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_bio(ssl, bio, bio);
    if (server) {
        SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL); /* it has no certificates to ask for */
        SSL_set_accept_state(ssl);
    } else
        SSL_set_connect_state(ssl);
    return ssl;
}
