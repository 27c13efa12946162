/* stored_slots.c - a large optimizer's state stays in the file until it is needed, and is never lost. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <tandem/tandem.h>
#include <unistd.h>

#include "files/scratch.h"
#include "model/model.h"

enum { WIDTH = 500, ROWS = 2 };

static float x[ROWS * WIDTH], y[ROWS], out[ROWS];

static td_model *trained(td_context *context)
{
    td_tensor *in = td_input(context, TD_SHAPE(WIDTH));
    td_model *model = td_model_create(in, td_dense(td_dense(in, WIDTH), 1), .seed = 3);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i % 7) / 7;
    assert_int_equal(td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR), TD_OK);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
    return model;
}

static void assert_same_slots(const td_model *a, const td_model *b)
{
    for (int slot = 0; slot < 2; slot++) {
        assert_non_null(tdi_model_slots(b, slot));
        assert_memory_equal(tdi_model_slots(a, slot), tdi_model_slots(b, slot),
                            (size_t)a->architecture->trained * sizeof(float));
    }
}

/* Predicts and evaluates without slots; trains with those of the file, as if it had never been away. */
static void slots_are_read_when_they_are_needed(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = trained(context);
    assert_int_equal(td_save(model, scratch_path("a.keras")), TD_OK);
    td_model *again = td_load(context, scratch_path("a.keras"));
    assert_int_equal(td_predict_on_batch(again, ROWS, x, out), TD_OK);
    assert_int_equal(td_test_on_batch(again, ROWS, x, y, NULL), TD_OK);
    assert_null(tdi_model_slots(again, 0));
    assert_int_equal(again->state->iteration, 1);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
    assert_int_equal(td_train_on_batch(again, ROWS, x, y, NULL), TD_OK);
    assert_same_slots(model, again);
    td_context_free(context);
}

/* Not even when the file is removed, or replaced by the model itself. */
static void saving_keeps_them(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = trained(context);
    assert_int_equal(td_save(model, scratch_path("b.keras")), TD_OK);
    td_model *second = td_load(context, scratch_path("b.keras")), *third = td_load(context, scratch_path("b.keras"));
    unlink(scratch_path("b.keras"));
    assert_int_equal(td_predict_on_batch(second, ROWS, x, out), TD_OK);
    assert_int_equal(td_save(second, scratch_path("b.keras")), TD_OK);
    assert_int_equal(td_save(third, scratch_path("b.keras")), TD_OK);
    td_model *fourth = td_load(context, scratch_path("b.keras"));
    assert_int_equal(td_save_weights(fourth, scratch_path("b.weights.h5")), TD_OK);
    assert_same_slots(model, fourth);
    td_context_free(context);
}

/* Weights files have them too; a new optimizer drops them. */
static void weights_bring_theirs(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = trained(context);
    assert_int_equal(td_save_weights(model, scratch_path("c.weights.h5")), TD_OK);
    td_model *other = trained(context), *fresh = trained(context);
    assert_int_equal(td_compile(fresh, .optimizer = td_adam()), TD_OK);
    assert_int_equal(td_train_on_batch(other, ROWS, x, y, NULL), TD_OK);
    assert_int_equal(td_load_weights(other, scratch_path("c.weights.h5")), TD_OK);
    assert_int_equal(td_load_weights(fresh, scratch_path("c.weights.h5")), TD_OK);
    assert_null(tdi_model_slots(fresh, 0));
    assert_int_equal(tdi_model_need_slots(fresh, NULL), TD_OK);
    assert_same_slots(model, other);
    assert_same_slots(model, fresh);
    assert_int_equal(td_load_weights(fresh, scratch_path("c.weights.h5")), TD_OK);
    assert_int_equal(td_compile(fresh, .optimizer = td_adam()), TD_OK);
    assert_int_equal(tdi_model_need_slots(fresh, NULL), TD_OK);
    assert_true(tdi_model_slots(fresh, 1)[0] == 0);
    td_context_free(context);
}

/* What was written to is not read. */
static void a_changed_file_is_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = trained(context);
    assert_int_equal(td_save(model, scratch_path("d.keras")), TD_OK);
    td_model *again = td_load(context, scratch_path("d.keras"));
    assert_int_equal(truncate(scratch_path("d.keras"), 5000), 0);
    assert_int_equal(td_save(again, scratch_path("e.keras")), TD_IO);
    assert_non_null(strstr(td_error(context), "the optimizer's state that"));
    td_clear_error(context);
    assert_int_equal(td_predict_on_batch(again, ROWS, x, out), TD_OK);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_read_when_they_are_needed),
        cmocka_unit_test(saving_keeps_them),
        cmocka_unit_test(weights_bring_theirs),
        cmocka_unit_test(a_changed_file_is_refused),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
