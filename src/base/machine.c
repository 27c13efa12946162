/* machine.c - cores and memory, as the scheduler and the cgroup allow them; and who else uses them. */
#define _GNU_SOURCE
#include "base/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/text.h"

static tdi_cgroup_limits cgroup_limits(void)
{
    return tdi_cgroup_limits_of("/proc/self/cgroup", "/sys/fs/cgroup");
}

int tdi_cores_allowed(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int64_t quota = cgroup_limits().cores;
    if (quota && quota < cores)
        cores = (int)quota;
    return cores < 1 ? 1 : cores;
}

static int64_t at_most(int64_t bytes, const struct rlimit *limit, int64_t used)
{
    bool limited = limit->rlim_cur < (rlim_t)INT64_MAX && (int64_t)limit->rlim_cur - used < bytes;
    return limited ? (int64_t)limit->rlim_cur - used : bytes;
}

/* What a process has taken: memory of its own, without the pages of files, which the system takes back when it needs
 * them, nor those that it shares; addresses; private ones. */
typedef struct memory_used {
    int64_t own, space, data;
} memory_used;

static memory_used memory_of_process(void)
{
    long long pages[4] = {0};
    FILE *file = fopen("/proc/self/statm", "re"); /* size resident shared text 0 data 0 */
    if (file && fscanf(file, "%lld %lld %lld %*d %*d %lld", &pages[0], &pages[1], &pages[2], &pages[3]) != 4)
        memset(pages, 0, sizeof pages);
    if (file)
        fclose(file);
    int64_t page = sysconf(_SC_PAGESIZE);
    return (memory_used){(pages[1] - pages[2]) * page, pages[0] * page, pages[3] * page};
}

/* The smallest of all limits, less what is used of each. */
static int64_t memory_beyond(const memory_used *used)
{
    int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t limit = cgroup_limits().bytes;
    struct rlimit space = {.rlim_cur = RLIM_INFINITY}, data = space;
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_DATA, &data);
    int64_t left = (limit && limit < machine ? limit : machine) - used->own;
    left = at_most(left, &space, used->space);
    return at_most(left, &data, used->data);
}

int64_t tdi_memory_allowed(void)
{
    return memory_beyond(&(memory_used){0});
}

int64_t tdi_memory_left(void)
{
    memory_used used = memory_of_process();
    return memory_beyond(&used);
}

bool tdi_memory_suffices(size_t bytes)
{
    return bytes <= INT64_MAX && (int64_t)bytes <= tdi_memory_left();
}

bool tdi_memory_holds(int64_t bytes)
{
    return bytes <= tdi_memory_left() / 2;
}

td_status tdi_memory_short(tdi_error *error, const char *what, size_t bytes, const char *try)
{
    return tdi_fail(error, TD_NO_MEMORY,
                    "out of memory: %s needs %.1f MB more, of %.1f MB that this process may use in all; %s", what,
                    (double)bytes * 1e-6, (double)tdi_memory_allowed() * 1e-6, try);
}

/* ---- company ---- */

/* A machine that does nothing else now and then does some housekeeping; a busy process takes its turn every few
 * milliseconds. */
static const double harmless = 20; /* interruptions a second */

static long interruptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

tdi_watch tdi_watch_begin(void)
{
    return (tdi_watch){tdi_seconds(), interruptions()};
}

bool tdi_watch_was_disturbed(const tdi_watch *watch)
{
    return (double)(interruptions() - watch->interruptions) > harmless * (tdi_seconds() - watch->began);
}
