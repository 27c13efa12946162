/* The limits of control groups, in trees of files as the kernel shows them. */
#define _GNU_SOURCE
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cgroup.h"

static char root[] = "/tmp/tandem-cgroup-XXXXXX";
static char membership[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/tandem-cgroup-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(membership, sizeof membership, "%s/membership", root);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The file root/name, and the folders above it. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect(int64_t cores, int64_t bytes)
{
    tdi_cgroup_limits limits = tdi_cgroup_limits_of(membership, root);
    assert_int_equal(limits.cores, cores);
    assert_int_equal(limits.bytes, bytes);
}

static void nothing_limits(void **state)
{
    (void)state;
    expect(0, 0); /* no file at all */
    put("membership", "0::/\n");
    expect(0, 0);
    put("membership", "");
    expect(0, 0);
    put("membership", "neither\nnor:\n\n0:");
    expect(0, 0);
}

static void version_2(void **state)
{
    (void)state;
    put("membership", "0::/a/b c:d\n");
    put("a/b c:d/cpu.max", "max 100000\n");
    put("a/b c:d/memory.max", "max\n");
    expect(0, 0);
    put("a/b c:d/cpu.max", "250000 100000\n");
    put("a/b c:d/memory.max", "3000000000\n");
    expect(3, 3000000000);
    put("a/cpu.max", "100000 100000\n"); /* what is above limits too */
    put("memory.max", "2000000000\n");
    expect(1, 2000000000);
    put("b/cpu.max", "1000 100000\n"); /* others' does not */
    expect(1, 2000000000);
}

static void version_1(void **state)
{
    (void)state;
    put("membership", "4:memory:/one/two\n2:cpu,cpuacct:/one\n1:name=systemd:/\n0::/\n");
    put("cpu/one/cpu.cfs_quota_us", "-1\n");
    put("cpu/one/cpu.cfs_period_us", "100000\n");
    put("memory/one/two/memory.limit_in_bytes", "9223372036854771712\n");
    expect(0, 9223372036854771712);
    put("cpu/one/cpu.cfs_quota_us", "150000\n");
    put("memory/one/memory.limit_in_bytes", "1000000\n");
    expect(2, 1000000);
}

/* Inside, a container's own group is the root, whatever path the host gave it. */
static void version_1_in_a_container(void **state)
{
    (void)state;
    put("membership", "9:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n");
    put("cpu/cpu.cfs_quota_us", "50000\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    put("memory/memory.limit_in_bytes", "5000000\n");
    expect(1, 5000000);
}

static void nonsense_limits_nothing(void **state)
{
    (void)state;
    put("membership", "0::/a\n7:cpu:/a\n8:memory:/a\n");
    put("a/cpu.max", "many few\n");
    put("a/memory.max", "\n");
    put("cpu/a/cpu.cfs_quota_us", "100000\n"); /* without a period */
    put("memory/a/memory.limit_in_bytes", "-5\n");
    expect(0, 0);
    put("a/cpu.max", "9223372036854775807 1\n");
    expect(4096, 0);
    put("a/cpu.max", "100000 0\n");
    expect(0, 0);
}

static void long_paths(void **state)
{
    (void)state;
    char line[6000];
    snprintf(line, sizeof line, "0::/%05000d\n5:memory:/a\n", 0);
    put("membership", line);
    put("memory/a/memory.limit_in_bytes", "77\n");
    expect(0, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_limits, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1_in_a_container, make_root, remove_root),
        cmocka_unit_test_setup_teardown(nonsense_limits_nothing, make_root, remove_root),
        cmocka_unit_test_setup_teardown(long_paths, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
