/* Losses weighted by sample_weight and class_weight: by hand, on any division of the batch, from every kind of data.
 * That they are Keras's is tests/conformance/weights.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/generators.h>
#include <tandem/stages.h>

#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 43, BATCH = 14 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES], weights[SAMPLES], by_class[SAMPLES];
static const td_class_weight class_weight[] = {{0, 0.25f}, {2, 3}, {.number = TD_CLASS_WEIGHTS_END}};

static td_shape sample(void)
{
    return TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
}

static void make_data(void)
{
    small_data(SAMPLES, x, y);
    for (int i = 0; i < SAMPLES; i++) {
        weights[i] = i % 5 == 3 || (i >= BATCH && i < 2 * BATCH) ? 0 : 0.1f + (float)(i % 7);
        by_class[i] = y[i] == 0 ? 0.25f : y[i] == 2 ? 3.0f : 1.0f;
    }
}

static td_data *weighted(const float *by)
{
    return td_arrays(SAMPLES, x, sample(), .y = y, .sample_weight = by);
}

/* ---- by hand ---- */

/* The losses of the samples by the model as it is. */
static void losses_of(td_model *model, double *losses)
{
    td_logs logs;
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(td_test_on_batch(model, 1, x + i * SMALL_SAMPLE, y + i, &logs), TD_OK);
        losses[i] = logs.entry[0].value;
    }
}

static void an_evaluation_is_the_weighted_sum(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_CNN, td_sgd(0), (td_strategy){0});
    double losses[SAMPLES], sum = 0, plain = 0;
    td_logs logs;
    losses_of(model, losses);
    for (int i = 0; i < SAMPLES; i++) {
        sum += (double)weights[i] * losses[i];
        plain += losses[i];
    }
    assert_int_equal(td_evaluate(model, weighted(weights), &logs, .batch_size = BATCH), TD_OK);
    assert_float_equal(logs.entry[0].value, sum / SAMPLES, 1e-5);
    assert_int_equal(td_evaluate(model, weighted(NULL), &logs, .batch_size = BATCH), TD_OK);
    assert_float_equal(logs.entry[0].value, plain / SAMPLES, 1e-5);
    assert_int_equal(td_evaluate(model, weighted(weights), &logs, .batch_size = BATCH, .class_weight = class_weight),
                     TD_OK);
    sum = 0;
    for (int i = 0; i < SAMPLES; i++)
        sum += (double)(weights[i] * by_class[i]) * losses[i];
    assert_float_equal(logs.entry[0].value, sum / SAMPLES, 1e-5);
    td_context_free(context);
}

static float first_gradient(td_model *model, int rows, const float *of, const float *classes, const float *by)
{
    const float *const lists[] = {of, classes, by};
    td_status status = by ? td_compute_gradients_weighted(model, rows, &lists[0], &lists[1], &lists[2], TD_NO, NULL)
                          : td_compute_gradients(model, rows, of, classes, NULL);
    assert_int_equal(status, TD_OK);
    return td_gradient(model, 2)[1];
}

/* Batches with weights and without may take turns. */
static void a_gradient_is_the_weighted_mean(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_CNN, td_sgd(0), (td_strategy){0});
    double sum = 0;
    for (int i = 0; i < BATCH; i++)
        sum += (double)weights[i] * (double)first_gradient(model, 1, x + i * SMALL_SAMPLE, y + i, NULL);
    float whole = first_gradient(model, BATCH, x, y, weights), plain = first_gradient(model, BATCH, x, y, NULL);
    assert_float_equal(whole, sum / BATCH, 1e-5);
    assert_true(fabs((double)plain - (double)whole) > 1e-4);
    assert_true(first_gradient(model, BATCH, x, y, weights) == whole);
    td_context_free(context);
}

/* ---- training ---- */

typedef struct setting {
    const char *devices;
    int shards;
    small_kind kind;
    td_precision precision;
    td_optimizer optimizer;
    const td_class_weight *class_weight;
    td_choice balanced, dropped;
} setting;

static float *train(const setting *s, td_data *data, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_optimizer optimizer = s->optimizer.kind ? s->optimizer : td_sgd(.learning_rate = 0.05f, .momentum = 0.9f);
    td_model *model =
        small_model(context, s->kind, optimizer, (td_strategy){.devices = s->devices, .shards = s->shards});
    model->compiled.precision = s->precision;
    td_fit(model, data, .epochs = 2, .batch_size = BATCH, .seed = 5, .class_weight = s->class_weight,
           .balance_classes = s->balanced, .drop_remainder = s->dropped);
    assert_string_equal(td_error(context), "");
    float *made = small_weights(model, count);
    td_context_free(context);
    return made;
}

