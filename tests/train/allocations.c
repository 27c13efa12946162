/* Once a batch's shape has been seen, a step allocates nothing: every allocator of the process is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/small.h"

static atomic_int counting, allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INTERPOSED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INTERPOSED 0
#endif
#endif
#ifndef INTERPOSED
#define INTERPOSED 1

static void count(void)
{
    if (atomic_load(&counting))
        atomic_fetch_add(&allocations, 1);
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size)
{
    count();
    return __libc_calloc(items, size);
}

void *realloc(void *memory, size_t size)
{
    count();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    count();
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
#endif

enum { ROWS = 24 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS], predictions[ROWS * SMALL_CLASSES];

static void steps(td_model *model, int64_t rows)
{
    td_logs logs;
    assert_int_equal(td_train_on_batch(model, rows, x, y, &logs), TD_OK);
    assert_int_equal(td_test_on_batch(model, rows, x, y, &logs), TD_OK);
    assert_int_equal(td_predict_on_batch(model, rows, x, predictions), TD_OK);
    assert_int_equal(td_compute_gradients(model, rows, x, y, &logs), TD_OK);
    assert_int_equal(td_apply_gradients(model), TD_OK);
}

static void check(const char *devices)
{
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, (small_kind)kind, td_adam(), (td_strategy){.devices = devices});
        assert_string_equal(td_error(context), "");
        steps(model, ROWS);
        steps(model, 7);
        atomic_store(&allocations, 0);
        atomic_store(&counting, 1);
        for (int i = 0; i < 10; i++)
            steps(model, i % 2 ? ROWS : 7);
        atomic_store(&counting, 0);
        assert_int_equal(atomic_load(&allocations), 0);
        td_context_free(context);
    }
}

static void test_the_counter_counts(void **state)
{
    (void)state;
    atomic_store(&allocations, 0);
    atomic_store(&counting, 1);
    void *volatile memory = malloc(10);
    atomic_store(&counting, 0);
    free(memory);
    assert_int_equal(atomic_load(&allocations), 1);
}

static void test_one_device(void **state)
{
    (void)state;
    check("cpu:0");
}

static void test_two_devices(void **state)
{
    (void)state;
    check("cpu:0,cpu:1");
}

static void test_more_devices_than_cores(void **state)
{
    (void)state;
    check("cpu:0,cpu:1,cpu:2,cpu:3,cpu:4");
}

/* A message at a time through a model that keeps its state. */
static void test_a_control_loop(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(1, 8), .batch_size = 1);
    td_model *model = td_model_create(in, td_dense(td_lstm(in, 64, .stateful = TD_YES), 1), .seed = 2);
    td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    assert_string_equal(td_error(context), "");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(td_predict_on_batch(model, 1, x + i, predictions), TD_OK);
        assert_int_equal(td_train_on_batch(model, 1, x + i, y, NULL), TD_OK);
        assert_int_equal(td_reset_states(model), TD_OK);
        if (i == 0) {
            atomic_store(&allocations, 0);
            atomic_store(&counting, 1);
        }
    }
    atomic_store(&counting, 0);
    assert_int_equal(atomic_load(&allocations), 0);
    td_context_free(context);
}

int main(void)
{
    if (!INTERPOSED) {
        print_message("skipped: allocators belong to the sanitizer\n");
        return 77;
    }
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counter_counts), cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_two_devices),        cmocka_unit_test(test_more_devices_than_cores),
        cmocka_unit_test(test_a_control_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
