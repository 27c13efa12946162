/* The confusion matrix of td_evaluate is the one that counting its own predictions gives, whatever the loss, the shape
 * and the replicas; scores are those of their definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "base/rng.h"
#include "support/devices.h"

enum { ROWS = 53, WIDTH = 6, PIXELS = 4, CLASSES = 3 };

static float x[ROWS * WIDTH], labels[ROWS * PIXELS], one_hot[ROWS * CLASSES], bits[ROWS];

static void make_data(void)
{
    tdi_random random = tdi_random_create(8, 1);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)tdi_random_normal(&random);
    for (int i = 0; i < ROWS * PIXELS; i++)
        labels[i] = (float)((i * 7 + i / 5) % CLASSES);
    for (int i = 0; i < ROWS; i++) {
        one_hot[i * CLASSES + (i % CLASSES)] = 1;
        bits[i] = (float)(i % 2);
    }
}

static td_model *model_of(td_context *context, td_tensor *(*build)(td_tensor *input), td_loss loss, const char *devices)
{
    td_tensor *input = td_input(context, TD_SHAPE(WIDTH));
    td_model *model = td_model_create(input, build(input), .seed = 3);
    assert_int_equal(td_compile(model, .loss = loss, .strategy = td_mirrored(devices)), TD_OK);
    return model;
}

static td_tensor *scores(td_tensor *input)
{
    return td_dense(input, CLASSES);
}

static td_tensor *one(td_tensor *input)
{
    return td_dense(input, 1);
}

static td_tensor *pixels(td_tensor *input)
{
    return td_softmax(td_reshape(td_dense(input, PIXELS * CLASSES), TD_SHAPE(PIXELS, CLASSES)));
}

static int best(const float *row, int count)
{
    int at = 0;
    for (int i = 1; i < count; i++)
        if (row[i] > row[at])
            at = i;
    return at;
}

/* Counts by hand: `width` scores for each of `count` positions. */
static void count_by_hand(td_model *model, const float *actual, int count, int width, int64_t *counts)
{
    int classes = width == 1 ? 2 : width;
    float *predictions = calloc((size_t)(count * width), sizeof *predictions);
    assert_int_equal(td_predict(model, td_arrays(ROWS, x, TD_SHAPE(WIDTH)), predictions, (size_t)(count * width)),
                     TD_OK);
    for (int i = 0; i < count; i++) {
        int predicted = width == 1 ? predictions[i] > 0 : best(predictions + i * width, width);
        if (actual[i] >= 0 && actual[i] < (float)classes)
            counts[(int)actual[i] * classes + predicted]++;
    }
    free(predictions);
}

static void assert_counts(const td_confusion *confusion, const int64_t *counts)
{
    int classes = td_confusion_classes(confusion);
    int64_t total = 0;
    for (int i = 0; i < classes * classes; i++) {
        assert_int_equal(td_confusion_count(confusion, i / classes, i % classes), counts[i]);
        total += counts[i];
    }
    assert_int_equal(td_confusion_total(confusion), total);
}

static void classes_are_counted_on_all_replicas(void **state)
{
    (void)state;
    const char *const devices[] = {test_devices(0), test_devices(2), test_devices(3)};
    for (int d = 0; d < 3; d++)
        for (int64_t batch = 7; batch <= 100; batch += 93) {
            td_context *context = td_context_create(NULL);
            td_model *model = model_of(context, scores, TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, devices[d]);
            td_confusion *confusion;
            int64_t counts[CLASSES * CLASSES] = {0};
            td_logs logs, without;
            td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = labels);
            td_data_retain(data);
            for (int twice = 0; twice < 2; twice++) {
                td_data_retain(data);
                assert_int_equal(td_evaluate(model, data, &logs, .batch_size = batch, .confusion = &confusion), TD_OK);
                memset(counts, 0, sizeof counts);
                count_by_hand(model, labels, ROWS, CLASSES, counts);
                assert_counts(confusion, counts);
                assert_int_equal(td_confusion_ignored(confusion), 0);
                assert_false(td_confusion_positions(confusion));
                td_confusion_free(confusion);
            }
            assert_int_equal(td_evaluate(model, data, &without, .batch_size = batch), TD_OK);
            assert_true(fabs(without.entry[0].value - logs.entry[0].value) < 1e-6 * logs.entry[0].value);
            td_data_release(data);
            td_context_free(context);
        }
}

