/* Once a batch's shape has been seen, a step allocates nothing: every allocator of the process is counted, but inside
 * oneDNN's calls, which take room for packed operands and give it back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "support/devices.h"
#include "support/sanitized.h"
#include "support/small.h"

#ifdef TANDEM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

static atomic_int counting, allocations, library_calls;
static _Thread_local int in_library;

#if !SANITIZED

static void count(void)
{
    if (atomic_load(&counting) && !in_library)
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

#ifdef TANDEM_ONEDNN
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c,
                         dnnl_dim_t ldc)
{
    dnnl_status_t (*library)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *, dnnl_dim_t,
                             const float *, dnnl_dim_t, float, float *, dnnl_dim_t);
    in_library++;
    *(void **)&library = dlsym(RTLD_NEXT, "dnnl_sgemm");
    dnnl_status_t status = library(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    in_library--;
    atomic_fetch_add(&library_calls, 1);
    return status;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int arguments,
                                     const dnnl_exec_arg_t *argument)
{
    dnnl_status_t (*library)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    in_library++;
    *(void **)&library = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    dnnl_status_t status = library(primitive, stream, arguments, argument);
    in_library--;
    atomic_fetch_add(&library_calls, 1);
    return status;
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
    check(test_devices(1));
}

static void test_two_devices(void **state)
{
    (void)state;
    check(test_devices(2));
}

static void test_more_devices_than_cores(void **state)
{
    (void)state;
    check(test_devices(5));
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

static td_model *many_kinds(td_context *context)
{
    td_tensor *in = td_input(context, TD_SHAPE(28, 28, 1));
    td_tensor *out = td_conv2d(in, 6, 5, .padding = TD_SAME, .activation = TD_TANH);
    out = td_conv2d(td_average_pooling2d(out, 2), 16, 5, .strides = {2, 2}, .activation = TD_RELU);
    out = td_conv2d(td_conv2d(out, 32, 3, .dilation = {2, 2}, .padding = TD_SAME), 32, 3, .groups = 4);
    return td_model_create(in, td_dense(td_flatten(td_conv2d(out, 64, 1)), 10), .seed = 2);
}

static td_model *lenet5(td_context *context)
{
    return td_new(context, "lenet5", 2);
}

/* Convolutions of few operations are not the library's. */
static void check_images(td_model *(*make)(td_context *context), int64_t rows)
{
    enum { MOST = 4 };
    static float images[MOST * 28 * 28], targets[MOST * 10], made[MOST * 10];
    td_context *context = td_context_create(NULL);
    td_model *model = make(context);
    td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    assert_string_equal(td_error(context), "");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(td_predict_on_batch(model, rows, images, made), TD_OK);
        assert_int_equal(td_train_on_batch(model, rows, images, targets, NULL), TD_OK);
        if (i == 1) { /* how steps are divided has been timed, and predictions follow it */
            atomic_store(&allocations, 0);
            atomic_store(&library_calls, 0);
            atomic_store(&counting, 1);
        }
    }
    atomic_store(&counting, 0);
    assert_int_equal(atomic_load(&allocations), 0);
    assert_int_equal(atomic_load(&library_calls), 0);
    td_context_free(context);
}

static void test_an_image_at_a_time(void **state)
{
    (void)state;
    check_images(many_kinds, 1);
}

static void test_few_images(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows <= 4; rows++)
        check_images(lenet5, rows);
}

static void rest(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

/* Threads have gone to sleep between two calls, and who makes the next one is found out meanwhile. */
static void check_with_pauses(small_kind kind)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, kind, td_adam(), (td_strategy){.devices = test_devices(1)});
    td_logs logs;
    assert_string_equal(td_error(context), "");
    steps(model, ROWS);
    steps(model, 1);
    atomic_store(&allocations, 0);
    atomic_store(&counting, 1);
    for (int i = 0; i < 60; i++) {
        rest(i % 20 ? 1 : 100);
        assert_int_equal(td_predict_on_batch(model, 1, x + i, predictions), TD_OK);
        rest(1);
        assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    }
    atomic_store(&counting, 0);
    assert_int_equal(atomic_load(&allocations), 0);
    td_context_free(context);
}

static void test_calls_with_pauses(void **state)
{
    (void)state;
    check_with_pauses(SMALL_MLP);
    check_with_pauses(SMALL_LSTM);
}

enum { LARGE_ROWS = 320, LARGE_SAMPLE = 16 * 16 * 16 };

static td_tensor *wide(td_tensor *in)
{
    td_tensor *out = td_dense(td_flatten(in), 512, .activation = TD_RELU);
    return td_dense(td_dense(out, 512, .activation = TD_RELU), 1);
}

static td_tensor *convolutions(td_tensor *in)
{
    td_tensor *out = td_conv2d(in, 48, 3, .activation = TD_RELU);
    out = td_conv2d(out, 40, 3, .strides = {2, 2}, .padding = TD_SAME); /* the library's */
    out = td_conv2d(out, 64, 1, .activation = TD_RELU);
    return td_dense(td_flatten(td_max_pooling2d(out, 2)), 1);
}

static void check_large(td_tensor *(*network)(td_tensor *in), const char *devices)
{
    float *many = calloc(LARGE_ROWS * LARGE_SAMPLE, sizeof *many), targets[LARGE_ROWS] = {1}, outputs[LARGE_ROWS];
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(16, 16, 16));
    td_model *model = td_model_create(in, network(in), .seed = 2);
    td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = {.devices = devices});
    assert_string_equal(td_error(context), "");
    assert_non_null(many);
    atomic_store(&library_calls, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(td_train_on_batch(model, LARGE_ROWS, many, targets, NULL), TD_OK);
        assert_int_equal(td_predict_on_batch(model, LARGE_ROWS, many, outputs), TD_OK);
        if (i == 0) {
            atomic_store(&allocations, 0);
            atomic_store(&counting, 1);
        }
    }
    atomic_store(&counting, 0);
    assert_int_equal(atomic_load(&allocations), 0);
#ifdef TANDEM_ONEDNN
    assert_true(atomic_load(&library_calls) > 0);
#endif
    td_context_free(context);
    free(many);
}

static void test_large_products(void **state)
{
    (void)state;
    check_large(wide, test_devices(1));
    check_large(wide, test_devices(2));
}

static void test_convolutions(void **state)
{
    (void)state;
    check_large(convolutions, test_devices(1));
    check_large(convolutions, test_devices(2));
}

int main(void)
{
    if (SANITIZED) {
        print_message("skipped: allocators belong to the sanitizer\n");
        return 77;
    }
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counter_counts), cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_two_devices),        cmocka_unit_test(test_more_devices_than_cores),
        cmocka_unit_test(test_a_control_loop),     cmocka_unit_test(test_calls_with_pauses),
        cmocka_unit_test(test_large_products),     cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_an_image_at_a_time), cmocka_unit_test(test_few_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
