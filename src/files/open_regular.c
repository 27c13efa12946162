/* open_regular.c - opens regular files. */
#define _GNU_SOURCE
#include "files/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static td_status check(int fd, const char *path, int64_t *size, tdi_error *error)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return tdi_fail(error, TD_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return tdi_fail(error, TD_BAD_FILE, "%s: it is %s, not a file", path,
                        S_ISDIR(facts.st_mode) ? "a folder" : "a pipe or a device");
    if (size)
        *size = facts.st_size;
    return TD_OK;
}

td_status tdi_regular_open(const char *path, int *fd, int64_t *size, tdi_error *error)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return tdi_fail(error, errno == ENOENT ? TD_NOT_FOUND : TD_IO, "%s: cannot be opened: %s", path,
                        strerror(errno));
    td_status status = check(*fd, path, size, error);
    if (status != TD_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}
