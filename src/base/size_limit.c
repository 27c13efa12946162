/* size_limit.c - SIGXFSZ, which is sent to the thread that writes. */
#define _GNU_SOURCE
#include "base/size_limit.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static sigset_t the_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

void tdi_size_limit_begin(tdi_size_limit *limit)
{
    sigset_t set = the_signal(), pending;
    sigpending(&pending);
    limit->waiting = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set, &limit->before);
}

void tdi_size_limit_end(const tdi_size_limit *limit)
{
    int code = errno;
    sigset_t set = the_signal();
    struct timespec now = {0};
    if (!limit->waiting)
        sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
    errno = code;
}

static ssize_t write_piece(int fd, const void *bytes, size_t size, const int64_t *position, size_t done)
{
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    ssize_t written = position ? pwrite(fd, bytes, size, *position + (int64_t)done) : write(fd, bytes, size);
    tdi_size_limit_end(&limit);
    return written;
}

size_t tdi_write_whole(int fd, const void *bytes, size_t size, const int64_t *position)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write_piece(fd, (const char *)bytes + done, size - done, position, done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            break;
        if (written == 0) {
            errno = ENOSPC;
            break;
        }
        done += (size_t)written;
    }
    return done;
}