static void expect_bits(const setting *a, td_data *of_a, const setting *b, td_data *of_b)
{
    int64_t count;
    float *one = train(a, of_a, &count), *other = train(b, of_b, &count);
    small_expect_same(one, other, count);
    free(one);
}

static void replicas_give_the_same_bits(void **state)
{
    (void)state;
    const td_optimizer optimizers[] = {{0}, td_adam(.gradient_accumulation_steps = 3, .global_clipnorm = 0.5f)};
    for (int i = 0; i < 4; i++) {
        setting one = {.devices = test_devices(1), .shards = 2, .kind = i % 2 ? SMALL_CNN : SMALL_MLP};
        one.optimizer = optimizers[i / 2];
        one.dropped = i == 3 ? TD_YES : TD_NO;
        setting two = one;
        two.devices = test_devices(2);
        expect_bits(&one, weighted(weights), &two, weighted(weights));
    }
}

static void shards_that_are_uneven_agree(void **state)
{
    (void)state;
    int64_t count;
    const setting one = {.devices = test_devices(1)}, three = {.devices = test_devices(3)};
    float *a = train(&one, weighted(weights), &count), *b = train(&three, weighted(weights), &count);
    assert_true(relative_difference(b, a, count) < 3e-6);
    free(a);
    free(b);
}

static void bfloat16_is_near(void **state)
{
    (void)state;
    int64_t count;
    const setting wide = {.kind = SMALL_CNN}, narrow = {.kind = SMALL_CNN, .precision = TD_PRECISION_BFLOAT16};
    float *a = train(&wide, weighted(weights), &count), *b = train(&narrow, weighted(weights), &count);
    assert_true(relative_difference(b, a, count) < 1.0 / 32);
    free(a);
    free(b);
}

static void weights_of_one_change_nothing(void **state)
{
    (void)state;
    float ones[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        ones[i] = 1;
    const setting s = {.devices = test_devices(1), .shards = 1};
    expect_bits(&s, weighted(ones), &s, weighted(NULL));
}

static void classes_have_weights(void **state)
{
    (void)state;
    const setting plain = {.shards = 1}, classes = {.shards = 1, .class_weight = class_weight};
    expect_bits(&plain, weighted(by_class), &classes, weighted(NULL));
}

static void classes_are_balanced(void **state)
{
    (void)state;
    int counts[SMALL_CLASSES] = {0};
    td_class_weight list[SMALL_CLASSES + 1];
    for (int i = 0; i < SAMPLES; i++)
        counts[(int)y[i]]++;
    for (int c = 0; c < SMALL_CLASSES; c++)
        list[c] = (td_class_weight){c, (float)((double)SAMPLES / ((double)SMALL_CLASSES * counts[c]))};
    list[SMALL_CLASSES] = (td_class_weight){.number = TD_CLASS_WEIGHTS_END};
    const setting named = {.shards = 1, .class_weight = list}, balanced = {.shards = 1, .balanced = TD_YES};
    expect_bits(&named, weighted(NULL), &balanced, weighted(NULL));
}

/* What was weighted once is not for ever. */
static void a_model_is_trained_with_and_without(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_sgd(0), (td_strategy){0});
    assert_int_equal(td_set_learning_rate(model, 0), TD_OK);
    double seen[6];
    for (int i = 0; i < 6; i++) {
        td_epoch last;
        assert_int_equal(td_fit(model, weighted(i % 3 == 1 ? weights : NULL), .batch_size = SAMPLES, .last = &last,
                                .class_weight = i % 3 == 2 ? class_weight : NULL, .seed = 1),
                         TD_OK);
        seen[i] = last.logs.entry[0].value;
    }
    for (int i = 0; i < 3; i++)
        assert_true(seen[i] == seen[i + 3] && seen[i] != seen[(i + 1) % 3]);
    td_context_free(context);
}

/* ---- kinds of data ---- */

