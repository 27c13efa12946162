/* What a program asks for beside training: explanations, reports, arrays as files; and what is refused with a reason.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 12 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

static char *printed(td_status (*print)(void *object, FILE *out), void *object, td_status expected)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(print(object, out), expected);
    fclose(out);
    return text;
}

static void expect_in(char *text, const char *const *shards)
{
    for (; *shards; shards++)
        if (!strstr(text, *shards)) {
            print_message("%s\n", text);
            fail_msg("something is missing above");
        }
    free(text);
}

static td_status explain(void *model, FILE *out)
{
    return td_explain(model, out, .batch_size = 16);
}

static td_status explain_nothing(void *model, FILE *out)
{
    return td_explain(model, out, .batch_size = -1);
}

static td_status doctor(void *context, FILE *out)
{
    return td_doctor(context, out);
}

static void a_plan_is_explained(void **state)
{
    (void)state;
    static const char *const shards[] = {
        "global batch 16", "an epoch: one run of all its steps", "matmul", "MFLOP", "weights ", NULL};
    static const char *const chunks[] = {"an epoch: 40 steps a run", NULL};
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = test_devices(1)});
    expect_in(printed(explain, model, TD_OK), shards);
    assert_int_equal(td_compile(model, .steps_per_execution = 40), TD_OK);
    expect_in(printed(explain, model, TD_OK), chunks);
    free(printed(explain_nothing, model, TD_INVALID_ARGUMENT));
    /* A failure that nobody has cleared is not this call's. */
    assert_true(td_failed(context));
    expect_in(printed(explain, model, TD_OK), shards + 2);
    td_context_free(context);
}

static void the_machine_is_described(void **state)
{
    (void)state;
    static const char *const shards[] = {"tandem ", "cpu: ", "cores allowed: ", NULL};
    td_context *context = td_context_create(NULL);
    expect_in(printed(doctor, context, TD_OK), shards);
    td_context_free(context);
}

static void arrays_are_saved(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_shape shape = TD_SHAPE(2, 3);
    float values[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
    assert_int_equal(td_save_npy(context, scratch_path("a.npy"), values, &shape), TD_OK);
    char names[1100];
    snprintf(names, sizeof names, "%s,%s", scratch_path("a.npy"), scratch_path("a.npy"));
    td_data *data = td_open(names);
    assert_int_equal(td_data_samples(data), 2);
    assert_int_equal(td_data_read(context, data, NULL, 2, back, NULL), TD_OK);
    assert_memory_equal(back, values, sizeof values);
    td_data_release(data);
    assert_int_not_equal(td_save_npy(context, "/nowhere/at/all.npy", values, &shape), TD_OK);
    assert_true(td_failed(context));
    td_context_free(context);
}

static void gradients_are_applied_once(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    for (int i = 0; i < 2; i++) {
        assert_int_equal(td_compute_gradients(model, ROWS, x, y, NULL), TD_OK);
        assert_int_equal(td_apply_gradients(model), TD_OK);
        assert_int_equal(td_apply_gradients(model), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(td_error(context), "call td_compute_gradients before each td_apply_gradients"));
        td_clear_error(context);
    }
    assert_int_equal(td_compute_gradients(model, ROWS, x, y, NULL), TD_OK);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
    assert_int_equal(td_apply_gradients(model), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

static void without_an_optimizer_there_is_nothing_to_apply(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(4));
    td_model *model = td_model_create(in, td_dense(in, 2), .seed = 1);
    td_compile(model, .loss = TD_MEAN_SQUARED_ERROR);
    assert_int_equal(td_apply_gradients(model), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "has no optimizer"));
    td_context_free(context);
}

int main(void)
{
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_explained),
        cmocka_unit_test(the_machine_is_described),
        cmocka_unit_test(arrays_are_saved),
        cmocka_unit_test(gradients_are_applied_once),
        cmocka_unit_test(without_an_optimizer_there_is_nothing_to_apply),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
