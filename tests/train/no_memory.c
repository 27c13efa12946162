/* Any allocation of a first step may fail: the call says so or does without, and the next one works. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "files/scratch.h"
#include "runtime/runtime_struct.h"
#include "support/devices.h"
#include "support/sanitized.h"
#include "support/small.h"

enum { ROWS = 24, FEW = 7 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

#if !SANITIZED
static float predictions[ROWS * SMALL_CLASSES];
static bool other_configuration; /* is gone, in the end */
static atomic_int left;          /* allocations until one fails; 0: none does */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int fails(void)
{
    return atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t items, size_t size)
{
    return fails() ? NULL : __libc_calloc(items, size);
}

void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = fails() ? NULL : __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

/* All answers about whole steps in the file: not what the rules say, and not what a run has found that could not
 * read it. */
static void take_other_configuration(void)
{
    const char *machine, *key;
    json_t *of_machine, *choice, *root = json_load_file(scratch_path("choices.json"), 0, NULL);
    assert_non_null(root);
    json_object_foreach(json_object_get(root, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, choice)
    {
        json_object_set_new(choice, "unsure", json_false());
        if (strncmp(key, "configuration", 13) == 0)
            json_object_set(choice, "take", json_array_get(json_array_get(json_object_get(choice, "us"), 1), 0));
    }
    assert_int_equal(json_dump_file(root, scratch_path("choices.json"), 0), 0);
    json_decref(root);
}

/* 0: there are fewer allocations than `nth`. */
static int check_one(small_kind kind, td_strategy strategy, int nth)
{
    if (other_configuration)
        take_other_configuration();
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, kind, td_adam(), strategy);
    td_logs logs;
    assert_string_equal(td_error(context), "");
    atomic_store(&left, nth);
    td_status status = td_train_on_batch(model, ROWS, x, y, &logs);
    int failed = atomic_exchange(&left, 0) == 0;
    if (status != TD_OK)
        assert_int_equal(status, TD_NO_MEMORY);
    td_clear_error(context);
    int64_t next = other_configuration ? ROWS : FEW; /* the file has an answer for ROWS */
    assert_int_equal(td_train_on_batch(model, next, x, y, &logs), TD_OK);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    assert_int_equal(td_predict_on_batch(model, FEW, x, predictions), TD_OK);
    const tdi_runtime *runtime = tdi_runtime_own(model);
    const tdi_tuned *tuned = runtime ? runtime->tuned : NULL;
    assert_true(failed || !other_configuration || (tuned && tuned->chosen == 1));
    td_context_free(context);
    return failed;
}

static void check(small_kind kind, td_strategy strategy)
{
    int n = 1;
    while (check_one(kind, strategy, n))
        n++;
    assert_true(n > 10);
}
#else
static void check(small_kind kind, td_strategy strategy)
{
    (void)kind;
    (void)strategy;
    print_message("skipped: a sanitizer has the allocators\n");
    skip();
}
#endif

static void test_one_device(void **state)
{
    (void)state;
    check(SMALL_SYNC, (td_strategy){.devices = test_devices(1)});
}

static void test_two_devices(void **state)
{
    (void)state;
    check(SMALL_SYNC, (td_strategy){.devices = test_devices(2), .shards = 2});
}

/* Another configuration than the rules' is chosen. */
static void test_other_configuration(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2 || tdi_cores_allowed() > ROWS)
        skip(); /* there is one configuration only */
#if !SANITIZED
    setenv("TANDEM_CACHE", scratch_folder, 1);
    for (int i = 0; i < 2; i++) { /* the other configuration has kernels of its own to ask for */
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = test_devices(0)});
        td_logs logs;
        assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
        td_context_free(context);
        take_other_configuration();
    }
    other_configuration = true;
#endif
    check(SMALL_MLP, (td_strategy){.devices = test_devices(0)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_device), cmocka_unit_test(test_two_devices),
                                       cmocka_unit_test(test_other_configuration)};
    small_data(ROWS, x, y);
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