static td_status read_one(void *user, int64_t row, void *const *to_x, void *const *to_y)
{
    (void)user;
    if (to_x[0])
        memcpy(to_x[0], x + row * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    if (to_y[0])
        *(float *)to_y[0] = y[row];
    if (to_y[1])
        *(float *)to_y[1] = weights[row];
    return TD_OK;
}

static int64_t next_row;

static td_status read_next(void *user, void *const *to_x, void *const *to_y)
{
    return next_row == SAMPLES ? TD_STOPPED : read_one(user, next_row++, to_x, to_y);
}

static td_status restart(void *user)
{
    (void)user;
    next_row = 0;
    return TD_OK;
}

static td_status copy(void *user, const td_map_sample *of)
{
    (void)user;
    memcpy(of->to_x[0], of->x[0], SMALL_SAMPLE * sizeof *x);
    return TD_OK;
}

static void data_of_all_kinds_have_weights(void **state)
{
    (void)state;
    const setting s = {.shards = 2, .devices = test_devices(1)};
    const td_column *one = TD_COLUMNS({.shape = {.rank = 0}});
    expect_bits(&s, weighted(weights), &s,
                td_generator(sample(), .read = read_one, .samples = SAMPLES, .sample_weight = one));
    expect_bits(&s, weighted(weights), &s, td_map(weighted(weights), .function = copy));
    expect_bits(&s, weighted(weights), &s, td_cache(weighted(weights)));
    expect_bits(&s, weighted(weights), &s, td_shard(weighted(weights), .index = 0, .count = 1));
}

static void a_stream_has_weights(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_sgd(0), (td_strategy){0});
    td_logs of_arrays, of_stream;
    next_row = 0;
    td_data *stream = td_generator(sample(), .next = read_next, .restart = restart,
                                   .sample_weight = TD_COLUMNS({.shape = {.rank = 0}}));
    assert_int_equal(td_evaluate(model, weighted(weights), &of_arrays, .batch_size = BATCH), TD_OK);
    assert_int_equal(td_evaluate(model, stream, &of_stream, .batch_size = BATCH), TD_OK);
    assert_true(of_arrays.entry[0].value == of_stream.entry[0].value);
    td_context_free(context);
}

/* ---- what is refused ---- */

static void expect_error(td_context *context, td_status status, const char *words)
{
    assert_int_equal(status, TD_INVALID_ARGUMENT);
    if (!strstr(td_error(context), words))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
    td_clear_error(context);
}

static void wrong_weights_are_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_sgd(0), (td_strategy){0});
    td_data *wide =
        td_arrays(SAMPLES / 2, x, sample(), .y = y, .sample_weight = weights, .sample_weight_shape = TD_SHAPE(2));
    expect_error(context, td_fit(model, wide), "sample_weight holds weights of shape [2] a sample");
    expect_error(context, td_fit(model, weighted(NULL), .class_weight = TD_CLASS_WEIGHTS({4, 1})),
                 "class_weight: class 4; output");
    expect_error(context, td_fit(model, weighted(NULL), .class_weight = TD_CLASS_WEIGHTS({1, 1}, {1, 2})),
                 "class 1 is given twice");
    expect_error(context, td_fit(model, weighted(NULL), .class_weight = TD_CLASS_WEIGHTS({1, NAN})),
                 "the weight of class 1 is not a finite number");
    expect_error(context, td_fit(model, weighted(NULL), .class_weight = class_weight, .balance_classes = TD_YES),
                 "not both");
    td_data *stream = td_generator(sample(), .next = read_next, .samples = SAMPLES);
    expect_error(context, td_fit(model, stream, .balance_classes = TD_YES),
                 "a stream, whose classes cannot be counted");
    td_data *of_nothing = td_arrays(SAMPLES, x, sample(), .sample_weight = weights);
    assert_non_null(strstr(td_data_error(of_nothing), "there is no y"));
    td_data_release(of_nothing);
    td_context_free(context);
}

static void a_weight_that_is_no_number_is_named(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_sgd(0), (td_strategy){0});
    float spoiled[SAMPLES];
    memcpy(spoiled, weights, sizeof spoiled);
    spoiled[17] = NAN;
    assert_int_equal(td_fit(model, weighted(spoiled), .shuffle = TD_NO), TD_NOT_FINITE);
    assert_non_null(strstr(td_error(context), "sample 17 of td_arrays"));
    assert_non_null(strstr(td_error(context), "in sample_weight"));
    td_context_free(context);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_evaluation_is_the_weighted_sum),
                                       cmocka_unit_test(a_gradient_is_the_weighted_mean),
                                       cmocka_unit_test(replicas_give_the_same_bits),
                                       cmocka_unit_test(shards_that_are_uneven_agree),
                                       cmocka_unit_test(bfloat16_is_near),
                                       cmocka_unit_test(weights_of_one_change_nothing),
                                       cmocka_unit_test(classes_have_weights),
                                       cmocka_unit_test(classes_are_balanced),
                                       cmocka_unit_test(a_model_is_trained_with_and_without),
                                       cmocka_unit_test(data_of_all_kinds_have_weights),
                                       cmocka_unit_test(a_stream_has_weights),
                                       cmocka_unit_test(wrong_weights_are_refused),
                                       cmocka_unit_test(a_weight_that_is_no_number_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
