/* ucx_mark.c - marks: numbers in a page of memory that peers on this host look at, to know whether a fabric is open.
 *
 * UCX finds a peer's shared memory by its process and descriptor, /proc/<pid>/fd/<number>, at the time when it attaches
 * to it. When the peer has closed its fabric by then, the descriptor may be another memory's, of the next view. So a
 * peer is joined only while its mark says that it is open, before UCX has attached and after. The page of marks is
 * found in the same way, but its descriptor stays as long as the engine, and a wrong one is told by what it is: it must
 * be memory of that size which is sealed, so that reading it cannot fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/ucx_struct.h"

enum { PAGE = 4096, LINE = 64, MARKS = PAGE / LINE }; /* each has a cache line */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void *map_page(int fd, int protection)
{
    void *page = mmap(NULL, PAGE, protection, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

td_status tdi_ucx_marks_open(tdi_ucx_marks *marks, tdi_error *error)
{
    marks->descriptor = memfd_create("tandem marks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool made = marks->descriptor >= 0 && ftruncate(marks->descriptor, PAGE) == 0 &&
                fcntl(marks->descriptor, F_ADD_SEALS, SEALS) == 0;
    marks->page = made ? map_page(marks->descriptor, PROT_READ | PROT_WRITE) : NULL;
    if (marks->page)
        return TD_OK;
    if (marks->descriptor >= 0)
        close(marks->descriptor);
    return tdi_fail(error, TD_UNSUPPORTED, "a page to share with processes of this host could not be made: %s",
                    strerror(errno));
}

void tdi_ucx_marks_close(tdi_ucx_marks *marks)
{
    if (!marks->page)
        return;
    munmap(marks->page, PAGE);
    close(marks->descriptor);
    marks->page = NULL;
}

_Atomic uint64_t *tdi_ucx_mark_at(const tdi_ucx_marks *marks, uint32_t number)
{
    return (_Atomic uint64_t *)(void *)((char *)marks->page + number % MARKS * LINE);
}

static bool is_page_of_marks(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == PAGE &&
           (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

bool tdi_ucx_marks_see(tdi_ucx_marks *marks, uint32_t pid, uint32_t descriptor)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", pid, descriptor);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    marks->page = fd >= 0 && is_page_of_marks(fd) ? map_page(fd, PROT_READ) : NULL;
    marks->descriptor = fd;
    if (!marks->page && fd >= 0)
        close(fd);
    return marks->page != NULL;
}
