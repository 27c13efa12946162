/* A oneDNN primitive that fails inside a step because memory is out must fail the step, so that no stale numbers pass
 * for its result. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tandem/tandem.h>

#ifdef TANDEM_ONEDNN
#include <oneapi/dnnl/dnnl.h>

enum { ROWS = 4, SIDE = 24, CHANNELS = 40, SAMPLE = SIDE * SIDE * CHANNELS };

static bool refuses, refuses_addresses;
static int executions;

dnnl_status_t dnnl_memory_set_data_handle(dnnl_memory_t memory, void *address)
{
    dnnl_status_t (*library)(dnnl_memory_t, void *);
    if (refuses_addresses)
        return dnnl_out_of_memory;
    *(void **)&library = dlsym(RTLD_NEXT, "dnnl_memory_set_data_handle");
    return library(memory, address);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t *arguments)
{
    dnnl_status_t (*library)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    __atomic_add_fetch(&executions, 1, __ATOMIC_RELAXED);
    if (refuses)
        return dnnl_out_of_memory;
    *(void **)&library = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    return library(primitive, stream, count, arguments);
}

/* A 5x5 filter keeps the Winograd kernels away, many channels the broadcast ones, channels in no multiples of 32 the
 * direct ones. */
static td_model *model_of(td_context *context, const char *devices)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, CHANNELS));
    td_tensor *x = td_conv2d(in, 72, 5, .padding = TD_SAME, .activation = TD_RELU);
    td_model *model = td_model_create(in, td_dense(td_flatten(x), 1), .seed = 1);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = {.devices = devices});
    assert_string_equal(td_error(context), "");
    return model;
}

static void check(const char *devices)
{
    float *x = calloc(ROWS * SAMPLE, sizeof *x), y[ROWS] = {1}, out[ROWS];
    td_context *context = td_context_create(NULL);
    td_model *model = model_of(context, devices);
    td_logs logs;
    assert_non_null(x);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    assert_true(executions > 0);
    refuses = true;
    assert_int_equal(td_predict_on_batch(model, ROWS, x, out), TD_NO_MEMORY);
    assert_non_null(strstr(td_error(context), "out of memory inside step"));
    td_clear_error(context);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_NO_MEMORY);
    td_clear_error(context);
    refuses = false;
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    refuses_addresses = true;
    assert_int_equal(td_test_on_batch(model, ROWS, x, y, &logs), TD_NO_MEMORY);
    assert_non_null(strstr(td_error(context), "out of memory inside step"));
    td_clear_error(context);
    refuses_addresses = false;
    assert_int_equal(td_test_on_batch(model, ROWS, x, y, &logs), TD_OK);
    td_context_free(context);
    free(x);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_device), cmocka_unit_test(test_two_devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: a build without oneDNN\n");
    return 77;
}
#endif
