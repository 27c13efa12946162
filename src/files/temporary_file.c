/* temporary_file.c - files that are unlinked as soon as they are made. */
#define _GNU_SOURCE
#include "files/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size_limit.h"

static const char *folder(void)
{
    const char *named = getenv("TMPDIR");
    return named && named[0] == '/' ? named : "/var/tmp";
}

static td_status failed(const char *what, tdi_error *error)
{
    return tdi_fail(error, TD_IO,
                    "%s: cannot be put into a temporary file in %s: %s; name a folder with room by TMPDIR", what,
                    folder(), strerror(errno));
}

td_status tdi_temporary_open(const char *what, int *fd, tdi_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tandem-XXXXXX", folder());
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return failed(what, error);
    unlink(path);
    return TD_OK;
}

td_status tdi_temporary_write(int fd, const void *bytes, size_t size, const char *what, tdi_error *error)
{
    return tdi_write_whole(fd, bytes, size, NULL) == size ? TD_OK : failed(what, error);
}
