/* machine.c - cores and memory, as the scheduler and the cgroup allow them; and who else uses them. */
#define _GNU_SOURCE
#include "base/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"

static long long quota_at(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    long long quota, period;
    int read = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    if (read != 2 || quota <= 0 || period <= 0)
        return 0;
    long long cores = (quota + period - 1) / period;
    return cores > 4096 ? 4096 : cores;
}

static long long bytes_at(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    long long bytes;
    int read = fscanf(file, "%lld", &bytes); /* or "max" */
    fclose(file);
    return read == 1 && bytes > 0 ? bytes : 0;
}

static void own_cgroup(char *path, size_t size)
{
    path[0] = '\0';
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return;
    char line[512];
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(path, size, "/sys/fs/cgroup%s", line + 3);
        }
    fclose(file);
}

/* The smallest limit (cgroup v2) of the process's group and those above it; 0: none. */
static long long cgroup_limit(const char *name, long long (*limit_at)(const char *path))
{
    char path[544], file[600];
    own_cgroup(path, sizeof path);
    long long least = 0;
    while (strlen(path) >= strlen("/sys/fs/cgroup")) {
        snprintf(file, sizeof file, "%s/%s", path, name);
        long long limit = limit_at(file);
        if (limit && (!least || limit < least))
            least = limit;
        *strrchr(path, '/') = '\0';
    }
    return least;
}

int tdi_cores_allowed(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    long long quota = cgroup_limit("cpu.max", quota_at);
    if (quota && quota < cores)
        cores = (int)quota;
    return cores < 1 ? 1 : cores;
}

static int64_t at_most(int64_t bytes, const struct rlimit *limit, int64_t used)
{
    bool limited = limit->rlim_cur < (rlim_t)INT64_MAX && (int64_t)limit->rlim_cur - used < bytes;
    return limited ? (int64_t)limit->rlim_cur - used : bytes;
}

/* What of its memory a process has taken: resident, addresses, private ones. */
typedef struct memory_used {
    int64_t resident, space, data;
} memory_used;

static memory_used memory_of_process(void)
{
    long long pages[3] = {0};
    FILE *file = fopen("/proc/self/statm", "re"); /* size resident shared text 0 data 0 */
    if (file && fscanf(file, "%lld %lld %*d %*d %*d %lld", &pages[0], &pages[1], &pages[2]) != 3)
        memset(pages, 0, sizeof pages);
    if (file)
        fclose(file);
    int64_t page = sysconf(_SC_PAGESIZE);
    return (memory_used){pages[1] * page, pages[0] * page, pages[2] * page};
}

/* The smallest of all limits, less what is used of each. */
static int64_t memory_beyond(const memory_used *used)
{
    int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    long long limit = cgroup_limit("memory.max", bytes_at);
    struct rlimit space = {.rlim_cur = RLIM_INFINITY}, data = space;
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_DATA, &data);
    int64_t left = (limit && limit < machine ? limit : machine) - used->resident;
    left = at_most(left, &space, used->space);
    return at_most(left, &data, used->data);
}

int64_t tdi_memory_allowed(void)
{
    return memory_beyond(&(memory_used){0});
}

bool tdi_memory_holds(int64_t bytes)
{
    memory_used used = memory_of_process();
    return bytes <= memory_beyond(&used) / 2;
}

td_status tdi_memory_short(tdi_error *error, const char *what, size_t bytes)
{
    return tdi_fail(
        error, TD_NO_MEMORY,
        "out of memory: %s needs %.1f MB more, of %.1f MB that this process may use in all; try a smaller batch", what,
        (double)bytes * 1e-6, (double)tdi_memory_allowed() * 1e-6);
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
