/* secret.c - files of secrets, and the key of a run. */
#define _GNU_SOURCE
#include "link/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <tandem/cluster.h>
#include <unistd.h>

#include "base/context.h"

static td_status check_facts(const struct stat *facts, const char *path, tdi_error *error)
{
    if (!S_ISREG(facts->st_mode))
        return tdi_fail(error, TD_BAD_FILE, "secret file \"%s\": it is %s, not a file", path,
                        S_ISDIR(facts->st_mode) ? "a folder" : "a pipe or a device");
    if (facts->st_mode & (S_IRWXG | S_IRWXO))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "secret file \"%s\": users other than its owner have rights to it (mode %04o); chmod 600 it, "
                        "or make a new one if they may have read it",
                        path, (unsigned)facts->st_mode & 07777);
    if (facts->st_size > TDI_SECRET_LONGEST)
        return tdi_fail(
            error, TD_BAD_FILE,
            "secret file \"%s\": expected at most %d bytes, got %lld; `tandem cluster secret FILE` makes one", path,
            TDI_SECRET_LONGEST, (long long)facts->st_size);
    return TD_OK;
}

static td_status read_bytes(int fd, const char *path, tdi_secret *secret, tdi_error *error)
{
    ssize_t count = 1;
    while (count > 0 && secret->size < sizeof secret->bytes) {
        count = read(fd, secret->bytes + secret->size, sizeof secret->bytes - secret->size);
        secret->size += count > 0 ? (size_t)count : 0;
    }
    if (count < 0)
        return tdi_fail(error, TD_IO, "secret file \"%s\": cannot be read: %s", path, strerror(errno));
    if (secret->size < TDI_SECRET_SHORTEST)
        return tdi_fail(error, TD_BAD_FILE,
                        "secret file \"%s\": expected at least %d bytes, got %zu: so short a secret can be guessed; "
                        "`tandem cluster secret FILE` makes one",
                        path, TDI_SECRET_SHORTEST, secret->size);
    return TD_OK;
}

static td_status read_open_file(int fd, const char *path, tdi_secret *secret, tdi_error *error)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return tdi_fail(error, TD_IO, "secret file \"%s\": cannot be read: %s", path, strerror(errno));
    TDI_TRY(check_facts(&facts, path, error));
    return read_bytes(fd, path, secret, error);
}

td_status tdi_secret_read(const char *path, tdi_secret *secret, tdi_error *error)
{
    *secret = (tdi_secret){.size = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tdi_fail(error, errno == ENOENT ? TD_NOT_FOUND : TD_IO, "secret file \"%s\": cannot be opened: %s%s",
                        path, strerror(errno), errno == ENOENT ? "; `tandem cluster secret FILE` makes one" : "");
    td_status status = read_open_file(fd, path, secret, error);
    close(fd);
    if (status != TD_OK)
        tdi_secret_forget(secret);
    return status;
}

td_status tdi_secret_make(tdi_secret *secret, tdi_error *error)
{
    *secret = (tdi_secret){.size = TDI_SECRET_MADE};
    if (getentropy(secret->bytes, secret->size) != 0)
        return tdi_fail(error, TD_IO, "the system gives no random bytes: %s", strerror(errno));
    return TD_OK;
}

static td_status fail_to_write(const char *path, int reason, tdi_error *error)
{
    if (reason == EEXIST)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "\"%s\" exists, and is left as it is: a cluster may be using it; give another name, or remove it", path);
    return tdi_fail(error, reason == ENOENT ? TD_NOT_FOUND : TD_IO, "cannot write \"%s\": %s", path, strerror(reason));
}

/* The umask can take rights from a file's owner, too. */
static bool write_bytes(int fd, const tdi_secret *secret)
{
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0)
        return false;
    ssize_t count = write(fd, secret->bytes, secret->size);
    if (count >= 0 && (size_t)count < secret->size)
        errno = ENOSPC;
    return count == (ssize_t)secret->size && fsync(fd) == 0;
}

td_status tdi_secret_write(const char *path, const tdi_secret *secret, tdi_error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return fail_to_write(path, errno, error);
    int reason = write_bytes(fd, secret) ? 0 : errno;
    if (close(fd) != 0 && !reason)
        reason = errno;
    if (!reason)
        return TD_OK;
    unlink(path);
    return fail_to_write(path, reason, error);
}

static bool derive(EVP_KDF_CTX *context, const tdi_secret *secret, const char *run, unsigned char key[TDI_KEY_BYTES])
{
    static char salt[] = "tandem link 1", digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret->bytes, secret->size),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, sizeof salt - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)run, strlen(run)),
        OSSL_PARAM_construct_end(),
    };
    return context && EVP_KDF_derive(context, key, TDI_KEY_BYTES, params) > 0;
}

td_status tdi_secret_key(const tdi_secret *secret, const char *run, unsigned char key[TDI_KEY_BYTES], tdi_error *error)
{
    EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = hkdf ? EVP_KDF_CTX_new(hkdf) : NULL;
    bool derived = derive(context, secret, run, key);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(hkdf);
    return derived ? TD_OK : tdi_fail(error, TD_INTERNAL, "OpenSSL cannot derive a key by HKDF-SHA256");
}

void tdi_secret_forget(tdi_secret *secret)
{
    explicit_bzero(secret, sizeof *secret);
}

td_status td_cluster_write_secret(td_context *context, const char *path)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!path || !*path)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT,
                        "td_cluster_write_secret: expected a path, got %s; give the name of a new file",
                        path ? "an empty one" : "NULL");
    tdi_secret secret;
    td_status status = tdi_secret_make(&secret, &context->error);
    if (status == TD_OK)
        status = tdi_secret_write(path, &secret, &context->error);
    tdi_secret_forget(&secret);
    return status;
}