static void one_hot_targets_and_thresholds_count(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion;
    int64_t counts[CLASSES * CLASSES] = {0}, two[4] = {0};
    float classes[ROWS];
    for (int i = 0; i < ROWS; i++)
        classes[i] = (float)(i % CLASSES);
    td_model *model = model_of(context, scores, TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, test_devices(0));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = one_hot, .y_shape = TD_SHAPE(CLASSES));
    assert_int_equal(td_evaluate(model, data, NULL, .confusion = &confusion), TD_OK);
    count_by_hand(model, classes, ROWS, CLASSES, counts);
    assert_counts(confusion, counts);
    td_confusion_free(confusion);
    model = model_of(context, one, TD_BINARY_CROSSENTROPY_FROM_LOGITS, test_devices(0));
    assert_int_equal(td_evaluate(model, td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = bits), NULL, .confusion = &confusion),
                     TD_OK);
    count_by_hand(model, bits, ROWS, 1, two);
    assert_int_equal(td_confusion_classes(confusion), 2);
    assert_counts(confusion, two);
    td_confusion_free(confusion);
    td_context_free(context);
}

/* A log for each class, the same on two devices, whose last batch is uneven. */
static void f1_is_each_classes(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion;
    td_logs logs;
    td_model *model = model_of(context, scores, TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, test_devices(2));
    assert_int_equal(td_compile(model, .metrics = TD_METRICS(td_metric_f1_score())), TD_OK);
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = one_hot, .y_shape = TD_SHAPE(CLASSES));
    assert_int_equal(td_evaluate(model, data, &logs, .confusion = &confusion, .batch_size = 8), TD_OK);
    assert_int_equal(logs.count, 1 + CLASSES);
    for (int c = 0; c < CLASSES; c++) {
        char name[16];
        snprintf(name, sizeof name, "f1_score[%d]", c);
        assert_string_equal(logs.entry[1 + c].name, name);
        assert_true(fabs(logs.entry[1 + c].value - td_confusion_scores(confusion, c).f1) < 1e-6);
    }
    td_confusion_free(confusion);
    td_context_free(context);
}

static void more_logs_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    enum { MANY = 40 };
    static float targets[ROWS * MANY];
    td_context *context = td_context_create(NULL);
    td_tensor *input = td_input(context, TD_SHAPE(WIDTH));
    td_model *model = td_model_create(input, td_dense(input, MANY), .seed = 3);
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = targets, .y_shape = TD_SHAPE(MANY));
    assert_int_equal(td_compile(model, .loss = TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .optimizer = td_sgd(),
                                .metrics = TD_METRICS(td_metric_f1_score(.average = TD_MACRO))),
                     TD_OK);
    assert_int_equal(td_compile(model, .metrics = TD_METRICS(td_metric_f1_score(.name = "each"))), TD_OK);
    assert_int_equal(td_fit(model, td_data_retain(data)), TD_OK);
    assert_int_equal(td_fit(model, data, .validation_split = 0.5), TD_UNSUPPORTED);
    assert_non_null(strstr(td_error(context),
                           "give 41 numbers an epoch, 40 of them each, and as many of the validation; at most 63 can "
                           "be logged"));
    td_clear_error(context);
    input = td_input(context, TD_SHAPE(WIDTH));
    model = td_model_create(input, td_dense(input, 2 * MANY), .seed = 3);
    assert_int_equal(td_compile(model, .loss = TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .optimizer = td_sgd(),
                                .metrics = TD_METRICS(td_metric_f1_score())),
                     TD_UNSUPPORTED);
    td_context_free(context);
}

static void pixels_are_counted_and_void_is_not(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion;
    int64_t counts[CLASSES * CLASSES] = {0}, unlabelled = 0;
    td_model *model = model_of(context, pixels, TD_SPARSE_CATEGORICAL_CROSSENTROPY, test_devices(2));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = labels, .y_shape = TD_SHAPE(PIXELS));
    td_data_retain(data);
    assert_int_equal(td_evaluate(model, data, NULL, .confusion = &confusion), TD_OK);
    count_by_hand(model, labels, ROWS * PIXELS, CLASSES, counts);
    assert_counts(confusion, counts);
    assert_true(td_confusion_positions(confusion));
    assert_int_equal(td_confusion_ignored(confusion), 0);
    td_confusion_free(confusion);
    assert_int_equal(td_evaluate(model, data, NULL, .confusion = &confusion, .ignore_class = TD_SET(1)), TD_OK);
    for (int predicted = 0; predicted < CLASSES; predicted++)
        unlabelled += counts[CLASSES + predicted];
    memset(counts + CLASSES, 0, CLASSES * sizeof *counts);
    assert_counts(confusion, counts);
    assert_int_equal(td_confusion_ignored(confusion), unlabelled);
    td_confusion_free(confusion);
    td_context_free(context);
}

