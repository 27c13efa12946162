/* The limits of control groups, in trees of files as the kernel shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cgroup.h"
#include "data/folder.h"

/* The file `name`, and the folders above it. */
static void put(const folder *in, const char *name, const char *text)
{
    char above[64];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(above, sizeof above, "%.*s", (int)(slash - name), name);
        mkdir(folder_path(in, above), 0777);
    }
    folder_write(in, name, text, strlen(text));
}

static void expect(const folder *in, int64_t cores, int64_t bytes)
{
    tdi_cgroup_limits limits = tdi_cgroup_limits_of(folder_path(in, "membership"), in->path);
    assert_int_equal(limits.cores, cores);
    assert_int_equal(limits.bytes, bytes);
}

static void nothing_limits(void **state)
{
    const folder *in = *state;
    expect(in, 0, 0); /* no file at all */
    put(in, "membership", "0::/\n");
    expect(in, 0, 0);
    put(in, "membership", "");
    expect(in, 0, 0);
    put(in, "membership", "neither\nnor:\n\n0:");
    expect(in, 0, 0);
}

static void version_2(void **state)
{
    const folder *in = *state;
    put(in, "membership", "0::/a/b c:d\n");
    put(in, "a/b c:d/cpu.max", "max 100000\n");
    put(in, "a/b c:d/memory.max", "max\n");
    expect(in, 0, 0);
    put(in, "a/b c:d/cpu.max", "250000 100000\n");
    put(in, "a/b c:d/memory.max", "3000000000\n");
    expect(in, 3, 3000000000);
    put(in, "a/cpu.max", "100000 100000\n"); /* what is above limits too */
    put(in, "memory.max", "2000000000\n");
    expect(in, 1, 2000000000);
    put(in, "b/cpu.max", "1000 100000\n"); /* others' does not */
    expect(in, 1, 2000000000);
}

static void version_1(void **state)
{
    const folder *in = *state;
    put(in, "membership", "4:memory:/one/two\n2:cpu,cpuacct:/one\n1:name=systemd:/\n0::/\n");
    put(in, "cpu/one/cpu.cfs_quota_us", "-1\n");
    put(in, "cpu/one/cpu.cfs_period_us", "100000\n");
    put(in, "memory/one/two/memory.limit_in_bytes", "9223372036854771712\n");
    expect(in, 0, 9223372036854771712);
    put(in, "cpu/one/cpu.cfs_quota_us", "150000\n");
    put(in, "memory/one/memory.limit_in_bytes", "1000000\n");
    expect(in, 2, 1000000);
}

/* Inside, a container's own group is the root, whatever path the host gave it. */
static void version_1_in_a_container(void **state)
{
    const folder *in = *state;
    put(in, "membership", "9:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n");
    put(in, "cpu/cpu.cfs_quota_us", "50000\n");
    put(in, "cpu/cpu.cfs_period_us", "100000\n");
    put(in, "memory/memory.limit_in_bytes", "5000000\n");
    expect(in, 1, 5000000);
}

static void nonsense_limits_nothing(void **state)
{
    const folder *in = *state;
    put(in, "membership", "0::/a\n7:cpu:/a\n8:memory:/a\n");
    put(in, "a/cpu.max", "many few\n");
    put(in, "a/memory.max", "\n");
    put(in, "cpu/a/cpu.cfs_quota_us", "100000\n"); /* without a period */
    put(in, "memory/a/memory.limit_in_bytes", "-5\n");
    expect(in, 0, 0);
    put(in, "a/cpu.max", "9223372036854775807 1\n");
    expect(in, 4096, 0);
    put(in, "a/cpu.max", "100000 0\n");
    expect(in, 0, 0);
}

static void long_paths(void **state)
{
    const folder *in = *state;
    char line[6000];
    snprintf(line, sizeof line, "0::/%05000d\n5:memory:/a\n", 0);
    put(in, "membership", line);
    put(in, "memory/a/memory.limit_in_bytes", "77\n");
    expect(in, 0, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_limits, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(version_2, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(version_1, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(version_1_in_a_container, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(nonsense_limits_nothing, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(long_paths, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
