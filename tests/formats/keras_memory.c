/* keras_memory.c - saving takes no memory for the model's arrays, and loading none but the model's own: the kernel
 * counts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/sanitized.h"

enum { FEATURES = 2048, UNITS = 2048, ARRAY = FEATURES * UNITS * 4, ALLOWED = 6 << 20 };
_Static_assert(2 * ALLOWED < ARRAY, "the limit says nothing of smaller arrays");

static long data_kilobytes(void)
{
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmData: %ld", &value);
    if (file)
        fclose(file);
    return value;
}

/* Allows the process `bytes` beyond what it has; returns the limit of before. */
static struct rlimit allow(int64_t bytes)
{
    struct rlimit old, allowed;
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    allowed = old;
    allowed.rlim_cur = (rlim_t)(data_kilobytes() * 1024 + bytes);
    assert_int_equal(setrlimit(RLIMIT_DATA, &allowed), 0);
    return old;
}

static td_model *large(td_context *context)
{
    td_tensor *x = td_input(context, TD_SHAPE(FEATURES));
    td_model *model = td_model_create(x, td_dense(x, UNITS), .seed = 1);
    td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    return model;
}

static float *weights_of(td_model *model)
{
    float *values = malloc(ARRAY);
    assert_int_equal(td_get_weight(model, 0, values, (size_t)FEATURES * UNITS), TD_OK);
    return values;
}

static void assert_same_weights(td_model *a, td_model *b)
{
    float *first = weights_of(a), *second = weights_of(b);
    assert_memory_equal(first, second, ARRAY);
    free(first);
    free(second);
}

static void test_saving_holds_no_arrays(void **state)
{
    (void)state;
    if (SANITIZED) /* memory is theirs */
        skip();
    td_context *context = td_context_create(NULL);
    td_model *model = large(context);
    struct rlimit old = allow(ALLOWED);
    td_status saved = td_save(model, scratch_path("large.keras"));
    td_status weights = td_save_weights(model, scratch_path("large.weights.h5"));
    setrlimit(RLIMIT_DATA, &old);
    if (saved != TD_OK || weights != TD_OK)
        fail_msg("%s", td_error(context));
    td_context_free(context);
}

static void test_loading_holds_the_model(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    td_context *context = td_context_create(NULL);
    td_model *made = large(context);
    struct rlimit old = allow(3 * (int64_t)ARRAY + ALLOWED); /* the weights, and Adam's two slots */
    td_model *loaded = td_load(context, scratch_path("large.keras"));
    setrlimit(RLIMIT_DATA, &old);
    if (!loaded)
        fail_msg("%s", td_error(context));
    assert_same_weights(made, loaded);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saving_holds_no_arrays),
        cmocka_unit_test(test_loading_holds_the_model),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
