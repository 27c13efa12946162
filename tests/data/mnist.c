/* The real MNIST, where $TANDEM_DATA holds it; and where td_mnist looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

static bool has_mnist(void)
{
    struct stat facts;
    char path[4096];
    const char *data = getenv("TANDEM_DATA");
    snprintf(path, sizeof path, "%s/mnist", data ? data : "");
    return data && stat(path, &facts) == 0;
}

/* Counts of the digits, and the sums of all values, are those of the original files. */
static void check_part(const char *part, int64_t samples, double mean, const int counts[10])
{
    td_context *context = td_context_create(NULL);
    td_data *data = td_mnist(part);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), samples);
    int seen[10] = {0};
    double sum = 0;
    for (int64_t i = 0; i < samples; i++) {
        float x[28 * 28], y;
        assert_int_equal(td_data_read(context, data, &i, 1, x, &y), TD_OK);
        assert_true(y >= 0 && y <= 9);
        seen[(int)y]++;
        for (int j = 0; j < 28 * 28; j++)
            sum += (double)x[j];
    }
    assert_memory_equal(seen, counts, sizeof seen);
    assert_true(sum / ((double)samples * 784) > mean - 5e-5 && sum / ((double)samples * 784) < mean + 5e-5);
    td_data_release(data);
    td_context_free(context);
}

static void training_part(void **state)
{
    (void)state;
    check_part("train", 60000, 0.13066, (int[]){5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
}

static void test_part(void **state)
{
    (void)state;
    check_part("test", 10000, 0.13251, (int[]){980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
}

static void other_parts_are_refused(void **state)
{
    (void)state;
    td_data *data = td_mnist("validation");
    assert_non_null(strstr(td_data_error(data), "neither \"train\" nor \"test\""));
    td_data_release(data);
    data = td_mnist(NULL);
    assert_non_null(td_data_error(data));
    td_data_release(data);
}

/* Sets or unsets a variable, and gives back a copy of what it was. */
static char *exchange(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *copy = old ? strdup(old) : NULL;
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    return copy;
}

static void absence_is_explained(void **state)
{
    (void)state;
    const char *const names[] = {"TANDEM_DATA", "XDG_CACHE_HOME", "HOME"};
    const char *const values[] = {"/nonexistent/data", NULL, "/nonexistent/home"};
    char *old[3];
    for (int i = 0; i < 3; i++)
        old[i] = exchange(names[i], values[i]);
    td_data *data = td_mnist("train");
    setenv("XDG_CACHE_HOME", "/nonexistent/cache", 1);
    td_data *cached = td_mnist("train");
    for (int i = 0; i < 3; i++) {
        free(exchange(names[i], old[i]));
        free(old[i]);
    }
    assert_non_null(strstr(td_data_error(data), "/nonexistent/home/.cache/tandem/mnist"));
    assert_non_null(strstr(td_data_error(data), "scripts/demo"));
    assert_non_null(strstr(td_data_error(cached), "/nonexistent/cache/tandem/mnist"));
    td_data_release(data);
    td_data_release(cached);
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {
        cmocka_unit_test(other_parts_are_refused),
        cmocka_unit_test(absence_is_explained),
    };
    const struct CMUnitTest with_mnist[] = {
        cmocka_unit_test(training_part),
        cmocka_unit_test(test_part),
    };
    int failed = cmocka_run_group_tests(anywhere, NULL, NULL);
    if (has_mnist())
        return failed + cmocka_run_group_tests(with_mnist, NULL, NULL);
    print_message("skipped: $TANDEM_DATA/mnist is not there\n");
    return failed ? failed : 77;
}
