/* cgroup.c - limits are files in a group's folder: version 2 has one hierarchy of folders, version 1 one for each
 * controller. A container often sees its own group at the root of the mount while its membership names the path that
 * the host knows, so folders that are not there are passed over. */
#define _GNU_SOURCE
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CORES = 4096, PATH_SIZE = 4096 };

/* How many of two numbers the file begins with; "max" is none. */
static int read_numbers(const char *folder, const char *name, long long numbers[2])
{
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    int count = file ? fscanf(file, "%lld %lld", &numbers[0], &numbers[1]) : 0;
    if (file)
        fclose(file);
    return count > 0 ? count : 0;
}

static int64_t cores_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cores = quota / period + (quota % period > 0);
    return cores < MOST_CORES ? cores : MOST_CORES;
}

static int64_t cores_in(const char *folder)
{
    long long both[2], quota[2], period[2];
    if (read_numbers(folder, "cpu.max", both) == 2)
        return cores_of(both[0], both[1]);
    if (read_numbers(folder, "cpu.cfs_quota_us", quota) && read_numbers(folder, "cpu.cfs_period_us", period))
        return cores_of(quota[0], period[0]);
    return 0;
}

static int64_t bytes_in(const char *folder)
{
    long long bytes[2];
    bool limited = read_numbers(folder, "memory.max", bytes) || read_numbers(folder, "memory.limit_in_bytes", bytes);
    return limited && bytes[0] > 0 ? bytes[0] : 0;
}

static void limit(int64_t *least, int64_t to)
{
    if (to && (!*least || to < *least))
        *least = to;
}

/* The group at mount/path and those above it. */
static void add_limits(const char *mount, const char *path, tdi_cgroup_limits *limits)
{
    char folder[PATH_SIZE];
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return;
    for (char *end = folder + strlen(folder); end && end >= folder + strlen(mount); end = strrchr(folder, '/')) {
        *end = '\0';
        limit(&limits->cores, cores_in(folder));
        limit(&limits->bytes, bytes_in(folder));
    }
}

/* A line is id:controllers:path; version 2's names no controllers. */
static void add_line(char *line, const char *root, tdi_cgroup_limits *limits)
{
    char mount[PATH_SIZE], *rest = line;
    strsep(&rest, ":");
    char *controllers = strsep(&rest, ":");
    if (!rest)
        return;
    rest[strcspn(rest, "\n")] = '\0';
    if (!*controllers)
        add_limits(root, rest, limits);
    for (char *name = strsep(&controllers, ","); name && *name; name = strsep(&controllers, ","))
        if ((strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0) &&
            snprintf(mount, sizeof mount, "%s/%s", root, name) < (int)sizeof mount)
            add_limits(mount, rest, limits);
}

tdi_cgroup_limits tdi_cgroup_limits_of(const char *membership, const char *root)
{
    tdi_cgroup_limits limits = {0};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(membership, "re");
    while (file && getline(&line, &size, file) > 0)
        add_line(line, root, &limits);
    if (file)
        fclose(file);
    free(line);
    return limits;
}