/* What the loss leaves out, a confusion leaves out too; MeanIoU says the same as its mean; the loss is the mean over
 * the rest. */
static void a_loss_may_ignore_void(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion, *by_hand;
    td_logs logs, whole;
    td_model *model = model_of(context, pixels, TD_SPARSE_CATEGORICAL_CROSSENTROPY, test_devices(2));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = labels, .y_shape = TD_SHAPE(PIXELS));
    td_data_retain(data);
    assert_int_equal(td_evaluate(model, data, &whole, .confusion = &by_hand, .ignore_class = TD_SET(1)), TD_OK);
    assert_int_equal(td_compile(model, .ignore_class = TD_SET(1),
                                .metrics = TD_METRICS(td_metric_mean_iou(.ignore_class = TD_SET(1), .name = "iou"))),
                     TD_OK);
    assert_int_equal(td_evaluate(model, data, &logs, .confusion = &confusion, .batch_size = ROWS), TD_OK);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        assert_int_equal(td_confusion_count(confusion, i / CLASSES, i % CLASSES),
                         td_confusion_count(by_hand, i / CLASSES, i % CLASSES));
    assert_int_equal(td_confusion_ignored(confusion), td_confusion_ignored(by_hand));
    assert_int_equal(logs.count, 2);
    assert_string_equal(logs.entry[1].name, "iou");
    assert_true(fabs(logs.entry[1].value - td_confusion_mean(confusion).iou) < 1e-6);
    assert_true(logs.entry[0].value > 0 && logs.entry[0].value != whole.entry[0].value);
    td_confusion_free(confusion);
    td_confusion_free(by_hand);
    td_context_free(context);
}

static void scores_follow_their_definitions(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion;
    td_model *model = model_of(context, scores, TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, test_devices(0));
    assert_int_equal(
        td_evaluate(model, td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = labels), NULL, .confusion = &confusion), TD_OK);
    double iou = 0, weighted = 0, right = 0;
    for (int c = 0; c < CLASSES; c++) {
        double n = (double)td_confusion_count(confusion, c, c), row = 0, column = 0;
        for (int k = 0; k < CLASSES; k++) {
            row += (double)td_confusion_count(confusion, c, k);
            column += (double)td_confusion_count(confusion, k, c);
        }
        td_class_scores of = td_confusion_scores(confusion, c);
        assert_true(fabs(of.precision - n / column) < 1e-12 && fabs(of.recall - n / row) < 1e-12);
        assert_true(fabs(of.f1 - 2 * of.precision * of.recall / (of.precision + of.recall)) < 1e-12);
        assert_true(fabs(of.iou - n / (row + column - n)) < 1e-12);
        iou += of.iou / CLASSES;
        weighted += of.recall * row / ROWS;
        right += n;
    }
    assert_true(fabs(td_confusion_mean(confusion).iou - iou) < 1e-12);
    assert_true(fabs(td_confusion_weighted_mean(confusion).recall - weighted) < 1e-12);
    assert_true(fabs(td_confusion_accuracy(confusion) - right / ROWS) < 1e-12);
    td_class_scores none = td_confusion_scores(confusion, CLASSES);
    assert_true(none.support == 0 && none.recall == 0 && isnan(none.iou));
    td_confusion_free(confusion);
    td_context_free(context);
}

static void what_has_no_classes_is_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_confusion *confusion = (td_confusion *)x;
    td_model *model = model_of(context, one, TD_MEAN_SQUARED_ERROR, test_devices(0));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(WIDTH), .y = bits);
    assert_int_equal(td_evaluate(model, data, NULL, .confusion = &confusion), TD_INVALID_ARGUMENT);
    assert_null(confusion);
    assert_non_null(strstr(td_error(context), "cross-entropy"));
    td_context_free(context);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_counted_on_all_replicas),
        cmocka_unit_test(one_hot_targets_and_thresholds_count),
        cmocka_unit_test(f1_is_each_classes),
        cmocka_unit_test(more_logs_than_there_is_room_for_are_refused),
        cmocka_unit_test(pixels_are_counted_and_void_is_not),
        cmocka_unit_test(a_loss_may_ignore_void),
        cmocka_unit_test(scores_follow_their_definitions),
        cmocka_unit_test(what_has_no_classes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
