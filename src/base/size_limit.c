/* size_limit.c - SIGXFSZ, which is sent to the thread that writes. */
#define _GNU_SOURCE
#include "base/size_limit.h"

#include <errno.h>
#include <time.h>

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
